// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/data/from_tensors.h>

#include "data/random.h"
#include "data/reference.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

TEST(SplitMix64, GivesTheNumbersOfItsAuthors) {
  SplitMix64 random(1234567);
  const std::uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u,
                                    16408922859458223821u};
  for (const std::uint64_t number : expected) EXPECT_EQ(random.next(), number);
}

TEST(EpochRandom, IsUniformBelowAnyBound) {
  for (const std::uint64_t bound : {1u, 2u, 3u, 7u, 10u}) {
    EpochRandom random(5, 6);
    std::vector<int> counts(bound);
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(bound));
    for (const int count : counts)  // five standard deviations
      EXPECT_NEAR(count, kDraws / static_cast<double>(bound), 5 * std::sqrt(kDraws / bound));
  }
}

// Lemire's method refuses about half of all numbers for a bound just above 2^31.
TEST(EpochRandom, AgreesWithTheDefinitionForBoundsThatRefuseMuch) {
  for (const std::uint64_t bound : {(std::uint64_t{1} << 31) + 1, (std::uint64_t{3} << 30) + 7,
                                    std::uint64_t{1} << 32, std::uint64_t{1000003}}) {
    EpochRandom random(11, 3);
    reference::Dice dice(11, 3);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(random.below(bound), dice.draw(bound));
  }
}

// S19 at one worker.
TEST(Shuffle, EveryEpochIsAnotherOrderOfTheSameElementsAndARerunRepeatsThem) {
  const auto program = [] {
    const auto dataset = range(100).shuffle({.buffer_size = 100, .seed = 11});
    return std::vector{values_of(dataset), values_of(dataset), values_of(dataset)};
  };
  const std::vector<Integers> epochs = program();
  for (const Integers& epoch : epochs) EXPECT_THAT(epoch, UnorderedElementsAreArray(iota(100)));
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[0], epochs[2]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_NE(epochs[0], iota(100));
  EXPECT_EQ(program(), epochs);
}

TEST(Shuffle, AllOfTheDatasetWithoutABufferSize) {
  EXPECT_EQ(values_of(range(50).shuffle({.seed = 3})),
            values_of(range(50).shuffle({.buffer_size = 50, .seed = 3})));
  EXPECT_EQ(values_of(range(50).shuffle({.seed = 3})),
            values_of(range(50).shuffle({.buffer_size = 1000, .seed = 3})));
}

TEST(Shuffle, SeedsGiveDifferentOrders) {
  EXPECT_NE(values_of(range(50).shuffle({.seed = 1})), values_of(range(50).shuffle({.seed = 2})));
  EXPECT_EQ(values_of(range(50).shuffle()), values_of(range(50).shuffle({.seed = 0})));
}

TEST(Shuffle, WithoutReshufflingAllEpochsAreAlike) {
  const auto dataset = range(30).shuffle({.seed = 4, .reshuffle_each_iteration = false});
  const Integers first = values_of(dataset);
  EXPECT_EQ(values_of(dataset), first);
  EXPECT_EQ(first, values_of(range(30).shuffle({.seed = 4})));
}

TEST(Shuffle, ASmallBufferMovesElementsForwardByLessThanItsSize) {
  const Integers order = values_of(range(1000).shuffle({.buffer_size = 10, .seed = 2}));
  EXPECT_THAT(order, UnorderedElementsAreArray(iota(1000)));
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_LT(order[i], static_cast<std::int64_t>(i) + 10);
  EXPECT_EQ(values_of(range(20).shuffle({.buffer_size = 1})), iota(20));
}

TEST(Shuffle, IsUniformOverAllOrders) {
  std::map<Integers, int> counts;
  const auto dataset = range(4).shuffle({.seed = 9});
  constexpr int kEpochs = 24 * 500;
  for (int i = 0; i < kEpochs; ++i) ++counts[values_of(dataset)];
  ASSERT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 500, 5 * std::sqrt(500.));
}

TEST(Shuffle, BeforeRepeatEachRoundIsAnEpoch) {
  const auto shuffled = range(10).shuffle({.seed = 8});
  const Integers rounds = values_of(shuffled.repeat(2));
  Integers epochs = values_of(shuffled);
  const Integers second = values_of(shuffled);
  epochs.insert(epochs.end(), second.begin(), second.end());
  EXPECT_EQ(rounds, epochs);
}

TEST(Shuffle, RefusesAllOfAnInfiniteDatasetAndNegativeBuffers) {
  EXPECT_THROW(range(3).repeat().shuffle(), InvalidArgument);
  EXPECT_NO_THROW(range(3).repeat().shuffle({.buffer_size = 5}));
  EXPECT_THROW(range(3).shuffle({.buffer_size = -1}), InvalidArgument);
}

TEST(Shuffle, DoesNotReadWhatLiesInTheBuffer) {
  const auto reads = std::make_shared<int>(0);
  const auto endless = range(1 << 20).map([reads](const Tensor& x) {
    ++*reads;
    return x;
  });
  auto iterator = endless.shuffle({.buffer_size = 64}).iterator();
  iterator.next();
  EXPECT_EQ(*reads, 1);
}

}  // namespace
}  // namespace lockstep::data
