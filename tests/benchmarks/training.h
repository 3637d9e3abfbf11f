// SPDX-License-Identifier: Apache-2.0
// The training step of the benchmarks.
#pragma once

#include <lockstep/lockstep.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models.h"

namespace benchmark {

// A model under a strategy, random rows for each replica, and gradient descent.
class Training {
 public:
  Training(ls::Strategy strategy, const std::string& model)
      : strategy_(std::move(strategy)),
        scope_(strategy_.scope()),
        model_(make_model(model)),
        optimizer_({.learning_rate = 0.01}),
        batch_(make_batch()) {}

  // How many numbers are trained.
  std::int64_t parameters() const {
    std::int64_t count = 0;
    for (const ls::Variable& variable : model_.layers.trainable_variables())
      count += variable.shape().num_elements();
    return count;
  }

  // Forward, backward, update, and the loss as a number.
  float step() {
    const auto train_step = [this](const Example& batch) {
      ls::GradientTape tape;
      const ls::Tensor logits = model_.layers(batch.input, {.training = true});
      ls::Tensor losses = ls::nn::sparse_softmax_cross_entropy(batch.label, logits);
      if (model_.tokens) losses = ls::mean(losses, {.axes = {1}});
      const ls::Tensor loss = ls::nn::compute_average_loss(losses);
      optimizer_.minimize(loss, model_.layers.trainable_variables(), tape);
      return loss;
    };
    return strategy_.reduce(ls::ReduceOp::sum, strategy_.run(train_step, batch_)).item<float>();
  }

 private:
  ls::PerReplica<Example> make_batch() const {
    std::vector<Example> examples;
    for (std::uint32_t replica = 0; replica < strategy_.num_local_replicas(); ++replica)
      examples.push_back(model_.random_example(replica));
    const std::vector<std::int64_t> rows(examples.size(), model_.input[0]);
    const std::int64_t all_rows = model_.input[0] * static_cast<std::int64_t>(examples.size());
    return ls::PerReplica<Example>(std::move(examples), ls::ReplicaKind::per_replica,
                                   ls::BatchRows{rows, all_rows});
  }

  ls::Strategy strategy_;
  ls::Strategy::Scope scope_;
  Model model_;
  ls::optim::SGD optimizer_;
  ls::PerReplica<Example> batch_;
};

}  // namespace benchmark
