// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/from_tensors.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/distribute/tpu.h>
#include <lockstep/lockstep.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

#include "distribute/traced_replicas.h"
#include "support/errors.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT
using ::testing::ElementsAre;

std::int64_t compilations(const Strategy& strategy) {
  return dynamic_cast<TracedReplicas&>(*strategy.implementation()).programs().compilations();
}

struct Example {
  Tensor image, label;
};

struct Fit {
  std::vector<double> losses;
  std::vector<float> weights;
};

// The digits by a small network, with a learning rate that changes at every step.
Fit fit(const Strategy& strategy, int steps) {
  const auto train = strategy.distribute_dataset(data::digits<Example>("train")
                                                     .shuffle({.seed = 7})
                                                     .batch(128, {.drop_remainder = true})
                                                     .repeat());
  const auto scope = strategy.scope();
  const nn::Sequential model(nn::Dense(64, 32, {.activation = nn::relu}), nn::Dropout(0.2),
                             nn::Dense(32, 10));
  optim::Adam optimizer({.learning_rate = 1e-2});
  const auto step = [&](const Example& batch) {
    GradientTape tape;
    const Tensor logits = model(batch.image, {.training = true});
    const Tensor loss =
        nn::compute_average_loss(nn::sparse_softmax_cross_entropy(batch.label, logits));
    optimizer.minimize(loss, model.trainable_variables(), tape);
    return loss;
  };
  Fit result;
  auto batches = train.iterator();
  for (int i = 0; i < steps; ++i) {
    optimizer.set_learning_rate(1e-2 / (1 + 0.1 * i));
    result.losses.push_back(
        strategy.reduce(ReduceOp::sum, strategy.run(step, *batches.next())).item<double>());
  }
  testing::require_equal_replicas(model.trainable_variables());
  result.weights = Tensor(model.trainable_variables()[0]).to_vector<float>();
  return result;
}

TEST(TPUStrategy, TrainsAsMirroredStrategyDoes) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy tpu({.replicas = 2, .seed = 3});
  const Fit expected = fit(MirroredStrategy({.devices = {"CPU:0", "CPU:1"}, .seed = 3}), 50);
  const Fit got = fit(tpu, 50);
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], expected.losses[i], 1e-4) << "step " << i;
  for (std::size_t i = 0; i < expected.weights.size(); i += 37)
    EXPECT_NEAR(got.weights[i], expected.weights[i], 1e-3);
  EXPECT_LT(got.losses.back(), 0.6 * got.losses.front());
  EXPECT_EQ(compilations(tpu), 1);
}

TEST(TPUStrategy, TPU04_MadeTwiceTheFirstGoesOn) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy first({.replicas = 2});
  const auto scope = first.scope();
  Variable v(Tensor(1.0f));
  const auto step = [&] { return v.assign_add(Tensor(1.0f)); };
  first.run(step);
  const TPUStrategy second({.replicas = 2});
  EXPECT_FALSE(first == second);
  first.run(step);
  EXPECT_EQ(v.read().item<float>(), 3);
}

TEST(TPUStrategy, UpdatesWeightsInTheirOwnMemory) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy tpu({.replicas = 2});
  fit(tpu, 3);
  // Weights, two moments each, and three counters.
  const std::int64_t weights = 64 * 32 + 32 + 32 * 10 + 10;
  EXPECT_GE(dynamic_cast<TracedReplicas&>(*tpu.implementation()).programs().alias_bytes(),
            3 * weights * 4);
}

TEST(TPUStrategy, CollectivesEqualThoseOfMirroredStrategy) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const auto results = [](const Strategy& strategy) {
    const auto outputs = strategy.run([] {
      ReplicaContext& replica = *get_replica_context();
      const Tensor id = cast(replica.replica_id_in_sync_group(), DType::f32) + 1;
      const Tensor own = vec({1, 2}) * id;
      GradientTape tape;
      tape.watch(own);
      const Tensor sum = replica.all_reduce(ReduceOp::sum, own);
      const Tensor mean = replica.all_reduce(ReduceOp::mean, own * own);
      const Tensor all = replica.all_gather(own);
      const Tensor target = lockstep::sum(sum * sum) + lockstep::sum(mean) +
                            lockstep::sum(square(all) * vec({1, 2, 3, 4}));
      return std::vector<Tensor>{sum, mean, all, tape.gradient(target, {own})[0],
                                 replica.global_count(std::int64_t{3})};
    });
    std::vector<Tensor> first;
    for (const Tensor& each : outputs[1])
      first.push_back(each.device().is_host() ? each : copy_to(each, Device{}));
    return first;
  };
  const auto expected = results(MirroredStrategy({.devices = {"CPU:0", "CPU:1"}}));
  const auto got = results(TPUStrategy({.replicas = 2}));
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], expected[i], 1e-6, std::to_string(i));
}

// What three steps make of the variables of a block that draws numbers, reads what all replicas have
// and keeps an average. `way` makes a function of the block.
template <class Way>
std::vector<Tensor> trained_block(const Strategy& strategy, const Way& way) {
  const auto scope = strategy.scope();
  const nn::Dense dense(4, 6, {.activation = nn::tanh});
  const nn::Dropout dropout(0.3);
  Variable average(zeros({6}), {.trainable = false, .aggregation = VariableAggregation::mean});
  optim::SGD optimizer({.learning_rate = 0.1});
  for (int i = 0; i < 3; ++i)
    strategy.run([&] {
      ReplicaContext& replica = *get_replica_context();
      const Tensor id = cast(replica.replica_id_in_sync_group(), DType::f32) + 1;
      GradientTape tape;
      const auto block = way([&](const Tensor& x) {
        const Tensor h = dropout(dense(x), {.training = true});
        const Tensor center = replica.all_reduce(ReduceOp::mean, mean(h, {.axes = {0}}));
        average.assign_add((center - average) * 0.5);
        return h - center + average;
      });
      const Tensor x = Noise(4).tensor<float>({3, 4}) * id;
      optimizer.minimize(mean(square(block(x) - 1)), dense.trainable_variables(), tape);
    });
  return {dense.kernel(), *dense.bias(), average};
}

TEST(TPUStrategy, RecomputesWithTheSameNumbersAndAssignsOnce) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const auto expected = trained_block(MirroredStrategy({.devices = {"CPU:0", "CPU:1"}, .seed = 3}),
                                      [](auto block) { return block; });
  const TPUStrategy tpu({.replicas = 2, .seed = 3});
  const auto got = trained_block(tpu, [](auto block) { return recompute(block); });
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], expected[i], 1e-5, std::to_string(i));
  EXPECT_EQ(compilations(tpu), 1);
}

// 10 examples in batches of 4 over 4 replicas: the last batch has 2, two replicas none.
TEST(TPUStrategy, S39_PadsTheLastBatchAndLeavesThePaddingOut) {
  LOCKSTEP_REQUIRE_PLUGIN();
  struct Row {
    Tensor x;
  };
  const Tensor rows = vec({0, 0, 0, 0, 0, 0, 0, 0, 1, 2});
  for (const bool fixed : {false, true}) {
    const TPUStrategy strategy({.replicas = 4});
    const auto dataset = strategy.distribute_dataset(data::from_tensor_slices(Row{rows}).batch(4));
    const auto scope = strategy.scope();
    const Variable w(Tensor(2.0f)), b(Tensor(0.5f));
    metrics::Mean mean;
    const auto step = [&](const Row& batch) {
      GradientTape tape;
      const Tensor loss = nn::compute_average_loss(
          square(w.read() * batch.x + b.read() - 1),
          fixed ? nn::AverageLossOptions{.global_batch_size = 4} : nn::AverageLossOptions{});
      mean.update_state(batch.x + 1);
      std::vector<Tensor> sums{loss};
      for (const Tensor& gradient : tape.gradient(loss, {w.read(), b.read()}))
        sums.push_back(gradient);
      for (Tensor& sum : sums) sum = get_replica_context()->all_reduce(ReduceOp::sum, sum);
      return sums;
    };
    int steps = 0;
    std::vector<Tensor> last;
    for (const auto& batch : dataset) {
      const auto result = strategy.run(step, batch);
      ++steps;
      last = result[0];
      if (steps == 3) {
        EXPECT_THAT(batch.rows()->local, ElementsAre(1, 1, 0, 0));
      }
    }
    EXPECT_EQ(steps, 3);
    // Off by 2.5 - 1 and 4.5 - 1, over 2 rows or 4; a row of padding would be off by 0.5 - 1.
    const float over = fixed ? 4 : 2;
    EXPECT_EQ(last[0].item<float>(), (1.5f * 1.5f + 3.5f * 3.5f) / over);
    EXPECT_EQ(last[1].item<float>(), 2 * (1.5f * 1 + 3.5f * 2) / over);
    EXPECT_EQ(last[2].item<float>(), 2 * (1.5f + 3.5f) / over);
    EXPECT_EQ(compilations(strategy), 1);
    EXPECT_FLOAT_EQ(mean.result().item<float>(), 1.3f);
  }
  const TPUStrategy strategy({.replicas = 4});
  const auto dropped = strategy.distribute_dataset(
      data::from_tensor_slices(Row{rows}).batch(4, {.drop_remainder = true}));
  int steps = 0;
  for (const auto& batch : dropped) {
    strategy.run([](const Row& row) { return row.x * 2; }, batch);
    ++steps;
  }
  EXPECT_EQ(steps, 2);
}

TEST(TPUStrategy, S39_TellsWhereItLookedForAPlugin) {
  std::map<std::string, std::string> before;
  for (const char* const name : {"LOCKSTEP_PJRT_CPU_PLUGIN", "TPU_LIBRARY_PATH"}) {
    if (const char* const path = std::getenv(name)) before[name] = path;
    unsetenv(name);
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT([] { TPUStrategy(); },
              throws<Unavailable>("[TPUStrategy]", "no TPU", "LOCKSTEP_PJRT_CPU_PLUGIN"));
  EXPECT_THAT([] { make_strategy("tpu"); }, throws<Unavailable>("[TPUStrategy]"));
  EXPECT_THAT([] { TPUStrategy({.plugin = "/no/such.so"}); }, throws<Unavailable>("/no/such.so"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  for (const auto& [name, path] : before) setenv(name.c_str(), path.c_str(), 1);
}

TEST(TPUStrategy, RefusesMoreReplicasThanCores) {
  LOCKSTEP_REQUIRE_PLUGIN();
  EXPECT_THAT([] { TPUStrategy({.replicas = 1000}); },
              throws<InvalidArgument>("[TPUStrategy]", "at most", "1000"));
  EXPECT_THAT([] { TPUStrategy({.replicas = -1}); }, throws<InvalidArgument>("0 or more"));
  EXPECT_EQ(make_strategy("tpu:3").num_replicas_in_sync(), 3);
}

TEST(TPUStrategy, KeepsVariablesWhenAStepFails) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 2});
  const auto scope = strategy.scope();
  Variable w(vec({1, 2}));
  optim::SGD optimizer({.learning_rate = 0.5, .momentum = 0.9});
  const auto step = [&](bool broken) {
    strategy.run([&] {
      GradientTape tape;
      const Tensor loss = sum(square(w.read()));
      optimizer.minimize(loss, {w}, tape);
      w.assign_add(vec({1, 1}));
      if (broken && get_replica_context()->replica_index() == 1)
        throw InvalidArgument("a mistake on replica 1");
    });
  };
  step(false);
  const auto before = Tensor(w).to_vector<float>();
  const auto error = caught<InvalidArgument>([&] { step(true); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->context().replica, 1);
  EXPECT_EQ(Tensor(w).to_vector<float>(), before);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
  step(false);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 2);
  testing::require_equal_replicas(std::vector{w});
}

TEST(TPUStrategy, SkipsStepsByVotesThatItLearnsOnTheDevice) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 2});
  const auto scope = strategy.scope();
  Variable w(Tensor(1.0f)), poison(Tensor(0.0f), {.trainable = false});
  optim::Adam optimizer({.learning_rate = 0.1});
  const auto step = [&] {
    strategy.run([&] {
      GradientTape tape;
      const Tensor loss = square(w.read()) + poison.read();
      get_replica_context()->vote_skip(logical_not(is_finite(loss)));
      optimizer.minimize(loss, {w}, tape);
    });
  };
  step();
  const float after_one = Tensor(w).item<float>();
  EXPECT_NEAR(after_one, 0.9, 1e-5);
  poison.assign(Tensor(std::numeric_limits<float>::infinity()));
  step();
  EXPECT_EQ(Tensor(w).item<float>(), after_one);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 2);
  EXPECT_EQ(compilations(strategy), 1);
}

TEST(TPUStrategy, TellsWhatAStepMayNotDo) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 2});
  const auto scope = strategy.scope();
  const Variable w(vec({1, 2}));
  EXPECT_THAT([&] { strategy.run([&] { static_cast<void>(sum(w.read() * 2).item<float>()); }); },
              throws<FailedPrecondition>("[Tensor::item]", "being traced", "replica 0"));
  EXPECT_THAT([&] { strategy.run([&] { get_replica_context()->merge_call([] {}); }); },
              throws<Unimplemented>("merge_call", "TPU"));
  EXPECT_THAT(
      [&] {
        strategy.run([&] {
          return get_replica_context()->replica_index() == 0 ? w.read() + 1 : w.read() * 2;
        });
      },
      throws<InvalidArgument>("replicas 0 and 1", "select"));
  // The strategy stays usable.
  const auto result = strategy.run([&] { return w.read() + 1; });
  EXPECT_THAT(copy_to(result[1], Device{}).to_vector<float>(), ElementsAre(2, 3));
}

TEST(TPUStrategy, TPU03_ReturnsNothingEmptyListsAndNumbers) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 2});
  int calls = 0;
  static_assert(std::is_same_v<decltype(strategy.run([] {})), PerReplica<void>>);
  strategy.run([&] { ++calls; });
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(strategy.run([] { return std::vector<Tensor>(); })[1].empty());
  EXPECT_EQ(strategy.run([] { return get_replica_context()->replica_index(); })[1], 1);
  EXPECT_EQ(strategy.run([](double x) { return x; }, 2.5)[0], 2.5);
}

TEST(TPUStrategy, GivesValuesToTheHostOutsideSteps) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 2});
  const auto scope = strategy.scope();
  Variable w(vec({1, 2}));
  Variable seen(Tensor(0.0f), {.trainable = false,
                               .synchronization = VariableSynchronization::on_read,
                               .aggregation = VariableAggregation::sum});
  Variable shared(Tensor(0.0f), {.trainable = false, .aggregation = VariableAggregation::mean});
  const auto result = strategy.run([&] {
    const Tensor id = cast(get_replica_context()->replica_id_in_sync_group(), DType::f32);
    seen.assign_add(id + 1);
    shared.assign(id * 3);
    return std::pair(w.read() * (id + 1), reshape(id, {1}));
  });
  EXPECT_EQ(seen.read().item<float>(), 3);
  EXPECT_EQ(shared.read().item<float>(), 1.5);
  EXPECT_TRUE(w.read().device().is_host());
  const auto [sum, ids] = strategy.reduce(ReduceOp::sum, result);
  EXPECT_THAT(sum.to_vector<float>(), ElementsAre(3, 6));
  w.assign_add(vec({1, 1}));
  EXPECT_THAT(w.local_values()[1].to_vector<float>(), ElementsAre(2, 3));
  EXPECT_EQ(result[1].second.item<float>(), 1);
}

}  // namespace
}  // namespace lockstep
