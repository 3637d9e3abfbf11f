// SPDX-License-Identifier: Apache-2.0
#include "autodiff/jacobian.h"

#include <lockstep/ops/gather.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>

namespace lockstep {
namespace {

// The target's shape and the source's without its first `skipped` axes.
Shape jacobian_shape(const char* op, const Tensor& target, const Tensor& source,
                     std::size_t skipped, SourceLocation at) {
  const auto front = target.shape().dims(), back = source.shape().dims().subspan(skipped);
  std::vector<std::int64_t> extents(front.begin(), front.end());
  extents.insert(extents.end(), back.begin(), back.end());
  return Shape(std::span<const std::int64_t>(extents), at, op);
}

// One pass for each of `count` weights of the target: the gradients of every source, in their
// order. At least one pass, which tells what the target depends on.
template <class Weight>
std::vector<std::vector<Tensor>> passes(TapeRecords& records, const Tensor& target,
                                        std::span<const Tensor> sources, std::int64_t count,
                                        Weight&& weight_of) {
  std::vector<std::vector<Tensor>> gradients(sources.size());
  for (std::int64_t i = 0; i < std::max<std::int64_t>(count, 1); ++i) {
    Tensor weight = count ? weight_of(i) : zeros_like(target);
    auto row = run_backward(records, {{&target, 1}, {&weight, 1}, sources}, {}, false);
    for (std::size_t s = 0; s < row.size(); ++s) gradients[s].push_back(std::move(row[s]));
  }
  return gradients;
}

}  // namespace

std::vector<Tensor> jacobian_of(const char* op, TapeRecords& records, const Tensor& target,
                                std::span<const Tensor> sources, SourceLocation at) {
  std::vector<Shape> shapes(sources.size());
  for (std::size_t s = 0; s < sources.size(); ++s)
    shapes[s] = jacobian_shape(op, target, sources[s], 0, at);
  const std::int64_t n = target.num_elements();
  const auto gradients = passes(records, target, sources, n, [&](std::int64_t i) {
    return reshape(one_hot(Tensor(i), n, target.dtype()), target.shape());
  });
  std::vector<Tensor> jacobians(sources.size());
  for (std::size_t s = 0; s < sources.size(); ++s) {
    if (!gradients[s][0].defined()) continue;
    jacobians[s] =
        n ? reshape(stack(gradients[s], 0), shapes[s]) : zeros(shapes[s], gradients[s][0].dtype());
  }
  return jacobians;
}

Tensor batch_jacobian_of(const char* op, TapeRecords& records, const Tensor& target,
                         const Tensor& source, SourceLocation at) {
  const Shape shape = jacobian_shape(op, target, source, 1, at);
  const std::int64_t rows = target.dim(0);
  std::int64_t n = 1;  // elements of a row
  for (int axis = 1; axis < target.rank(); ++axis) n *= target.dim(axis);
  const auto gradients = passes(records, target, {&source, 1}, rows ? n : 0, [&](std::int64_t i) {
    return reshape(broadcast_to(one_hot(Tensor(i), n, target.dtype()), {rows, n}), target.shape());
  })[0];
  if (!gradients[0].defined()) return {};
  if (shape.num_elements() == 0) return zeros(shape, gradients[0].dtype());
  return reshape(stack(gradients, 1), shape);
}

}  // namespace lockstep
