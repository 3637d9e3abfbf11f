// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/telemetry/telemetry.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/sgd.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::name_of;
using lockstep::testing::reduced_gradients;
using lockstep::testing::replica_id;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;

// Gradients of one's own, without a tape; and how the tape's get there.
class Reduction : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count, std::int64_t bytes_per_pack = 0) const {
    return replicas(count, GetParam(), bytes_per_pack);
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, Reduction, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

std::unique_ptr<GradientReduction> start(std::span<const Variable> variables) {
  return get_replica_context()->begin_gradient_reduction(variables, SourceLocation::current());
}

// A variable of zeros of each shape.
std::vector<Variable> variables_of(std::initializer_list<Shape> shapes, DType dtype = DType::f32) {
  std::vector<Variable> variables;
  for (const Shape& shape : shapes)
    variables.emplace_back(zeros(shape, dtype),
                           VariableOptions{.name = "v" + std::to_string(variables.size())});
  return variables;
}

TEST_P(Reduction, SumsGradientsOfOnesOwn) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{2}, {2, 2}, {}});
  strategy.run([&] {
    const auto reduction = start(variables);
    reduction->ready(2, Tensor(replica_id()));
    reduction->ready(0, vec({1.0f, replica_id()}));
    reduction->ready(1, full({2, 2}, replica_index() + 1));
    const ReducedGradients reduced = reduction->finish();
    EXPECT_THAT(reduced.gradients[0], holds({3, 3}));
    EXPECT_THAT(reduced.gradients[1], holds({6, 6, 6, 6}));
    EXPECT_THAT(reduced.gradients[2], holds({3}));
    EXPECT_EQ(reduced.gradients[1].shape(), Shape({2, 2}));
    EXPECT_FALSE(reduced.skip.item<bool>());
  });
}

TEST_P(Reduction, AGradientWrittenInPlaceIsNotCopied) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{4}, {1000}});
  auto& copied = telemetry::counter("lockstep_gradient_copied_bytes_total");
  const std::int64_t before = copied.value();
  strategy.run([&] {
    const auto reduction = start(variables);
    for (const std::size_t i : {1u, 0u}) {
      const Buffer place = reduction->place(i);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place.data()) % 64, 0u);
      const auto count = variables[i].num_elements();
      std::fill_n(static_cast<float*>(place.data()), count, static_cast<float>(i) + replica_id());
      reduction->ready(i, Tensor(place, DType::f32, variables[i].shape()));
    }
    const ReducedGradients reduced = reduction->finish();
    EXPECT_THAT(reduced.gradients[0].to_vector<float>(), ::testing::Each(1));
    EXPECT_THAT(reduced.gradients[1].to_vector<float>(), ::testing::Each(3));
  });
  EXPECT_EQ(copied.value(), before);
}

TEST_P(Reduction, WhatSomeReplicasDoNotUseCountsAsZeroAndWhatNoneUsesAsNothing) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{2}, {2}, {2}});
  for (int repeat = 0; repeat < 3; ++repeat)
    strategy.run([&] {
      const auto reduction = start(variables);
      reduction->ready(0, vec({1, 2}));
      reduction->ready(1, replica_index() == 0 ? vec({5, 6}) : Tensor());
      reduction->ready(2, Tensor());
      const ReducedGradients reduced = reduction->finish();
      EXPECT_THAT(reduced.gradients[0], holds({2, 4}));
      EXPECT_THAT(reduced.gradients[1], holds({5, 6}));
      EXPECT_FALSE(reduced.gradients[2].defined());
    });
}

TEST_P(Reduction, ReplicasMayHaveTheirGradientsInAnyOrderAndChangeIt) {
  // The first step of replica 0 sets the order of the arena from the second step on.
  const auto strategy = make(2, 64);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{3}, {40}, {5}, {60}, {7}});
  for (int step = 0; step < 6; ++step)
    strategy.run([&] {
      const auto reduction = start(variables);
      for (std::size_t k = 0; k < variables.size(); ++k) {
        const bool forward = (step + replica_index()) % 2 == 0;
        const std::size_t i = forward ? k : variables.size() - 1 - k;
        reduction->ready(i, full(variables[i].shape(), static_cast<double>(i + 1) + step));
      }
      const ReducedGradients reduced = reduction->finish();
      for (std::size_t i = 0; i < variables.size(); ++i)
        EXPECT_THAT(reduced.gradients[i].to_vector<float>(),
                    ::testing::Each(2 * static_cast<float>(static_cast<int>(i) + 1 + step)))
            << "variable " << i << ", step " << step;
    });
}

TEST_P(Reduction, IntegersHaveNoGradients) {
  for (const int count : {1, 2}) {
    const auto strategy = make(count);
    const auto scope = strategy.scope();
    const std::vector<Variable> variables{Variable(Tensor(1), {.name = "step"})};
    EXPECT_THAT([&] { strategy.run([&] { start(variables); }); },
                throws<InvalidArgument>("'step'", "i32"));
  }
}

TEST_P(Reduction, MixedDTypesAreSummedInTheirOwn) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  std::vector<Variable> variables = variables_of({{2}});
  variables.push_back(variables_of({{2}}, DType::f64)[0]);
  variables.push_back(variables_of({{2}}, DType::bf16)[0]);
  variables.push_back(variables_of({{3}})[0]);
  strategy.run([&] {
    const auto reduction = start(variables);
    for (std::size_t i = 0; i < variables.size(); ++i)
      reduction->ready(i, full(variables[i].shape(), 1.5, variables[i].dtype()));
    const ReducedGradients reduced = reduction->finish();
    EXPECT_THAT(reduced.gradients[0], holds({3, 3}));
    EXPECT_THAT(reduced.gradients[1], holds<double>({3, 3}));
    EXPECT_THAT(reduced.gradients[2], holds<bfloat16>({bfloat16(3.0f), bfloat16(3.0f)}));
    EXPECT_THAT(reduced.gradients[3], holds({3, 3, 3}));
  });
}

TEST_P(Reduction, EmptyVariablesAndEmptyListsTakePart) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{0}, {2}});
  strategy.run([&] {
    EXPECT_TRUE(start({})->finish().gradients.empty());
    const auto reduction = start(variables);
    reduction->ready(1, vec({1, 2}));
    reduction->ready(0, zeros({0}));
    const ReducedGradients reduced = reduction->finish();
    EXPECT_EQ(reduced.gradients[0].shape(), Shape({0}));
    EXPECT_THAT(reduced.gradients[1], holds({2, 4}));
  });
}

TEST_P(Reduction, HeldGradientsKeepTheirValues) {
  const auto strategy = make(2, 64);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{20}, {30}});
  std::vector<std::vector<std::vector<Tensor>>> held(2);  // by replica and step
  constexpr int kSteps = 6;
  for (int step = 0; step < kSteps; ++step)
    strategy.run([&] {
      const auto reduction = start(variables);
      for (std::size_t i = 0; i < 2; ++i)
        reduction->ready(i, full(variables[i].shape(), step + 0.25));
      held[static_cast<std::size_t>(replica_index())].push_back(reduction->finish().gradients);
    });
  for (const auto& replica : held)
    for (int step = 0; step < kSteps; ++step)
      for (const Tensor& gradient : replica[static_cast<std::size_t>(step)])
        EXPECT_THAT(gradient.to_vector<float>(),
                    ::testing::Each(2 * static_cast<float>(step) + 0.5f))
            << "step " << step;
}

TEST_P(Reduction, SeveralReductionsInOneStep) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{4}});
  for (int step = 0; step < 5; ++step)
    strategy.run([&] {
      std::vector<Tensor> sums;
      for (int round = 0; round < 5; ++round) {
        const auto reduction = start(variables);
        reduction->ready(0, full({4}, round));
        sums.push_back(reduction->finish().gradients[0]);
      }
      for (int round = 0; round < 5; ++round)
        EXPECT_THAT(sums[static_cast<std::size_t>(round)].to_vector<float>(),
                    ::testing::Each(2 * static_cast<float>(round)));
    });
}

TEST_P(Reduction, TwoModelsHaveAPlanEach) {
  const auto strategy = make(2, 64);
  const auto scope = strategy.scope();
  const auto generator = variables_of({{10}, {20}}),
             discriminator = variables_of({{30}, {5}, {10}});
  for (int step = 0; step < 4; ++step)
    strategy.run([&] {
      const auto first = start(generator), second = start(discriminator);  // under way together
      for (std::size_t i = 0; i < 3; ++i)
        second->ready(i, full(discriminator[i].shape(), 10 + step));
      for (std::size_t i = 0; i < 2; ++i) first->ready(i, full(generator[i].shape(), step));
      const ReducedGradients b = second->finish(), a = first->finish();
      for (const Tensor& g : a.gradients)
        EXPECT_THAT(g.to_vector<float>(), ::testing::Each(2 * static_cast<float>(step)));
      for (const Tensor& g : b.gradients)
        EXPECT_THAT(g.to_vector<float>(), ::testing::Each(20 + 2 * static_cast<float>(step)));
    });
}

TEST_P(Reduction, AnotherListOfTheSameVariablesIsAnotherPlan) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto all = variables_of({{2}, {3}});
  const std::vector<Variable> one{all[1]}, swapped{all[1], all[0]};
  strategy.run([&] {
    for (const auto& list : {all, one, swapped, all}) {
      const auto reduction = start(list);
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Shape& shape = list[i].shape();
        reduction->ready(i, full(shape, static_cast<double>(shape[0])));
      }
      const ReducedGradients reduced = reduction->finish();
      for (std::size_t i = 0; i < list.size(); ++i)
        EXPECT_THAT(reduced.gradients[i].to_vector<float>(),
                    ::testing::Each(2 * static_cast<float>(list[i].shape()[0])));
    }
  });
}

TEST_P(Reduction, AReductionThatIsNeverFinishedLeavesTheStrategyUsable) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{2}, {3}});
  strategy.run([&] {
    const auto reduction = start(variables);
    reduction->ready(0, vec({1, 2}));
  });
  strategy.run([&] {
    const auto reduction = start(variables);
    reduction->ready(0, vec({1, 2}));
    reduction->ready(1, vec({1, 2, 3}));
    EXPECT_THAT(reduction->finish().gradients[1], holds({2, 4, 6}));
  });
}

TEST_P(Reduction, TheMemoryOfModelsThatAreGoneIsGivenBack) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto train_one = [&](std::int64_t size) {
    const auto model = variables_of({{size}});
    strategy.run([&] {
      const auto reduction = start(model);
      reduction->ready(0, zeros({size}));
      reduction->finish();
    });
  };
  const auto bytes = [] {
    return memory_stats({DeviceKind::cpu, 0}).in_use + memory_stats({DeviceKind::cpu, 1}).in_use;
  };
  const std::int64_t before = bytes();
  for (int i = 0; i < 20; ++i) train_one(1 << 18);
  for (int i = 0; i < 250; ++i) strategy.run([] {});
  EXPECT_LT(bytes() - before, 1 << 20);
  train_one(1 << 18);
}

TEST_P(Reduction, OneThatIsKeptBeyondItsStepStopsTheNextRunOnly) {
  const auto strategy = make(2, 1);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{2}, {3}});
  std::vector<std::unique_ptr<GradientReduction>> kept(2);
  strategy.run([&] {
    auto reduction = start(variables);
    if (replica_index() == 0) reduction->ready(1, vec({1, 2, 3}));
    get_replica_context()->global_count(1);  // replica 1 is still there when replica 0 submits
    kept[static_cast<std::size_t>(replica_index())] = std::move(reduction);
  });
  EXPECT_THAT([&] { strategy.run([] {}); }, throws<FailedPrecondition>("handle"));
  EXPECT_THAT(variables[0].read(), holds({0, 0})) << "no run is active";
  kept.clear();
  strategy.run([&] { EXPECT_EQ(get_replica_context()->global_count(1).item<int>(), 2); });
}

TEST_P(Reduction, RefusesWhatDoesNotFit) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const auto variables = variables_of({{2}, {3}});
  strategy.run([&] {
    const auto reduction = start(variables);
    EXPECT_THAT(
        [&] {
          reduction->ready(0, vec({1, 2, 3}));
        },
        throws<InvalidArgument>("[GradientReduction::ready]", "'v0'", "f32[2]", "f32[3]"));
    EXPECT_THAT(
        [&] {
          reduction->ready(0, vec<double>({1, 2}));
        },
        throws<InvalidArgument>("[GradientReduction::ready]", "f64"));
    EXPECT_THAT(
        [&] {
          reduction->ready(2, vec({1, 2}));
        },
        throws<InvalidArgument>("[GradientReduction::ready]", "2"));
    EXPECT_THAT([&] { reduction->place(7); },
                throws<InvalidArgument>("[GradientReduction::place]", "7"));
    EXPECT_THAT([&] { reduction->finish(); },
                throws<InvalidArgument>("[GradientReduction::finish]", "ready"));
    reduction->ready(0, vec({1, 2}));
    EXPECT_THAT(
        [&] {
          reduction->ready(0, vec({1, 2}));
        },
        throws<InvalidArgument>("[GradientReduction::ready]", "'v0'"));
    reduction->ready(1, vec({1, 2, 3}));
    EXPECT_THAT(reduction->finish().gradients[0], holds({2, 4}));
  });
}

TEST_P(Reduction, RefusesVariablesOfAnotherPlace) {
  const auto strategy = make(2);
  const std::vector<Variable> plain{Variable(vec({1, 2}), {.name = "plain"})};
  EXPECT_THAT([&] { strategy.run([&] { start(plain); }); },
              throws<FailedPrecondition>("'plain'", "scope"));
  const OneDeviceStrategy one;
  EXPECT_THAT([&] { one.run([&] { start(plain); }); },
              throws<FailedPrecondition>("'plain'", "scope"));
}

TEST_P(Reduction, TheListMayBeATemporary) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  const Variable v(vec({1, 2}));
  strategy.run([&] {
    const auto reduction = start(std::vector<Variable>(1, v));
    const std::vector<Variable> reuses_the_memory(3, v);
    reduction->ready(0, vec({3, 4}));
    EXPECT_THAT(reduction->finish().gradients[0], holds({6, 8}));
  });
}

TEST_P(Reduction, TheTapeWritesStraightIntoTheArena) {
  const auto strategy = make(2, 256);
  const auto scope = strategy.scope();
  std::vector<Variable> variables;
  for (int i = 0; i < 6; ++i) variables.emplace_back(full({100}, i + 1));
  auto& copied = telemetry::counter("lockstep_gradient_copied_bytes_total");
  const std::int64_t before = copied.value();
  strategy.run([&] {
    GradientTape tape;
    Tensor y = ones({100});
    for (const Variable& v : variables) y = y * v;
    const ReducedGradients reduced = reduced_gradients(variables, y, tape);
    // d(1 * 2 * ... * 6) / d i = 720 / i, from two replicas.
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_THAT(reduced.gradients[i].to_vector<float>(),
                  ::testing::Each(2 * 720.0f / static_cast<float>(i + 1)));
  });
  EXPECT_EQ(copied.value(), before);
}

}  // namespace
}  // namespace lockstep
