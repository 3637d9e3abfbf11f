// SPDX-License-Identifier: Apache-2.0
#include "nn/recurrence.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <utility>

namespace lockstep::nn {
namespace {

void prepare(const Walk& how, const Tensor& x, const Tensor& mask, std::vector<Tensor>& state,
             SourceLocation at) {
  require(x.dim(1) > 0, at, how.layer, "expected at least one step, got ", x.shape());
  require(!mask.defined() ||
              (mask.dtype() == DType::boolean && mask.shape() == x.shape().without_axis(2)),
          at, how.layer, "expected a mask bool", x.shape().without_axis(2), ", got ", mask);
  const Shape shape{x.dim(0), how.units};
  for (Tensor& each : state) {
    if (!each.defined()) each = lockstep::zeros(shape, x.dtype());
    require(each.shape() == shape && each.dtype() == x.dtype(), at, how.layer,
            "expected a state of ", name_of(x.dtype()), shape, ", got ", name_of(each.dtype()),
            each.shape());
  }
}

// x [batch, steps, ..] with its steps first, in the order of the walk.
Tensor steps_first(const Tensor& x, bool backwards) {
  std::vector<int> permutation{1, 0};
  if (x.rank() == 3) permutation.push_back(2);
  const Tensor steps = transpose(x, permutation);
  return backwards ? reverse(steps, {0}) : steps;
}

}  // namespace

Shape gates_shape(const char* layer, std::int64_t in, std::int64_t units, std::int64_t gates,
                  SourceLocation at) {
  require(in > 0 && units > 0, at, layer, "expected sizes of 1 or more, got ", in, " and ", units);
  return Shape({in, gates * units}, at, layer);
}

Walked walk(const Walk& how, const Tensor& x, const Tensor& kernel, const Tensor& bias,
            std::vector<Tensor> state, const Tensor& mask, const Cell& cell, SourceLocation at) {
  prepare(how, x, mask, state, at);
  const auto inputs = unstack(
      dense(steps_first(x, how.go_backwards), kernel, bias, lockstep::Activation::none, at));
  std::vector<Tensor> masks, outputs;
  if (mask.defined()) masks = unstack(expand_dims(steps_first(mask, how.go_backwards), 2));
  Tensor output = lockstep::zeros({x.dim(0), how.units}, x.dtype());
  for (std::size_t step = 0; step < inputs.size(); ++step) {
    std::vector<Tensor> next = cell(inputs[step], state);
    if (masks.empty()) {
      output = next[0];
    } else {
      output = select(masks[step], next[0], output);
      for (std::size_t i = 0; i < next.size(); ++i)
        next[i] = select(masks[step], next[i], state[i]);
    }
    state = std::move(next);
    if (how.return_sequences) outputs.push_back(output);
  }
  return {how.return_sequences ? stack(outputs, 1) : output, std::move(state)};
}

}  // namespace lockstep::nn
