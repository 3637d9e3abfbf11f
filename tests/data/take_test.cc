// SPDX-License-Identifier: Apache-2.0
// take, skip, shard, repeat, map, and what a dataset knows of itself.
#include <gmock/gmock.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/tensor/factory.h>

#include <limits>

#include "data/helpers.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Dataset<Tensor> counted(std::shared_ptr<int> calls) {
  return from_generator([calls] {
    return [calls, i = std::int64_t{0}]() mutable -> std::optional<Tensor> {
      ++*calls;
      return Tensor(i++);
    };
  });
}

TEST(Take, GivesTheFirstAndAsksForNoMore) {
  EXPECT_THAT(values_of(range(10).take(3)), ElementsAre(0, 1, 2));
  EXPECT_EQ(values_of(range(2).take(3)), iota(2));
  EXPECT_EQ(values_of(range(2).take(0)), Integers());
  const auto calls = std::make_shared<int>(0);
  EXPECT_EQ(values_of(counted(calls).take(4)), iota(4));
  EXPECT_EQ(*calls, 4);
  EXPECT_THROW(range(2).take(-1), InvalidArgument);
}

TEST(Skip, LeavesOutTheFirst) {
  EXPECT_THAT(values_of(range(5).skip(3)), ElementsAre(3, 4));
  EXPECT_EQ(values_of(range(5).skip(0)), iota(5));
  EXPECT_EQ(values_of(range(5).skip(9)), Integers());
  EXPECT_THROW(range(2).skip(-1), InvalidArgument);
}

TEST(Shard, DealsElementsInTurn) {
  EXPECT_THAT(values_of(range(8).shard(3, 0)), ElementsAre(0, 3, 6));
  EXPECT_THAT(values_of(range(8).shard(3, 1)), ElementsAre(1, 4, 7));
  EXPECT_THAT(values_of(range(8).shard(3, 2)), ElementsAre(2, 5));
  EXPECT_EQ(values_of(range(2).shard(3, 2)), Integers());
  EXPECT_EQ(values_of(range(4).shard(1, 0)), iota(4));
}

// INP-13: batches dealt as they are.
TEST(Shard, OfBatchesDealsBatches) {
  const auto batches = range(8).batch(2);
  EXPECT_THAT(elements_of(batches.shard(2, 0)), ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5)));
  EXPECT_THAT(elements_of(batches.shard(2, 1)), ElementsAre(ElementsAre(2, 3), ElementsAre(6, 7)));
}

TEST(Shard, StandsBelowTrailingPrefetches) {
  const auto dataset = range(8).batch(2).prefetch(2).prefetch(1).shard(2, 1);
  EXPECT_EQ(dataset.describe(),
            "range(0, 8) > batch(2) > shard(1 of 2) > prefetch(2) > prefetch(1)");
  EXPECT_THAT(elements_of(dataset), ElementsAre(ElementsAre(2, 3), ElementsAre(6, 7)));
}

TEST(Shard, RefusesAnIndexOutside) {
  EXPECT_THROW(range(8).shard(3, 3), InvalidArgument);
  EXPECT_THROW(range(8).shard(3, -1), InvalidArgument);
  EXPECT_THROW(range(8).shard(0, 0), InvalidArgument);
}

TEST(Repeat, GoesThroughTheInputAgain) {
  EXPECT_THAT(values_of(range(2).repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_EQ(values_of(range(2).repeat(0)), Integers());
  EXPECT_THAT(values_of(range(2).repeat(), 5), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THROW(range(2).repeat(-2), InvalidArgument);
}

TEST(Repeat, OfNothingEnds) {
  EXPECT_EQ(values_of(range(0).repeat()), Integers());
  EXPECT_EQ(values_of(range(5).skip(9).repeat(1'000'000'000'000)), Integers());
}

TEST(Map, AppliesAFunctionToWholeElements) {
  struct Pair {
    Tensor a;
    double b;
  };
  const auto pairs = range(3).map([](const Tensor& x) { return Pair{x, x.item<int>() * 0.5}; });
  double sum = 0;
  for (const Pair& pair : pairs.map([](Pair pair) { return std::tuple(pair.b + 1); })
                              .map([](const std::tuple<double>& x) {
                                return Pair{Tensor(1.f), std::get<0>(x)};
                              }))
    sum += pair.b;
  EXPECT_EQ(sum, 4.5);
}

TEST(Map, CallsTheFunctionForDeliveredElementsOnly) {
  const auto seen = std::make_shared<Integers>();
  const auto dataset = range(100).map([seen](const Tensor& x) {
    seen->push_back(x.item<std::int64_t>());
    return x;
  });
  values_of(dataset.shard(2, 1).skip(2).take(3));
  EXPECT_THAT(*seen, ElementsAre(5, 7, 9));
}

TEST(Map, RefusesUndefinedResults) {
  EXPECT_THAT([] { values_of(range(3).map([](const Tensor&) { return Tensor(); })); },
              ThrowsMessage<InvalidArgument>(HasSubstr("[Dataset::map] tensor 0")));
}

TEST(Cardinality, IsKnownWhereItCanBe) {
  const auto unknown = counted(std::make_shared<int>(0));
  EXPECT_EQ(range(10).shuffle().prefetch(2).cardinality(), 10);
  EXPECT_EQ(range(10).map([](const Tensor& x) { return x; }).cardinality(), 10);
  EXPECT_EQ(range(10).batch(4).cardinality(), 3);
  EXPECT_EQ(range(10).batch(4, {.drop_remainder = true}).cardinality(), 2);
  EXPECT_EQ(range(10).repeat(3).cardinality(), 30);
  EXPECT_EQ(range(10).repeat().cardinality(), kInfinite);
  EXPECT_EQ(range(0).repeat().cardinality(), 0);
  EXPECT_EQ(range(10).repeat().batch(4).cardinality(), kInfinite);
  EXPECT_EQ(range(10).repeat().take(7).cardinality(), 7);
  EXPECT_EQ(range(10).take(70).cardinality(), 10);
  EXPECT_EQ(range(10).skip(4).cardinality(), 6);
  EXPECT_EQ(range(10).skip(40).cardinality(), 0);
  EXPECT_EQ(range(10).repeat().skip(40).cardinality(), kInfinite);
  EXPECT_EQ(range(10).shard(4, 1).cardinality(), 3);
  EXPECT_EQ(range(10).shard(4, 2).cardinality(), 2);
  EXPECT_EQ(range(2).shard(4, 3).cardinality(), 0);
  EXPECT_EQ(range(10).repeat().shard(4, 1).cardinality(), kInfinite);
  EXPECT_EQ(unknown.batch(3).repeat(2).skip(1).shard(2, 0).take(9).cardinality(), kUnknown);
  EXPECT_EQ(unknown.repeat(0).cardinality(), 0);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(range(1 << 30).repeat(kMost / 4).cardinality(), kMost);
}

// S18: a shard of range(10) over two workers has five elements, which add up to 45 over both.
TEST(Cardinality, OfShardsAddsUp) {
  std::int64_t sum = 0;
  for (int i = 0; i < 2; ++i) {
    const auto shard = range(10).shard(2, i);
    EXPECT_EQ(shard.cardinality(), 5);
    for (const std::int64_t value : values_of(shard)) sum += value;
  }
  EXPECT_EQ(sum, 45);
}

TEST(Describe, TellsTheChain) {
  EXPECT_EQ(range(2, 10, 2).shuffle({.buffer_size = 3, .seed = 7}).repeat().batch(4).describe(),
            "range(2, 10, 2) > shuffle(seed 7, buffer 3) > repeat() > batch(4)");
}

}  // namespace
}  // namespace lockstep::data
