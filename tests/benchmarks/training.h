// SPDX-License-Identifier: Apache-2.0
// The models of the benchmarks and their training step; peers/torch_models.py is the same in
// PyTorch.
#pragma once

#include <lockstep/lockstep.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "random_data.h"

namespace benchmark {

struct Example {
  ls::Tensor image, label;
};

struct Model {
  ls::nn::Sequential layers;
  ls::Shape image;  // a batch of kRows
};

inline Model make_model(const std::string& name) {
  namespace nn = ls::nn;
  if (name == "mlp")
    return {nn::Sequential{nn::Dense(784, 512, {.activation = nn::relu}),
                           nn::Dense(512, 512, {.activation = nn::relu}), nn::Dense(512, kClasses)},
            {kRows, 784}};
  if (name == "lenet")
    return {
        nn::Sequential{nn::Conv2D(1, 32, {.activation = nn::relu}), nn::MaxPool2D(),
                       nn::Conv2D(32, 64, {.activation = nn::relu}), nn::MaxPool2D(), nn::Flatten(),
                       nn::Dense(1600, 128, {.activation = nn::relu}), nn::Dense(128, kClasses)},
        {kRows, 28, 28, 1}};
  throw std::invalid_argument("no such model: " + name);
}

// A model under a strategy, kRows random rows for each replica, and gradient descent.
class Training {
 public:
  Training(ls::Strategy strategy, const std::string& model)
      : strategy_(std::move(strategy)),
        scope_(strategy_.scope()),
        model_(make_model(model)),
        optimizer_({.learning_rate = 0.01}),
        batch_(make_batch()) {}

  // Forward, backward, update, and the loss as a number.
  float step() {
    const auto train_step = [this](const Example& batch) {
      ls::GradientTape tape;
      const ls::Tensor logits = model_.layers(batch.image);
      const ls::Tensor loss =
          ls::nn::compute_average_loss(ls::nn::sparse_softmax_cross_entropy(batch.label, logits));
      optimizer_.minimize(loss, model_.layers.trainable_variables(), tape);
      return loss;
    };
    return strategy_.reduce(ls::ReduceOp::sum, strategy_.run(train_step, batch_)).item<float>();
  }

 private:
  ls::PerReplica<Example> make_batch() const {
    std::vector<Example> examples;
    for (std::uint32_t replica = 0; replica < strategy_.num_local_replicas(); ++replica)
      examples.push_back(
          {random_floats(model_.image, replica), random_labels(kRows, kClasses, replica)});
    const std::vector<std::int64_t> rows(examples.size(), kRows);
    const std::int64_t all_rows = kRows * static_cast<std::int64_t>(examples.size());
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
