// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_id;
using lockstep::testing::replicas;
using lockstep::testing::vec;
using ::testing::Each;
using ::testing::FloatEq;
using ::testing::Pointwise;

class Optimizer : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  const MirroredStrategy strategy = replicas(2, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Modes, Optimizer, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

// The components of a variable after one step of SGD 0.1 with gradients [1, 1] and [2, 2].
std::vector<std::vector<float>> after_one_step(const Strategy& strategy, bool aggregate) {
  const auto scope = strategy.scope();
  const Variable v(vec({0, 0}));
  optim::SGD sgd({.learning_rate = 0.1});
  strategy.run(
      [&] { sgd.apply_gradients({full({2}, replica_id() + 1)}, {v}, {.aggregate = aggregate}); });
  std::vector<std::vector<float>> components;
  for (const Tensor& value : v.local_values()) components.push_back(value.to_vector<float>());
  return components;
}

TEST_P(Optimizer, OPT01_AggregatedGradientsReachEveryReplica) {
  for (const auto& component : after_one_step(strategy, true))
    EXPECT_THAT(component, Pointwise(::testing::FloatEq(), {-0.3f, -0.3f}));
}

TEST_P(Optimizer, OPT01_WithoutAggregationReplicasGoTheirOwnWay) {
  const auto components = after_one_step(strategy, false);
  EXPECT_THAT(components[0], Pointwise(::testing::FloatEq(), {-0.1f, -0.1f}));
  EXPECT_THAT(components[1], Pointwise(::testing::FloatEq(), {-0.2f, -0.2f}));
}

TEST_P(Optimizer, OPT03_GradientsOfTheReplicasOwnRows) {
  const auto batches =
      strategy.distribute_dataset(data::from_tensor_slices(vec({5, 6, 7, 8})).batch(2));
  std::vector<std::vector<double>> steps;
  for (const auto& batch : batches)
    steps.push_back(items(strategy.run(
        [](const Tensor& x) {
          GradientTape tape;
          tape.watch(x);
          return tape.gradient(x * x, {x})[0];
        },
        batch)));
  EXPECT_EQ(steps, (std::vector<std::vector<double>>{{10, 12}, {14, 16}}));
}

TEST_P(Optimizer, OPT03_TheTapesGradientsAreLocal) {
  const auto scope = strategy.scope();
  const Variable v(Tensor(1.0f));
  const auto gradients = strategy.run([&] {
    GradientTape tape;
    return tape.gradient(v * v, std::vector{v})[0];
  });
  EXPECT_EQ(gradients.size(), 2u);
  EXPECT_THAT(items(gradients), Each(2));
}

TEST_P(Optimizer, OPT04_ValuesAreClippedAfterTheSum) {
  const auto scope = strategy.scope();
  const Variable v(Tensor(5.0f));
  optim::SGD sgd({.learning_rate = 2, .clip = {.value = 2}});
  strategy.run([&] { sgd.apply_gradients({Tensor(2.0f)}, {v}); });
  EXPECT_THAT(items(v.local_values()), Each(1)) << "-3 would be clipped before the sum";
}

}  // namespace
}  // namespace lockstep
