// SPDX-License-Identifier: Apache-2.0
// Updates that break off on one replica, when others may have changed their weights already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include <stdexcept>
#include <vector>

#include "support/errors.h"
#include "support/quiet_log.h"
#include "support/replicas.h"

namespace lockstep::optim {
namespace {

using testing::name_of;
using testing::replica_index;
using testing::replicas;
using testing::throws;

class BrokenUpdate : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  const MirroredStrategy strategy = replicas(2, GetParam());
  const Strategy::Scope scope = strategy.scope();

  static void step(const Strategy& strategy, Optimizer& optimizer,
                   const std::vector<Variable>& variables) {
    std::vector<Tensor> gradients;
    for (const Variable& variable : variables) gradients.push_back(ones(variable.shape()));
    strategy.run([&] { optimizer.apply_gradients(gradients, variables); });
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, BrokenUpdate, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(BrokenUpdate, OutOfMemoryOnOneReplicaLeavesAllInvalid) {
  constexpr std::int64_t kMiB = 1 << 20;
  const Device second{DeviceKind::cpu, 1};
  const std::vector<Variable> variables{Variable(zeros({kMiB}), {.name = "w"}),
                                        Variable(zeros({2}), {.name = "unlucky"})};
  SGD sgd({.learning_rate = 0.25, .momentum = 0.5});
  step(strategy, sgd, variables);
  testing::require_equal_replicas(variables);
  {
    // Weights that somebody holds are not updated in place: replica 1 has no memory for the copy.
    const auto held = strategy.run([&] { return variables[0].read(); });
    set_memory_limit(second, memory_stats(second).in_use + kMiB);
    EXPECT_THAT([&] { step(strategy, sgd, variables); },
                throws<ResourceExhausted>("CPU:1", "replica 1"));
    set_memory_limit(second, 0);
  }
  EXPECT_THAT([&] { step(strategy, sgd, variables); },
              throws<FailedPrecondition>("invalid", "replica 1", "CPU:1", "assign"));
  std::vector<Variable> concerned = variables;
  for (const Variable& variable : variables) concerned.push_back(sgd.slot(variable, "velocity"));
  concerned.insert(concerned.end(), {sgd.iterations(), sgd.steps_attempted()});
  for (const Variable& variable : concerned) {
    EXPECT_THAT([&] { variable.read(); },
                throws<FailedPrecondition>("[Variable::read]", variable.name(), "replica 1"));
    EXPECT_FALSE(variable.valid());
  }
  for (Variable& variable : concerned) variable.assign(zeros(variable.shape(), variable.dtype()));
  step(strategy, sgd, variables);
  testing::require_equal_replicas(concerned);
  EXPECT_EQ(variables[1].read().to_vector<float>(), (std::vector{-0.5f, -0.5f}));
  EXPECT_EQ(sgd.iterations().read().item<int>(), 1);
}

// Fails in the update of one variable on one replica.
class Unreliable final : public Optimizer {
 public:
  Unreliable() : Optimizer({.learning_rate = 1.0}, {}, SourceLocation{}) {}

 protected:
  void update(const Update& update) const override {
    if (update.variable.name() == "second" && replica_index() == 1)
      throw std::runtime_error("no such luck");
    Variable(update.variable).assign_sub(update.gradient);
  }
};

TEST_P(BrokenUpdate, AnyExceptionDoesWhateverTheStepMakesOfIt) {
  const testing::QuietLog quiet;
  const std::vector<Variable> variables{Variable(zeros({1}), {.name = "first"}),
                                        Variable(zeros({1}), {.name = "second"})};
  const Variable bystander(zeros({1}), {.name = "bystander"});
  Unreliable optimizer;
  strategy.run([&] {
    try {
      optimizer.apply_gradients({ones({1}), ones({1})}, {variables[0], variables[1]});
    } catch (const std::runtime_error&) {
    }
  });
  for (const Variable& variable : variables)
    EXPECT_THAT([&] { variable.read(); },
                throws<FailedPrecondition>(variable.name(), "replica 1", "no such luck"));
  EXPECT_EQ(bystander.read().item<float>(), 0);
}

TEST_P(BrokenUpdate, AScheduleThatThrowsComesBeforeTheCommitPoint) {
  const testing::QuietLog quiet;
  const Variable w(zeros({1}));
  bool fails = true;
  SGD sgd({.learning_rate = [&fails](const Tensor& number) {
    if (fails && replica_index() == 1) throw std::runtime_error("no rate today");
    return cast(number, DType::f64) * 0.0 + 0.5;
  }});
  EXPECT_THAT([&] { step(strategy, sgd, {w}); }, throws<std::runtime_error>("no rate"));
  EXPECT_EQ(w.read().item<float>(), 0);
  fails = false;
  step(strategy, sgd, {w});
  EXPECT_EQ(w.read().item<float>(), -1);
  testing::require_equal_replicas(std::vector{w});
}

}  // namespace
}  // namespace lockstep::optim
