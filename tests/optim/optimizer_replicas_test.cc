// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include <memory>
#include <string>
#include <thread>

namespace lockstep::optim {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MirroredStrategy replicas(int count, ReplicaThreads threads = ReplicaThreads::concurrent) {
  MirroredOptions options{.replica_threads = threads};
  for (int i = 0; i < count; ++i) options.devices.push_back("CPU:" + std::to_string(i));
  return MirroredStrategy(options);
}

int index() { return get_replica_context()->replica_index(); }

std::vector<std::vector<float>> components(const Variable& variable) {
  std::vector<std::vector<float>> values;
  for (const Tensor& value : variable.local_values()) values.push_back(value.to_vector<float>());
  return values;
}

// One step of problem T, of weight w and per-example loss (w x - 1)^2, on these x.
float step_of_T(const Strategy& strategy, Optimizer& optimizer, const Variable& w,
                std::vector<float> x) {
  float loss = 0;
  const auto n = static_cast<std::int64_t>(x.size());
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Tensor({n}, std::span<const float>(x))).batch(4));
  for (const auto& batch : batches)
    loss = strategy
               .reduce(ReduceOp::sum,
                       strategy.run(
                           [&](const Tensor& mine) {
                             GradientTape tape;
                             const auto rows = get_replica_context()->batch_rows()->global;
                             const Tensor sum_of_losses = sum(square(w * mine - 1.0f));
                             const Tensor part = sum_of_losses / static_cast<double>(rows);
                             optimizer.minimize(part, {w}, tape);
                             return part;
                           },
                           batch))
               .item<float>();
  return loss;
}

class Replicas : public ::testing::TestWithParam<std::tuple<int, ReplicaThreads>> {
 protected:
  int count() const { return std::get<0>(GetParam()); }
  MirroredStrategy strategy_ = replicas(std::get<0>(GetParam()), std::get<1>(GetParam()));
};

INSTANTIATE_TEST_SUITE_P(Minimize, Replicas,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::Values(ReplicaThreads::concurrent,
                                                              ReplicaThreads::one_at_a_time)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == ReplicaThreads::concurrent
                                       ? "Concurrent"
                                       : "OneAtATime");
                         });

TEST_P(Replicas, S01_GlobalBatchScaling) {
  const auto scope = strategy_.scope();
  Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 0.1});
  EXPECT_EQ(step_of_T(strategy_, optimizer, w, {1, 2, 3, 4}), 21);
  EXPECT_THAT(components(w), Each(ElementsAre(-0.5f)));
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
}

TEST_P(Replicas, S02_PartialBatchWithReplicasThatGetNothing) {
  const auto scope = strategy_.scope();
  Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 1});
  // Gradients 2 and 12 over two rows: 7.
  EXPECT_EQ(step_of_T(strategy_, optimizer, w, {1, 2}), 5);
  EXPECT_THAT(components(w), Each(ElementsAre(2 - 7)));
}

TEST_P(Replicas, S06_DataIndependentTermCountsOnce) {
  const auto scope = strategy_.scope();
  Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 1});
  strategy_.run([&] {
    GradientTape tape;
    const Tensor penalty = square(w) * 0.1f;
    optimizer.minimize(penalty / static_cast<double>(get_replica_context()->num_replicas_in_sync()),
                       {w}, tape);
  });
  for (const auto& component : components(w)) EXPECT_NEAR(component[0], 2 - 0.4f, 1e-6);
}

TEST_P(Replicas, ManyStepsOfAdamKeepReplicasBitwiseEqual) {
  const auto scope = strategy_.scope();
  Variable a(full({130}, 0.5), {.name = "a"}), b(full({3, 3}, -0.25), {.name = "b"});
  Adam optimizer({.learning_rate = 0.1, .clip = {.global_norm = 1}});
  for (int step = 0; step < 20; ++step)
    strategy_.run([&] {
      GradientTape tape;
      const double mine = 0.37 * (index() + 1) + 0.1 * step;
      optimizer.minimize(sum(square(a * mine - 1.0)) + sum(square(b) * mine), {a, b}, tape);
    });
  testing::require_equal_replicas(std::vector{a, b, optimizer.slot(a, "m"), optimizer.slot(b, "v"),
                                              optimizer.iterations(), optimizer.steps_attempted()});
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 20);
}

TEST(ApplyGradientsInReplicas, OPT_01_SumsGradientsUnlessToldNotTo) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  for (const bool aggregate : {true, false}) {
    Variable v(zeros({2}));
    SGD optimizer({.learning_rate = 0.1});
    strategy.run([&] {
      optimizer.apply_gradients(
          {index() == 0 ? Tensor({2}, {1.0f, 1.0f}) : Tensor({2}, {2.0f, 2.0f})}, {v},
          {.aggregate = aggregate});
    });
    const auto near = [](float x) { return Each(::testing::FloatNear(x, 1e-7f)); };
    if (aggregate)
      EXPECT_THAT(components(v), ElementsAre(near(-0.3f), near(-0.3f)));
    else
      EXPECT_THAT(components(v), ElementsAre(near(-0.1f), near(-0.2f)));
    EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
  }
}

TEST(GradientsInReplicas, OPT_03_AreEachReplicasOwn) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f));
  std::vector<float> of_input;
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Tensor({4}, {5.0f, 6.0f, 7.0f, 8.0f})).batch(2));
  for (const auto& batch : batches) {
    const auto gradients = strategy.run(
        [&](const Tensor& x) {
          GradientTape tape({.persistent = true});
          tape.watch(x);
          return std::pair(tape.gradient(x * x, {x})[0], tape.gradient(v * v, {v})[0]);
        },
        batch);
    for (const auto& [of_x, of_v] : gradients) {
      of_input.push_back(of_x.item<float>());
      EXPECT_EQ(of_v.item<float>(), 2);
    }
  }
  EXPECT_THAT(of_input, ElementsAre(10, 12, 14, 16));
}

TEST(ApplyGradientsInReplicas, OPT_04_ClipsTheSum) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable v(Tensor(5.0f));
  SGD optimizer({.learning_rate = 2, .clip = {.value = 2}});
  strategy.run([&] { optimizer.apply_gradients({Tensor(2.0f)}, {v}); });
  EXPECT_THAT(components(v), Each(ElementsAre(1)));
}

TEST(ApplyGradientsInReplicas, S05_ClipsByGlobalNormAfterAggregation) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable w(zeros({2}));
  SGD optimizer({.learning_rate = 1, .clip = {.global_norm = 1}});
  strategy.run([&] {
    optimizer.apply_gradients(
        {index() == 0 ? Tensor({2}, {3.0f, 0.0f}) : Tensor({2}, {0.0f, 4.0f})}, {w});
  });
  for (const auto& component : components(w)) {
    EXPECT_NEAR(component[0], -0.6, 1e-6);
    EXPECT_NEAR(component[1], -0.8, 1e-6);
  }
}

// Replica 0 uses a and b, replica 1 a only, before or after; c is used by nobody.
TEST(MinimizeInReplicas, S40_UnusedVariables) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  for (const bool other_order : {false, true}) {
    Variable a(Tensor(1.0f), {.name = "a"}), b(Tensor(2.0f), {.name = "b"}),
        c(Tensor(3.0f), {.name = "c"});
    SGD optimizer({.learning_rate = 1, .momentum = 0.5});
    optimizer.build(std::vector{a, b, c});
    strategy.run([&] {
      GradientTape tape;
      Tensor loss;
      if (index() == 1)
        loss = a * 10.0f;
      else if (other_order)
        loss = b * 5.0f + a * 1.0f;
      else
        loss = a * 1.0f + b * 5.0f;
      optimizer.minimize(loss, {a, b, c}, tape);
    });
    EXPECT_THAT(components(a), Each(ElementsAre(1 - 11)));
    EXPECT_THAT(components(b), Each(ElementsAre(2 - 5)));
    EXPECT_THAT(components(c), Each(ElementsAre(3)));
    EXPECT_THAT(components(optimizer.slot(b, "velocity")), Each(ElementsAre(-5)));
    EXPECT_THAT(components(optimizer.slot(c, "velocity")), Each(ElementsAre(0)));
  }
}

TEST(MinimizeInReplicas, OneVoteSkipsTheStepEverywhere) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable w(Tensor(1.0f));
  Adam optimizer({.learning_rate = 1});
  for (int step = 0; step < 3; ++step)
    strategy.run([&] {
      GradientTape tape;
      const Tensor loss = w * 2.0f;
      if (step == 1 && index() == 1) get_replica_context()->vote_skip(Tensor(true));
      optimizer.minimize(loss, {w}, tape);
    });
  testing::require_equal_replicas(std::vector{w, optimizer.slot(w, "m")});
  // Two steps of the rate each.
  EXPECT_NEAR(w.read().item<float>(), -1, 1e-5);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 2);
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 3);
}

TEST(MinimizeInReplicas, AReplicaThatFailsLeavesAllWeights) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable w(Tensor(1.0f));
  SGD optimizer({.learning_rate = 1});
  const auto step = [&](bool fails) {
    strategy.run([&] {
      GradientTape tape;
      const Tensor loss = w * 2.0f;
      if (fails && index() == 1) throw std::runtime_error("no luck");
      optimizer.minimize(loss, {w}, tape);
    });
  };
  EXPECT_THROW(step(true), std::runtime_error);
  EXPECT_THAT(components(w), Each(ElementsAre(1)));
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 0);
  step(false);
  EXPECT_THAT(components(w), Each(ElementsAre(1 - 4)));
}

TEST(MinimizeInReplicas, RefusesOnAllReplicasWhenNobodyUsesAVariable) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable w(Tensor(1.0f));
  SGD optimizer;
  EXPECT_THROW(strategy.run([&] { optimizer.apply_gradients({Tensor()}, {w}); }), InvalidArgument);
  // One replica is enough.
  strategy.run([&] { optimizer.apply_gradients({index() == 0 ? Tensor(100.0f) : Tensor()}, {w}); });
  EXPECT_THAT(components(w), Each(ElementsAre(0)));
}

TEST(OptimizerContext, BelongsIntoTheStepFunction) {
  const MirroredStrategy strategy = replicas(2);
  Variable outside(Tensor(1.0f), {.name = "outside"});
  SGD made_outside;
  const auto refused = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const FailedPrecondition& error) {
      return error.message();
    }
    return "accepted";
  };
  std::unique_ptr<Variable> w;
  std::unique_ptr<SGD> optimizer;
  {
    const auto scope = strategy.scope();
    w = std::make_unique<Variable>(Tensor(1.0f), VariableOptions{.name = "w"});
    optimizer = std::make_unique<SGD>();
    EXPECT_THAT(refused([&] { optimizer->apply_gradients({Tensor(1.0f)}, {*w}); }),
                AllOf(HasSubstr("[Optimizer::apply_gradients]"), HasSubstr("Strategy::run")));
    EXPECT_THAT(refused([&] {
                  GradientTape tape;
                  optimizer->minimize(square(*w), {*w}, tape);
                }),
                AllOf(HasSubstr("[Optimizer::minimize]"), HasSubstr("Strategy::run")));
  }
  EXPECT_THAT(refused([&] { optimizer->apply_gradients({Tensor(1.0f)}, {*w}); }),
              HasSubstr("Strategy::run"))
      << "after the scope";
  EXPECT_THAT(
      refused([&] { strategy.run([&] { made_outside.apply_gradients({Tensor(1.0f)}, {*w}); }); }),
      HasSubstr("strategy.scope()"));
  EXPECT_THAT(refused([&] {
                strategy.run([&] { optimizer->apply_gradients({Tensor(1.0f)}, {outside}); });
              }),
              AllOf(HasSubstr("'outside'"), HasSubstr("strategy.scope()")));
  EXPECT_THAT(components(*w), Each(ElementsAre(1)));
}

TEST(LearningRateInReplicas, ChangesOnAllReplicas) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable w(Tensor(0.0f));
  SGD optimizer({.learning_rate = 1});
  optimizer.set_learning_rate(10);
  strategy.run([&] { optimizer.apply_gradients({Tensor(1.0f)}, {w}); });
  EXPECT_THAT(components(w), Each(ElementsAre(-20)));
}

}  // namespace
}  // namespace lockstep::optim
