// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/tape.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/ops/conv.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/pool.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/ops/softmax.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/rows.h>

#include <functional>
#include <vector>

#include "support/sgd.h"
#include "support/values.h"

namespace lockstep::testing {

// Small networks written with bare ops and variables, in the element type T, and a training loop of
// the smallest kind: so that what is tested is the replication alone.

template <class T>
struct Mlp {
  using Element = T;
  static Shape input_shape(std::int64_t rows) { return {rows, 12}; }

  explicit Mlp(Noise& noise) {
    for (const auto& [in, out] : {std::pair{12, 16}, {16, 16}, {16, 4}}) {
      variables.emplace_back(noise.tensor<T>({in, out}, 0.4));
      variables.emplace_back(zeros({out}, dtype_of<T>));
    }
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor h = dense(x, variables[0], variables[1], Activation::tanh);
    return dense(dense(h, variables[2], variables[3], Activation::relu), variables[4],
                 variables[5]);
  }
  std::vector<Variable> variables;
};

template <class T>
struct LeNet {
  using Element = T;
  static Shape input_shape(std::int64_t rows) { return {rows, 12, 12, 1}; }

  explicit LeNet(Noise& noise) {
    variables.emplace_back(noise.tensor<T>({3, 3, 1, 4}, 0.5));
    variables.emplace_back(zeros({4}, dtype_of<T>));
    variables.emplace_back(noise.tensor<T>({3, 3, 4, 6}, 0.3));
    variables.emplace_back(zeros({6}, dtype_of<T>));
    variables.emplace_back(noise.tensor<T>({24, 4}, 0.4));
    variables.emplace_back(zeros({4}, dtype_of<T>));
  }
  Tensor operator()(const Tensor& x) const {
    Tensor h = conv2d(x, variables[0], variables[1], {.activation = Activation::tanh});
    h = avg_pool2d(h);  // [rows, 5, 5, 4]
    h = avg_pool2d(conv2d(h, variables[2], variables[3], {.activation = Activation::tanh}),
                   {.window = 2, .strides = 1});
    return dense(reshape(h, {x.dim(0), 24}), variables[4], variables[5]);
  }
  std::vector<Variable> variables;
};

// Trains a Network for `steps` global batches of 10 rows (which four replicas get unevenly), the
// same for every strategy; after_step sees the variables after each.
template <class Network>
void train(const Strategy& strategy, int steps,
           const std::function<void(std::span<const Variable>)>& after_step) {
  using T = typename Network::Element;
  constexpr std::int64_t rows = 10;
  Noise noise(11);
  const auto scope = strategy.scope();
  const Network network(noise);
  for (int step = 0; step < steps; ++step) {
    const Tensor x = noise.tensor<T>(Network::input_shape(rows));
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < rows; ++i) labels.push_back((step + i) % 4);
    const Tensor y(Shape{rows}, std::span<const std::int64_t>(labels));
    strategy.run([&] {
      const ReplicaContext& context = *get_replica_context();
      const RowRange mine =
          rows_of_part(rows, context.num_replicas_in_sync(), context.replica_index());
      GradientTape tape;
      const Tensor losses =
          sparse_softmax_cross_entropy(slice_rows(y, mine), network(slice_rows(x, mine)));
      sgd_step(network.variables, sum(losses) / static_cast<double>(rows), tape, 0.1);
    });
    after_step(network.variables);
  }
}

// Every weight of the first replica after so many steps.
template <class Network>
auto weights_after(const Strategy& strategy, int steps) {
  using T = typename Network::Element;
  std::vector<std::vector<T>> weights;
  train<Network>(strategy, steps, [&, step = 0](std::span<const Variable> variables) mutable {
    if (++step < steps) return;
    for (const Variable& variable : variables)
      weights.push_back(variable.read().template to_vector<T>());
  });
  return weights;
}

}  // namespace lockstep::testing
