// SPDX-License-Identifier: Apache-2.0
// What holds of all optimizers.
#include <gmock/gmock.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/distribute/tpu.h>
#include <lockstep/ops.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/replicas.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep::optim {
namespace {

using testing::Noise;

struct Named {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
};

template <class T, class Options>
Named named(const char* name, Options options) {
  return {name, [options] { return std::make_unique<T>(options); }};
}

// Rates are such that a step is about a hundredth of the weights.
std::vector<Named> every_optimizer() {
  return {
      named<SGD>("SGD", SGDOptions{.learning_rate = 0.01, .momentum = 0.5, .nesterov = true}),
      named<Adam>("Adam", AdamOptions{.learning_rate = 0.01, .amsgrad = true}),
      named<AdamW>("AdamW", AdamWOptions{.learning_rate = 0.01}),
      named<Adamax>("Adamax", AdamaxOptions{.learning_rate = 0.01, .weight_decay = 0.1}),
      named<Nadam>("Nadam", NadamOptions{.learning_rate = 0.01}),
      named<RMSprop>(
          "RMSprop",
          RMSpropOptions{
              .learning_rate = 0.005, .momentum = 0.5, .epsilon = 1e-3, .centered = true}),
      named<Adagrad>("Adagrad", AdagradOptions{.learning_rate = 0.05}),
      named<Adadelta>("Adadelta", AdadeltaOptions{.learning_rate = 1, .epsilon = 1e-4}),
      named<Ftrl>("Ftrl", FtrlOptions{.learning_rate = 0.05}),
      named<Lion>("Lion", LionOptions{.learning_rate = 0.01}),
      named<Lamb>("Lamb", LambOptions{.learning_rate = 0.01}),
      named<Lars>("Lars", LarsOptions{.learning_rate = 1, .weight_decay = 0.1}),
      named<Adafactor>("Adafactor", AdafactorOptions{.learning_rate = 0.02}),
      named<SGD>("SGDWithAverage",
                 SGDOptions{.learning_rate = 0.01,
                            .ema = {.use = true, .momentum = 0.5, .overwrite_frequency = 3}}),
  };
}

// Saves values by name and puts them back on a second walk, as a checkpoint does.
class Memory final : public StateVisitor {
 public:
  void visit(std::string_view name, Tensor& value) override {
    const std::string key(name);
    if (restoring)
      value = copy_to(values.at(key), value.device());
    else
      EXPECT_TRUE(values.emplace(key, copy_to(value, value.device())).second) << name;
  }
  void visit(std::string_view, std::int64_t&) override {}

  std::map<std::string, Tensor> values;
  bool restoring = false;
};

// A matrix and a vector, and the gradients of |w x - y|^2 for noise x and y of a seed.
struct Problem {
  Variable matrix{Noise(1).tensor<float>({6, 4}), {.name = "matrix"}};
  Variable vector{Noise(2).tensor<float>({4}), {.name = "vector"}};

  std::vector<Variable> variables() const { return {matrix, vector}; }
  Tensor loss(std::uint64_t seed) const {
    Noise noise(seed);
    const Tensor x = noise.tensor<float>({8, 6});
    return mean(square(matmul(x, matrix) + vector - noise.tensor<float>({8, 4})));
  }
  void step(Optimizer& optimizer, std::uint64_t seed) const {
    GradientTape tape;
    optimizer.minimize(loss(seed), variables(), tape);
  }
  std::vector<float> weights() const {
    std::vector<float> all = matrix.read().to_vector<float>();
    for (const float w : vector.read().to_vector<float>()) all.push_back(w);
    return all;
  }
};

class EveryOptimizer : public ::testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, ::testing::ValuesIn(every_optimizer()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryOptimizer, KeepsReplicasBitwiseEqual) {
  const MirroredStrategy strategy = testing::replicas(2);
  const auto scope = strategy.scope();
  const Problem problem;
  const auto optimizer = GetParam().make();
  const std::vector<float> before = problem.weights();
  for (std::uint64_t step = 0; step < 8; ++step)
    strategy.run([&] {
      problem.step(*optimizer, 10 * step + static_cast<std::uint64_t>(testing::replica_index()));
    });
  EXPECT_NE(problem.weights(), before);
  testing::require_equal_replicas(problem.variables());
  testing::require_equal_replicas(std::vector{optimizer->iterations()});
  EXPECT_EQ(optimizer->iterations().read().item<int>(), 8);
}

TEST_P(EveryOptimizer, ResumesFromItsState) {
  const Problem problem;
  const auto first = GetParam().make();
  for (std::uint64_t step = 0; step < 4; ++step) problem.step(*first, step);
  Memory memory;
  first->visit_state(memory);
  const std::vector<Tensor> saved{copy_to(problem.matrix.read(), Device{}),
                                  copy_to(problem.vector.read(), Device{})};
  for (std::uint64_t step = 4; step < 7; ++step) problem.step(*first, step);
  const std::vector<float> expected = problem.weights();

  Problem again;
  again.matrix.assign(saved[0]);
  again.vector.assign(saved[1]);
  const auto second = GetParam().make();
  second->build(again.variables());
  memory.restoring = true;
  second->visit_state(memory);
  for (std::uint64_t step = 4; step < 7; ++step) again.step(*second, step);
  EXPECT_EQ(again.weights(), expected);
}

TEST_P(EveryOptimizer, ComesDown) {
  const Problem problem;
  const auto optimizer = GetParam().make();
  const float before = problem.loss(3).item<float>();
  for (int step = 0; step < 60; ++step) problem.step(*optimizer, 3);
  EXPECT_LT(problem.loss(3).item<float>(), 0.97 * before);
}

TEST_P(EveryOptimizer, UpdatesHalves) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Variable w(cast(Noise(1).tensor<float>({6, 4}), dtype));
    const auto optimizer = GetParam().make();
    for (int step = 0; step < 5; ++step)
      optimizer->apply_gradients({cast(Noise(2).tensor<float>({6, 4}), dtype)}, {w});
    EXPECT_EQ(w.read().dtype(), dtype);
    EXPECT_TRUE(is_finite_all(std::vector{w.read()}).item<bool>());
  }
}

TEST_P(EveryOptimizer, UpdatesEmptyVariables) {
  const Variable w(zeros({0, 3}));
  const auto optimizer = GetParam().make();
  optimizer->apply_gradients({zeros({0, 3})}, {w});
  EXPECT_EQ(optimizer->iterations().read().item<int>(), 1);
}

// The same steps as a program, in which nothing is known of the step's number.
class EveryOptimizerXla : public EveryOptimizer {};
INSTANTIATE_TEST_SUITE_P(All, EveryOptimizerXla, ::testing::ValuesIn(every_optimizer()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryOptimizerXla, RunsAsOnCpus) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const auto trained = [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Problem problem;
    const auto optimizer = GetParam().make();
    for (int step = 0; step < 5; ++step) strategy.run([&] { problem.step(*optimizer, 10); });
    testing::require_equal_replicas(problem.variables());
    return problem.weights();
  };
  const std::vector<float> expected = trained(testing::replicas(2));
  const std::vector<float> got = trained(TPUStrategy({.replicas = 2}));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-5) << "weight " << i;
}

}  // namespace
}  // namespace lockstep::optim
