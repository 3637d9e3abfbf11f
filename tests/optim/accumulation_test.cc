// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <limits>
#include <stdexcept>

#include "support/errors.h"
#include "support/strategies.h"
#include "support/values.h"

namespace lockstep::optim {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::FloatNear;
using testing::items;
using testing::Noise;
using ::testing::Pointwise;

class Accumulation : public testing::OnStrategies {
 protected:
  // Of the calling replica.
  static Tensor own(const Tensor& rows) {
    const ReplicaContext& context = *get_replica_context();
    return slice_rows(
        rows, rows_of_part(rows.dim(0), context.num_replicas_in_sync(), context.replica_index()));
  }
};
LOCKSTEP_ON_STRATEGIES(Accumulation);

TEST_P(Accumulation, S11_FourMicroStepsOfOneExampleAreOneStep) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(2.0f));
    SGD sgd({.learning_rate = 0.1, .momentum = 0.9, .gradient_accumulation_steps = 2});
    const Tensor x({4}, {1.0f, 2.0f, 3.0f, 4.0f});
    for (int call = 0; call < 2; ++call) {
      strategy.run([&] {
        GradientTape tape;
        const Tensor mine = own(slice_rows(x, {2 * call, 2 * call + 2}));
        sgd.minimize(nn::compute_average_loss(square(w * mine - 1.0f), {.global_batch_size = 2}),
                     {w}, tape);
      });
      if (call == 0) {
        EXPECT_THAT(items(w.local_values()), Each(2)) << "nothing is updated yet";
        EXPECT_THAT(items(sgd.slot(w, "velocity").local_values()), Each(0));
        EXPECT_EQ(sgd.iterations().read().item<int>(), 0);
      }
    }
    // 0.75 would be the sum over replicas alone, -3 the sum of the means.
    EXPECT_THAT(items(w.local_values()), Each(DoubleNear(-0.5, 1e-6)));
    EXPECT_THAT(items(sgd.slot(w, "velocity").local_values()), Each(DoubleNear(-2.5, 1e-6)));
    EXPECT_EQ(sgd.iterations().read().item<int>(), 1);
    EXPECT_EQ(sgd.steps_attempted().read().item<int>(), 2);
  });
}

TEST_P(Accumulation, AddsUpWhereTheReplicaIs) {
  run(2, [&](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(2.0f));
    SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 3});
    std::vector<float> expected;
    for (int call = 0; call < 2; ++call)
      for (const Tensor& id : strategy.run([&] {
             const Tensor mine = get_replica_context()->replica_id_in_sync_group();
             sgd.apply_gradients({cast(mine, DType::f32) + 1.0f}, {w});
             return mine;
           }))
        if (call == 1) expected.push_back(2 * (id.item<float>() + 1));
    EXPECT_EQ(items<float>(sgd.slot(w, "accumulator").local_values()), expected)
        << "nothing is reduced before the last call";
    strategy.run([&] { sgd.apply_gradients({Tensor(0.0f)}, {w}); });
    EXPECT_THAT(items(w.local_values()), Each(DoubleNear(2 - (2.0 + 4.0) / 3, 1e-6)));
    EXPECT_THAT(items(sgd.slot(w, "accumulator").local_values()), Each(0));
  });
}

// The weights after two updates of two calls each, and of one call with all rows.
TEST_P(Accumulation, ComesToWhatTheWholeBatchDoes) {
  const auto train = [](const Strategy& strategy, std::int64_t calls, bool scaled) {
    const auto scope = strategy.scope();
    const Variable w(Noise(1).tensor<float>({5, 3})), unused(Tensor(7.0f));
    Adam adam({.learning_rate = 0.1,
               .clip = {.global_norm = 0.5},
               .ema = {.use = true},
               .gradient_accumulation_steps = calls});
    LossScaleOptimizer optimizer(adam);
    Noise noise(2);
    for (int update = 0; update < 2; ++update) {
      const Tensor x = noise.tensor<float>({16, 5});
      for (std::int64_t call = 0; call < calls; ++call)
        strategy.run([&] {
          const Tensor mine = own(slice_rows(x, {16 / calls * call, 16 / calls * (call + 1)}));
          GradientTape tape;
          const Tensor loss =
              sum(square(matmul(mine, w) - 1.0f)) / (16.0 / static_cast<double>(calls));
          if (scaled)
            optimizer.minimize(loss, {w, unused}, tape);
          else
            adam.minimize(loss, {w, unused}, tape);
        });
    }
    testing::require_equal_replicas(std::vector{w, adam.slot(w, "m"), adam.slot(w, "average")});
    EXPECT_EQ(adam.iterations().read().item<int>(), 2);
    EXPECT_EQ(unused.read().item<float>(), 7);
    return w.read().to_vector<float>();
  };
  for (const bool scaled : {false, true}) {
    const auto expected = train(MirroredStrategy({.devices = {"CPU:0"}}), 1, false);
    run(2, [&, this](const Strategy& strategy) {
      EXPECT_THAT(train(strategy, 2, scaled), Pointwise(FloatNear(2e-5f), expected));
      if (traced()) return;  // each takes XLA seconds to compile
      EXPECT_THAT(train(strategy, 4, scaled), Pointwise(FloatNear(2e-5f), expected));
    });
  }
}

TEST_P(Accumulation, ACallThatIsVotedOutIsAsIfItHadNotBeen) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(0.0f));
    SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
    const auto call = [&](float gradient, int voter) {
      strategy.run([&] {
        const Tensor id = get_replica_context()->replica_id_in_sync_group();
        get_replica_context()->vote_skip(equal(id, voter));
        sgd.apply_gradients({Tensor(gradient)}, {w});
      });
    };
    call(1, -1);
    call(100, 0);
    call(100, 1);
    EXPECT_THAT(items(w.local_values()), Each(0));
    call(2, -1);
    EXPECT_THAT(items(w.local_values()), Each(-(1 + 2) * 2 / 2));
    call(100, 1);
    call(3, -1);
    call(5, -1);
    EXPECT_THAT(items(w.local_values()), Each(-3 - 8));
    EXPECT_EQ(sgd.iterations().read().item<int>(), 2);
    EXPECT_EQ(sgd.steps_attempted().read().item<int>(), 7);
  });
}

TEST_P(Accumulation, AnOverflowInOneCallSkipsTheUpdate) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(0.0f));
    SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
    LossScaleOptimizer optimizer(sgd, {.initial_scale = 8});
    const auto call = [&](float slope, int replica) {
      strategy.run([&] {
        const Tensor id = get_replica_context()->replica_id_in_sync_group();
        GradientTape tape;
        optimizer.minimize(w * select(equal(id, replica), slope, Tensor(1.0f)), {w}, tape);
      });
    };
    call(std::numeric_limits<float>::infinity(), 1);
    EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 0) << "not known before the last call";
    call(1, 1);
    EXPECT_THAT(items(w.local_values()), Each(0));
    EXPECT_THAT(items(sgd.slot(w, "accumulator").local_values()), Each(0));
    EXPECT_EQ(optimizer.scale().read().item<float>(), 4);
    EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 1);
    call(1, 1);
    call(1, 1);
    EXPECT_THAT(items(w.local_values()), Each(-2));
    EXPECT_EQ(optimizer.good_steps().read().item<int>(), 1);
  });
}

TEST_P(Accumulation, AVoteOfOneReplicaLeavesOutItsOwnGradientWithoutAggregation) {
  for (const int voted : {0, 1}) {
    run(2, [&](const Strategy& strategy) {
      const auto scope = strategy.scope();
      const Variable w(Tensor(0.0f));
      SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
      LossScaleOptimizer optimizer(sgd, {.initial_scale = 4});
      std::vector<float> expected;
      for (int call = 0; call < 4; ++call) {
        const auto ids = strategy.run([&] {
          const Tensor id = get_replica_context()->replica_id_in_sync_group();
          get_replica_context()->vote_skip(equal(id, call == voted ? 1 : -1));
          optimizer.apply_gradients({Tensor(call == 0 ? 8.0f : 24.0f)}, {w}, {.aggregate = false});
          return id;
        });
        if (call > 0) continue;
        for (const Tensor& id : ids)  // (2 + 6) / 2, less what is left out, and 6
          expected.push_back(id.item<int>() == 0 ? -10 : voted == 0 ? -9 : -7);
      }
      EXPECT_EQ(items<float>(w.local_values()), expected);
      testing::require_equal_replicas(
          std::vector{sgd.iterations(), sgd.steps_attempted(), optimizer.good_steps()});
      EXPECT_EQ(sgd.iterations().read().item<int>(), 2);
      // And with aggregation.
      for (int call = 0; call < 2; ++call)
        strategy.run([&] { optimizer.apply_gradients({Tensor(4.0f)}, {w}); });
      for (float& value : expected) value -= 2;
      EXPECT_EQ(items<float>(w.local_values()), expected);
    });
  }
}

TEST_P(Accumulation, RefusesOtherVariablesBeforeTheUpdate) {
  run(2, [this](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(1.0f), {.name = "one"}), v(Tensor(1.0f), {.name = "other"});
    SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
    const auto call = [&](const Variable& right, const Variable* wrong) {
      strategy.run([&] {
        const auto apply = [&](const Variable& v) { sgd.apply_gradients({Tensor(1.0f)}, {v}); };
        if (wrong) {
          EXPECT_THAT(
              [&] { apply(*wrong); },
              testing::throws<InvalidArgument>("[Optimizer::apply_gradients]", "'one'", "'other'"));
        }
        apply(right);
      });
    };
    call(w, nullptr);
    call(w, &v);
    EXPECT_THAT(items(w.local_values()), Each(-1));
    EXPECT_THAT(items(v.local_values()), Each(1));
    if (traced()) return;
    for (int i = 0; i < 2; ++i) call(v, nullptr);
    EXPECT_THAT(items(v.local_values()), Each(-1));
  });
}

TEST(AccumulationFailures, OfOneReplicaKeepTheCountsAlikeWithoutAggregation) {
  const MirroredStrategy strategy = testing::replicas(2);
  const auto scope = strategy.scope();
  const Variable w(Tensor(0.0f));
  SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
  const auto call = [&](bool fails) {
    strategy.run([&] {
      if (fails && testing::replica_index() == 1) throw std::runtime_error("in the call");
      sgd.apply_gradients({Tensor(1.0f)}, {w}, {.aggregate = false});
    });
  };
  for (int update = 1; update <= 2; ++update)
    for (int half = 0; half < 2; ++half) {
      EXPECT_THROW(call(true), std::runtime_error);
      call(false);
      EXPECT_THAT(items(w.local_values()), Each(half == 0 ? 1 - update : -update));
    }
}

TEST(AccumulationFailures, LeaveAllAccumulatorsAsTheyWere) {
  const MirroredStrategy strategy = testing::replicas(2);
  const auto scope = strategy.scope();
  const Variable w(Tensor(0.0f));
  SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
  const auto call = [&](bool fails) {
    strategy.run([&] {
      if (fails && testing::replica_index() == 1) throw std::runtime_error("in the call");
      sgd.apply_gradients({Tensor(1.0f)}, {w});
    });
  };
  EXPECT_THROW(call(true), std::runtime_error);
  EXPECT_EQ(sgd.steps_attempted().read().item<int>(), 0);
  call(false);
  EXPECT_THROW(call(true), std::runtime_error);
  EXPECT_THAT(items(w.local_values()), Each(0));
  call(false);
  EXPECT_THAT(items(w.local_values()), Each(-2));
}

TEST(AccumulationOptions, AreAtLeastOne) {
  EXPECT_THROW(SGD({.gradient_accumulation_steps = 0}), InvalidArgument);
  EXPECT_THROW(Adafactor({.gradient_accumulation_steps = -1}), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::optim
