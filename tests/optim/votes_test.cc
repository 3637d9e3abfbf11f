// SPDX-License-Identifier: Apache-2.0
// Which steps a vote skips, and when it ends.
#include <lockstep/lockstep.h>

#include <stdexcept>

#include "support/strategies.h"

namespace lockstep::optim {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

using testing::items;

class Votes : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(Votes);

Tensor is_replica(int index) {
  return equal(get_replica_context()->replica_id_in_sync_group(), index);
}

TEST_P(Votes, OfOneReplicaSkipTheStepOfAll) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(1.0f));
    SGD optimizer({.learning_rate = 1});
    for (int step = 0; step < 3; ++step)
      strategy.run([&] {
        ReplicaContext& context = *get_replica_context();
        if (step == 1) {
          context.vote_skip(Tensor(false));
          context.vote_skip(is_replica(1));
          context.vote_skip(Tensor(false));
        }
        optimizer.apply_gradients({Tensor(1.0f)}, {w});
      });
    EXPECT_THAT(items(w.local_values()), Each(1 - 2 * 2));
    EXPECT_EQ(optimizer.iterations().read().item<int>(), 2);
    EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 3);
  });
}

TEST_P(Votes, SkipTheReplicasOwnStepWhereNothingIsAggregated) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(1.0f));
    SGD optimizer({.learning_rate = 1});
    std::vector<float> expected;
    for (const Tensor& id : strategy.run([&] {
           get_replica_context()->vote_skip(is_replica(1));
           optimizer.apply_gradients({Tensor(4.0f)}, {w}, {.aggregate = false});
           return get_replica_context()->replica_id_in_sync_group();
         }))
      expected.push_back(id.item<int>() == 1 ? 1 : -3);
    EXPECT_EQ(items<float>(w.local_values()), expected);
    // And no other step.
    strategy.run([&] { optimizer.apply_gradients({Tensor(4.0f)}, {w}, {.aggregate = false}); });
    for (float& value : expected) value -= 4;
    EXPECT_EQ(items<float>(w.local_values()), expected);
  });
}

TEST_P(Votes, EndWithAStepThatFails) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(1.0f));
    SGD optimizer({.learning_rate = 1});
    EXPECT_ANY_THROW(strategy.run([&] {
      get_replica_context()->vote_skip(Tensor(true));
      throw std::runtime_error("in the step");
    }));
    if (strategy.num_local_replicas() < 2) return;  // workers: the strategy is over
    strategy.run([&] { optimizer.apply_gradients({Tensor(1.0f)}, {w}); });
    EXPECT_THAT(items(w.local_values()), Each(1 - 2));
  });
}

TEST(VotesWithoutAStrategy, SkipAStepWithoutAggregation) {
  const Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 1});
  get_replica_context()->vote_skip(Tensor(true));
  optimizer.apply_gradients({Tensor(1.0f)}, {w}, {.aggregate = false});
  EXPECT_EQ(w.read().item<float>(), 2);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 0);
  optimizer.apply_gradients({Tensor(1.0f)}, {w}, {.aggregate = false});
  optimizer.apply_gradients({Tensor(1.0f)}, {w});
  EXPECT_EQ(w.read().item<float>(), 0);
}

TEST(VotesWithoutAStrategy, EndWithAnOptimizersStepThatFails) {
  const Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 1});
  get_replica_context()->vote_skip(Tensor(true));
  {
    GradientTape tape;
    EXPECT_THROW(optimizer.minimize(Tensor(), {w}, tape), InvalidArgument);
  }
  optimizer.apply_gradients({Tensor(1.0f)}, {w});
  EXPECT_EQ(w.read().item<float>(), 1);
  get_replica_context()->vote_skip(Tensor(true));
  EXPECT_THROW(optimizer.apply_gradients({zeros({7})}, {w}), InvalidArgument);
  optimizer.apply_gradients({Tensor(1.0f)}, {w});
  EXPECT_EQ(w.read().item<float>(), 0);
}

TEST(VotesWithoutAStrategy, CanBeTakenBack) {
  const Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 1});
  ReplicaContext& context = *get_replica_context();
  EXPECT_FALSE(context.take_vote().item<bool>());
  context.vote_skip(Tensor(true));
  EXPECT_TRUE(context.take_vote().item<bool>());
  optimizer.apply_gradients({Tensor(1.0f)}, {w});
  EXPECT_EQ(w.read().item<float>(), 1);
}

// A traced step writes both ways and selects: what it writes is the replica's own component.
TEST_P(Votes, DoNotSumVariablesThatAggregateWhenAssigned) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(8.0f), {.aggregation = VariableAggregation::sum});
    SGD optimizer({.learning_rate = 1});
    for (int step = 0; step < 2; ++step)
      strategy.run([&] {
        get_replica_context()->vote_skip(Tensor(step == 1));
        optimizer.apply_gradients({Tensor(1.0f)}, {w});
      });
    EXPECT_THAT(items(w.local_values()), Each(8 - 2));
  });
}

TEST_P(Votes, AveragesAreFinalizedComponentByComponent) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(8.0f), {.aggregation = VariableAggregation::sum});
    SGD optimizer({.learning_rate = 1, .ema = {.use = true, .momentum = 0.5}});
    std::vector<float> expected;
    const auto step = [&] {
      const Tensor id = get_replica_context()->replica_id_in_sync_group();
      optimizer.apply_gradients({cast(id, DType::f32)}, {w}, {.aggregate = false});
      return id;
    };
    for (int i = 0; i < 2; ++i) {
      expected.clear();
      for (const Tensor& id : strategy.run(step))
        expected.push_back(8 - 1.5f * static_cast<float>(id.item<int>()));
    }
    if (strategy.num_local_replicas() == 2) {  // in the step
      strategy.run([&] { optimizer.finalize_variable_values(std::vector{w}); });
      EXPECT_EQ(items<float>(w.local_values()), expected);
    }
    strategy.run(step);
    const std::vector<float> averages = items<float>(optimizer.slot(w, "average").local_values());
    optimizer.finalize_variable_values(std::vector{w});
    EXPECT_EQ(items<float>(w.local_values()), averages);
  });
}

}  // namespace
}  // namespace lockstep::optim
