// SPDX-License-Identifier: Apache-2.0
// What the tests of verify() share: rows, a model to write steps for, and how reports are read.
#pragma once

#include <gmock/gmock.h>
#include <lockstep/lockstep.h>

#include <vector>

#include "support/values.h"

namespace lockstep {

using lockstep::testing::Mistake;
using lockstep::testing::Noise;
using lockstep::testing::verify;
using lockstep::testing::VerifyOptions;
using lockstep::testing::VerifyReport;

struct Rows {
  Tensor x, y;
};

inline Rows rows(std::int64_t count = 8) {
  Noise noise(5);
  return {noise.tensor<float>({count, 4}), noise.tensor<float>({count, 3}, 2)};
}

// What all programs here are made of: a small network, SGD, and a step to be written.
struct Regression {
  explicit Regression(const optim::SGDOptions& options = {.learning_rate = 0.1})
      : optimizer(options) {}
  const std::vector<Variable>& variables() const { return model.trainable_variables(); }
  Tensor errors(const Rows& batch) const { return square(model(batch.x) - batch.y); }
  void minimize(const Tensor& loss, GradientTape& tape) {
    optimizer.minimize(loss, variables(), tape);
  }
  std::vector<Tensor> gradients(const Tensor& loss, GradientTape& tape) const {
    return tape.gradient(loss, variables());
  }
  Tensor penalty(double factor = 0.02) const { return nn::l2(factor)(model.variables()[0]); }

  nn::Sequential model{nn::Dense(4, 5, {.activation = nn::tanh}), nn::Dense(5, 3)};
  optim::SGD optimizer;
};

struct Right : Regression {
  using Regression::Regression;
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    minimize(loss, tape);
    return loss;
  }
};

inline double replica_count() { return get_replica_context()->num_replicas_in_sync(); }

inline VerifyOptions soon() { return {.deadline = std::chrono::seconds(2)}; }

template <class P>
VerifyReport report_of(const VerifyOptions& options = soon()) {
  return verify<P>(rows(), options);
}

inline std::vector<Mistake> named(const VerifyReport& report) {
  std::vector<Mistake> mistakes;
  for (const auto& finding : report.findings)
    mistakes.insert(mistakes.end(), finding.candidates.begin(), finding.candidates.end());
  return mistakes;
}

#define EXPECT_NAMED(report, ...) \
  EXPECT_THAT(named(report), ::testing::ElementsAre(__VA_ARGS__)) << (report).to_string()
#define EXPECT_RIGHT(report) EXPECT_TRUE((report).ok()) << (report).to_string()

}  // namespace lockstep
