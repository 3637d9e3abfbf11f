// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/nn/losses.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include <atomic>
#include <optional>

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

MirroredStrategy replicas(int count) {
  MirroredOptions options;
  for (int i = 0; i < count; ++i) options.devices.push_back("CPU:" + std::to_string(i));
  return MirroredStrategy(options);
}

const Tensor kLosses({3}, {2.5f, 6.2f, 5.0f});

TEST(ComputeAverageLossInReplicas, LOS_01_CountsTheRowsOfAllReplicas) {
  const MirroredStrategy strategy = replicas(2);
  const auto loss = strategy.run([] { return compute_average_loss(kLosses); });
  EXPECT_NEAR(strategy.reduce(ReduceOp::sum, loss).item<float>(), 4.566667, 1e-6);
}

TEST(ComputeAverageLossInReplicas, CountsUnevenRowsExactly) {
  const MirroredStrategy strategy = replicas(2);
  // 1, 2, 3 and 10: the mean is 4, whichever way the rows are spread.
  const auto loss = strategy.run([] {
    const bool first = get_replica_context()->replica_index() == 0;
    return compute_average_loss(first ? Tensor({3}, {1.0f, 2.0f, 3.0f}) : Tensor({1}, {10.0f}));
  });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, loss).item<float>(), 4);
}

TEST(ComputeAverageLossInReplicas, LOS_04_IsZeroForNoRowsAnywhere) {
  const MirroredStrategy strategy = replicas(2);
  const auto loss = strategy.run([] { return compute_average_loss(lockstep::zeros({0})); });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, loss).item<float>(), 0);
}

TEST(ComputeAverageLossInReplicas, LOS_04_NeedsASizeInCrossReplicaContext) {
  const MirroredStrategy strategy = replicas(2);
  const auto scope = strategy.scope();
  const Tensor losses({2}, {2.0f, 3.0f});
  try {
    compute_average_loss(losses);
    FAIL();
  } catch (const FailedPrecondition& error) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("cross-replica"), HasSubstr("global_batch_size")));
    EXPECT_THAT(error.location().file, HasSubstr("losses_replicas_test.cc"));
  }
  EXPECT_EQ(compute_average_loss(losses, {.global_batch_size = 2}).item<float>(), 2.5f);
}

TEST(ComputeAverageLossInReplicas, DividesByTheRowsOfTheDistributedBatch) {
  const MirroredStrategy strategy = replicas(4);
  std::vector<float> sums;
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Tensor({6}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 10.0f})).batch(4));
  for (const auto& batch : batches) {
    const auto loss = strategy.run([](const Tensor& x) { return compute_average_loss(x); }, batch);
    sums.push_back(strategy.reduce(ReduceOp::sum, loss).item<float>());
  }
  // The last batch has two rows, two replicas get none.
  EXPECT_THAT(sums, ::testing::ElementsAre(2.5f, 7.5f));
}

TEST(ComputeAverageLossInReplicas, RefusesRowsThatAreNotTheBatchs) {
  const MirroredStrategy strategy = replicas(2);
  const auto batches =
      strategy.distribute_dataset(data::from_tensor_slices(lockstep::ones({4, 3})).batch(4));
  for (const auto& batch : batches) {
    // Tokens instead of rows: two rows of three each.
    const auto flat = [](const Tensor& x) { return x.with_shape({x.num_elements()}); };
    try {
      strategy.run([&](const Tensor& x) { return compute_average_loss(flat(x)); }, batch);
      FAIL();
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.message(), AllOf(HasSubstr("6 rows"), HasSubstr("has 2"),
                                         HasSubstr(".count"), HasSubstr(".global_batch_size")));
      EXPECT_TRUE(error.context().replica.has_value());
    }
    // What the hint says: all tokens of all replicas.
    const auto loss = strategy.run(
        [&](const Tensor& x) {
          const Tensor count = get_replica_context()->global_count(x.num_elements());
          return compute_average_loss(flat(x), {.count = count});
        },
        batch);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, loss).item<float>(), 1);
  }
}

TEST(ScaleRegularizationLossInReplicas, LOS_06_CountsOnce) {
  const MirroredStrategy strategy = replicas(2);
  const auto loss = strategy.run([] { return scale_regularization_loss(kLosses); });
  EXPECT_NEAR(strategy.reduce(ReduceOp::sum, loss).item<float>(), 13.7, 1e-5);
  const auto scope = strategy.scope();
  EXPECT_THROW(scale_regularization_loss(kLosses), FailedPrecondition);
}

}  // namespace
}  // namespace lockstep::nn
