// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::ElementsAre;

using Parts = std::vector<std::vector<std::int64_t>>;

// The rows that each replica got, step by step.
std::vector<Parts> steps_of(const DistributedDataset<Tensor>& dataset) {
  std::vector<Parts> steps;
  for (const auto& batch : dataset) {
    Parts parts;
    for (const Tensor& part : batch) parts.push_back(part.to_vector<std::int64_t>());
    steps.push_back(std::move(parts));
  }
  return steps;
}

std::vector<Parts> deal(int replica_count, std::int64_t examples, std::int64_t global_batch_size) {
  return steps_of(
      replicas(replica_count).distribute_dataset(data::range(examples).batch(global_batch_size)));
}

TEST(Deal, INP10_PartialBatches) {
  const auto strategy = replicas(2);
  const auto batches =
      strategy.distribute_dataset(data::from_tensor_slices(vec({5, 6, 7})).batch(4));
  const auto batch = batches.iterator().next();
  ASSERT_TRUE(batch);
  const auto means = strategy.run([](const Tensor& x) { return mean(x); }, *batch);
  EXPECT_THAT(items(means), ElementsAre(5.5, 7));
  const auto sizes = strategy.run([](const Tensor& x) { return x.dim(0); }, *batch);
  EXPECT_THAT(std::vector(sizes.begin(), sizes.end()), ElementsAre(2, 1));

  const auto single =
      strategy.distribute_dataset(data::from_tensor_slices(vec({5})).batch(2)).iterator().next();
  ASSERT_TRUE(single);
  const auto squares = strategy.run([](const Tensor& x) { return x * x; }, *single);
  EXPECT_THAT(squares[0], holds({25}));
  EXPECT_EQ(squares[1].shape(), Shape({0}));
}

TEST(Deal, ConsecutivePartsGoToConsecutiveReplicas) {
  EXPECT_EQ(deal(2, 8, 4), (std::vector<Parts>{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}}));
  EXPECT_EQ(deal(1, 5, 4), (std::vector<Parts>{{{0, 1, 2, 3}}, {{4}}}));
}

TEST(Deal, TheLastPartsAreShortOrEmpty) {
  // TensorFlow's per-batch rule: ceil(rows / replicas) each.
  EXPECT_EQ(deal(3, 8, 4), (std::vector<Parts>{{{0, 1}, {2, 3}, {}}, {{4, 5}, {6, 7}, {}}}));
  EXPECT_EQ(deal(2, 10, 4).back(), (Parts{{8}, {9}}));
  EXPECT_EQ(deal(2, 9, 4).back(), (Parts{{8}, {}}));
  EXPECT_EQ(deal(4, 10, 4),
            (std::vector<Parts>{{{0}, {1}, {2}, {3}}, {{4}, {5}, {6}, {7}}, {{8}, {9}, {}, {}}}));
  EXPECT_EQ(deal(4, 6, 6), (std::vector<Parts>{{{0, 1}, {2, 3}, {4, 5}, {}}}));
}

TEST(Deal, NoDataIsNoStep) { EXPECT_TRUE(deal(2, 0, 4).empty()); }

TEST(Deal, DropRemainderDropsTheShortBatch) {
  const auto strategy = replicas(4);
  const auto batches =
      strategy.distribute_dataset(data::range(10).batch(4, {.drop_remainder = true}));
  EXPECT_EQ(steps_of(batches).size(), 2u);
  EXPECT_EQ(batches.cardinality(), 2);
}

TEST(Deal, RowCountsTravelWithTheBatch) {
  const auto strategy = replicas(4);
  std::vector<BatchRows> rows;
  for (const auto& batch : strategy.distribute_dataset(data::range(10).batch(4))) {
    ASSERT_TRUE(batch.rows());
    rows.push_back(*batch.rows());
    strategy.run(
        [](const Tensor& x) { EXPECT_EQ(get_replica_context()->batch_rows()->local, x.dim(0)); },
        batch);
  }
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0].local, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(rows[0].global, 4);
  EXPECT_THAT(rows[2].local, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(rows[2].global, 2);
}

struct Example {
  Tensor image;
  std::pair<Tensor, Tensor> labels;
};

TEST(Deal, EveryLeafOfAStructureIsCutAlike) {
  const auto strategy = replicas(2);
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Example{Tensor(Shape{3, 2}, {0.f, 1.f, 2.f, 3.f, 4.f, 5.f}),
                                       {vec({10, 11, 12}), vec<std::int32_t>({7, 8, 9})}})
          .batch(3));
  int steps = 0;
  for (const auto& batch : batches) {
    ++steps;
    EXPECT_THAT(batch[0].image, holds({0, 1, 2, 3}));
    EXPECT_EQ(batch[1].image.shape(), Shape({1, 2}));
    EXPECT_THAT(batch[1].image, holds({4, 5}));
    EXPECT_THAT(batch[1].labels.first, holds({12}));
    EXPECT_THAT(batch[0].labels.second, holds<std::int32_t>({7, 8}));
  }
  EXPECT_EQ(steps, 1);
}

TEST(Deal, EachLoopIsAnEpochOfItsOwn) {
  const auto strategy = replicas(2);
  const auto batches = strategy.distribute_dataset(data::range(32).shuffle({.seed = 3}).batch(32));
  const auto first = steps_of(batches), second = steps_of(batches);
  EXPECT_NE(first, second);
  const auto again =
      steps_of(strategy.distribute_dataset(data::range(32).shuffle({.seed = 3}).batch(32)));
  EXPECT_EQ(first, again);
}

TEST(Deal, PrefetchedBatchesArriveInOrder) {
  const auto strategy = replicas(2);
  const auto batches = strategy.distribute_dataset(data::range(40).batch(4).prefetch(3));
  const auto steps = steps_of(batches);
  ASSERT_EQ(steps.size(), 10u);
  for (std::int64_t i = 0; i < 10; ++i)
    EXPECT_EQ(steps[static_cast<std::size_t>(i)],
              (Parts{{4 * i, 4 * i + 1}, {4 * i + 2, 4 * i + 3}}));
}

TEST(Deal, CardinalityCountsSteps) {
  const auto strategy = replicas(3);
  EXPECT_EQ(strategy.distribute_dataset(data::range(10).batch(4)).cardinality(), 3);
  EXPECT_EQ(strategy.distribute_dataset(data::range(10).repeat().batch(4)).cardinality(),
            data::kInfinite);
}

TEST(Deal, RefusesADatasetThatIsNotBatched) {
  const auto strategy = replicas(2);
  EXPECT_THAT([&] { strategy.distribute_dataset(data::range(10)); },
              throws<InvalidArgument>("[Strategy::distribute_dataset]", "batch"));
}

TEST(Deal, RefusesTheNextBatchInAStep) {
  const auto strategy = replicas(2);
  const auto batches = strategy.distribute_dataset(data::range(10).batch(4));
  EXPECT_THAT([&] { strategy.run([&] { batches.iterator().next(); }); },
              throws<FailedPrecondition>("[DistributedIterator::next]", "step function"));
}

TEST(Deal, SaysWhoReadsWhat) {
  const auto strategy = replicas(3);
  EXPECT_THAT(
      strategy.distribute_dataset(data::range(10).batch(4)).describe(),
      ::testing::AllOf(::testing::HasSubstr("3 replicas"), ::testing::HasSubstr("worker 0 of 1")));
}

TEST(Deal, AnErrorOfTheDataComesOutOfNext) {
  const auto strategy = replicas(2);
  const auto batches = strategy.distribute_dataset(data::range(10)
                                                       .map([](const Tensor& x) {
                                                         if (x.item<int>() == 5)
                                                           throw std::runtime_error("row 5");
                                                         return x;
                                                       })
                                                       .batch(4));
  auto steps = batches.iterator();
  EXPECT_TRUE(steps.next());
  EXPECT_THAT([&] { steps.next(); }, throws<std::runtime_error>("row 5"));
}

// ---- datasets from functions

TEST(FromFunction, INP_14_ContextsTellTheRowsOfAReplica) {
  const InputContext context{.num_replicas_in_sync = 3};
  EXPECT_EQ(context.get_per_replica_batch_size(12), 4);
  EXPECT_THAT([&] { (void)context.get_per_replica_batch_size(10); },
              throws<InvalidArgument>("3 replicas", "10"));
}

TEST(FromFunction, ReplicasTakeBatchesInTurn) {
  const auto strategy = replicas(2);
  int calls = 0;
  const auto batches = strategy.distribute_datasets_from_function([&](const InputContext& context) {
    ++calls;
    EXPECT_EQ(context.num_input_pipelines, 1);
    EXPECT_EQ(context.input_pipeline_id, 0);
    EXPECT_EQ(context.num_replicas_in_sync, 2);
    return data::range(9).batch(context.get_per_replica_batch_size(4));
  });
  EXPECT_EQ(batches.cardinality(), 3);
  const std::vector<Parts> expected{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {}}};
  EXPECT_EQ(steps_of(batches), expected);
  EXPECT_EQ(steps_of(batches), expected) << "another epoch of the same dataset";
  EXPECT_EQ(calls, 1);
  auto iterator = batches.iterator();
  iterator.next();
  const auto second = iterator.next();
  EXPECT_EQ(second->rows()->global, 4);
  const auto third = iterator.next();
  EXPECT_EQ(third->rows()->global, 1);
  EXPECT_THAT(third->rows()->local, ElementsAre(1, 0));
  EXPECT_FALSE(iterator.next());
  EXPECT_THAT(
      batches.describe(),
      ::testing::HasSubstr("a batch for each of 2 replicas; this process is worker 0 of 1"));
}

TEST(FromFunction, BatchesMayDifferInRows) {
  const auto strategy = replicas(3);
  const auto batches = strategy.distribute_datasets_from_function([](const InputContext&) {
    return data::from_generator([](std::stop_token) {
      return [next = 0]() mutable -> std::optional<Tensor> {
        ++next;
        return next > 4 ? std::nullopt : std::optional(full({next, 2}, next, DType::i64));
      };
    });
  });
  EXPECT_EQ(steps_of(batches), (std::vector<Parts>{{{1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3, 3, 3}},
                                                   {{4, 4, 4, 4, 4, 4, 4, 4}, {}, {}}}));
}

TEST(FromFunction, RefusesWhatIsNotBatched) {
  const auto strategy = replicas(2);
  EXPECT_THAT(
      [&] {
        strategy.distribute_datasets_from_function(
            [](const InputContext&) { return data::range(4); });
      },
      throws<InvalidArgument>("distribute_datasets_from_function", "batch"));
  const auto scalars = strategy.distribute_datasets_from_function([](const InputContext&) {
    return data::range(4).batch(2).map([](const Tensor& x) { return sum(x); });
  });
  EXPECT_THAT([&] { scalars.iterator().next(); }, throws<InvalidArgument>("batch"));
  EXPECT_THAT(
      [&] {
        strategy.run([&] {
          strategy.distribute_datasets_from_function(
              [](const InputContext&) { return data::range(4).batch(2); });
        });
      },
      throws<FailedPrecondition>("distribute_datasets_from_function"));
}

TEST(Deal, TheBatchOutlivesDatasetAndIterator) {
  const auto strategy = replicas(2);
  std::optional<PerReplica<Tensor>> batch =
      strategy.distribute_dataset(data::range(4).batch(4)).iterator().next();
  ASSERT_TRUE(batch);
  EXPECT_THAT((*batch)[1], holds<std::int64_t>({2, 3}));
}

}  // namespace
}  // namespace lockstep
