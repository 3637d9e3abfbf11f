// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/metrics.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include <string>

namespace lockstep::metrics {
namespace {

MirroredStrategy replicas(int count) {
  MirroredOptions options;
  for (int i = 0; i < count; ++i) options.devices.push_back("CPU:" + std::to_string(i));
  return MirroredStrategy(options);
}

int index() { return get_replica_context()->replica_index(); }

TEST(MeanInReplicas, MET_01_IsExactOverUnevenReplicas) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  Mean mean;
  const auto inside = strategy.run([&] {
    mean.update_state(index() == 0 ? Tensor({3}, {1.0f, 2.0f, 3.0f}) : Tensor({1}, {10.0f}));
    return mean.result();
  });
  EXPECT_EQ(mean.result().item<double>(), 4);
  for (const Tensor& result : inside) EXPECT_EQ(result.item<double>(), 4);
}

TEST(MeanInReplicas, ResetForgetsOnAllReplicas) {
  const MirroredStrategy strategy = replicas(3);
  const auto scope = strategy.scope();
  Mean mean;
  const auto see = [&](double value) { strategy.run([&] { mean.update_state(Tensor(value)); }); };
  see(7);
  mean.reset_state();
  EXPECT_EQ(mean.result().item<double>(), 0);
  see(5);
  EXPECT_EQ(mean.result().item<double>(), 5);
}

TEST(MeanInReplicas, ReadsTheSameAfterTheScope) {
  const MirroredStrategy strategy = replicas(2);
  auto mean = [&] {
    const auto scope = strategy.scope();
    return Mean();
  }();
  strategy.run([&] { mean.update_state(Tensor(index() == 0 ? 1.0 : 2.0)); });
  EXPECT_EQ(mean.result().item<double>(), 1.5);
}

TEST(MeanInReplicas, IsUpdatedInStepsOfItsStrategyOnly) {
  const MirroredStrategy strategy = replicas(2);
  Mean outside("outside");
  EXPECT_THROW(strategy.run([&] { outside.update_state(Tensor(1.0)); }), FailedPrecondition);
  const auto scope = strategy.scope();
  Mean mean;
  try {
    mean.update_state(Tensor(1.0));
    FAIL();
  } catch (const FailedPrecondition& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("Strategy::run"));
    EXPECT_THAT(error.location().file, ::testing::HasSubstr("metrics_replicas_test.cc"));
  }
}

TEST(AccuracyInReplicas, S10_IsNotAMeanOfMeans) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  SparseCategoricalAccuracy accuracy;
  strategy.run([&] {
    if (index() == 0)
      accuracy.update_state(Tensor({3}, {0, 0, 0}),
                            Tensor({3, 2}, {1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 0.0f}));
    else
      accuracy.update_state(Tensor({1}, {0}), Tensor({1, 2}, {0.0f, 1.0f}));
  });
  EXPECT_EQ(accuracy.result().item<double>(), 0.75);
}

TEST(AccuracyInReplicas, S10_CountsEveryExampleOnce) {
  const MirroredStrategy strategy = replicas(3);
  const auto scope = strategy.scope();
  SparseCategoricalAccuracy accuracy;
  // Example i is right when i is below 600: 1000 of them in batches of 8.
  const auto batches =
      strategy.distribute_dataset(data::from_tensor_slices(range(0, 1000)).batch(8));
  double examples = 0;
  for (const auto& batch : batches) {
    const auto counted = strategy.run(
        [&](const Tensor& ids) {
          std::vector<float> predictions;
          for (const std::int64_t id : ids.data<std::int64_t>())
            predictions.insert(predictions.end(), {id < 600 ? 1.0f : 0.0f, 0.5f});
          const std::int64_t n = ids.dim(0);
          accuracy.update_state(zeros({n}, DType::i64),
                                Tensor({n, 2}, std::span<const float>(predictions)));
          return static_cast<std::int64_t>(n);
        },
        batch);
    for (const std::int64_t n : counted) examples += static_cast<double>(n);
  }
  EXPECT_EQ(examples, 1000);
  EXPECT_EQ(accuracy.result().item<double>(), 0.6);
}

}  // namespace
}  // namespace lockstep::metrics
