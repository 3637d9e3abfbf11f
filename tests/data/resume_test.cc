// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>

#include "data/helpers.h"

namespace lockstep::data {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor plus_one(const Tensor& x) { return Tensor(x.item<std::int64_t>() + 1); }

Dataset<Tensor> up_to(std::int64_t end) {
  return from_generator([end] {
    return [end, i = std::int64_t{0}]() mutable -> std::optional<Tensor> {
      if (i == end) return std::nullopt;
      return Tensor(i++);
    };
  });
}

struct Pipeline {
  const char* name;
  std::function<Dataset<Tensor>()> make;
};

class Resume : public testing::TestWithParam<Pipeline> {};

TEST_P(Resume, AtEveryStepGoesOnWithTheSameElements) {
  constexpr std::int64_t kLimit = 40;
  for (const int epoch : {0, 2}) {
    const Dataset<Tensor> dataset = GetParam().make();
    for (int i = 0; i < epoch; ++i) dataset.iterator();
    Iterator<Tensor> walk = dataset.iterator();
    std::vector<StateMap> saved;
    std::vector<Integers> elements;
    for (;;) {
      saved.push_back(save(walk));
      const auto element = walk.next();
      if (!element || std::ssize(elements) == kLimit) break;
      elements.push_back(element->to_vector<std::int64_t>());
    }
    ASSERT_GT(elements.size(), 3u);
    for (std::size_t step = 0; step < saved.size(); ++step) {
      Iterator<Tensor> restored = GetParam().make().iterator();
      if (step % 2) restored.next();  // one that has run already
      restore(restored, saved[step]);
      EXPECT_EQ(restored.epoch(), epoch);
      const std::vector<Integers> rest(elements.begin() + static_cast<std::ptrdiff_t>(step),
                                       elements.end());
      EXPECT_EQ(drain(restored, std::ssize(rest)), rest) << "from step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, Resume,
    testing::Values(
        Pipeline{"shuffle", [] { return range(17).shuffle({.seed = 1}); }},
        Pipeline{"small_buffer", [] { return range(17).shuffle({.buffer_size = 4, .seed = 1}); }},
        Pipeline{"shuffle_batch", [] { return range(50).shuffle({.seed = 1}).batch(4); }},
        Pipeline{"drop_remainder",
                 [] { return range(50).shuffle().batch(4, {.drop_remainder = true}); }},
        Pipeline{"repeat", [] { return range(7).shuffle({.seed = 3}).repeat(3).batch(2); }},
        Pipeline{"endless_repeat",
                 [] { return range(7).shuffle({.seed = 3}).repeat().batch(2).prefetch(3); }},
        Pipeline{"repeat_then_shuffle",
                 [] { return range(5).repeat().shuffle({.buffer_size = 8}).batch(3); }},
        Pipeline{"map", [] { return range(30).shuffle().map(plus_one).batch(3).prefetch(4); }},
        Pipeline{"map_first", [] { return range(30).map(plus_one).shuffle().batch(3); }},
        Pipeline{
            "prefetch_inside",
            [] { return range(30).prefetch(3).shuffle({.buffer_size = 6}).batch(2).prefetch(2); }},
        Pipeline{"shuffled_batches",
                 [] { return range(60).batch(3).shuffle({.buffer_size = 5}).prefetch(1); }},
        Pipeline{
            "cut_out",
            [] { return range(90).skip(3).shard(2, 1).shuffle().take(33).repeat(2).batch(4); }},
        Pipeline{
            "generator",
            [] { return up_to(23).shuffle({.buffer_size = 5}).batch(2).repeat(2).prefetch(3); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Resume, NeitherCallsFunctionsNorReadsWhatStandsBefore) {
  const auto calls = std::make_shared<int>(0);
  const auto counting = range(1000).shuffle().map([calls](const Tensor& x) {
    ++*calls;
    return x;
  });
  auto walk = counting.batch(10).iterator();
  walk.skip(90);
  EXPECT_EQ(*calls, 0);
  EXPECT_TRUE(walk.next());
  EXPECT_EQ(*calls, 10);
}

TEST(Resume, JumpsOverWholeRoundsOfARepeat) {
  constexpr std::int64_t kRounds = 1'000'000'000;
  auto walk = range(1000).shuffle({.seed = 2}).repeat().batch(10).iterator();
  EXPECT_EQ(walk.skip(100 * kRounds), 100 * kRounds);
  const auto plain = range(1000).shuffle({.seed = 2}).batch(10);
  EXPECT_EQ(walk.next()->to_vector<std::int64_t>(),
            plain.erased().iterator(kRounds).next()->at(0).to_vector<std::int64_t>());
}

TEST(Resume, SkipStopsAtTheEnd) {
  EXPECT_EQ(range(10).batch(4).iterator().skip(100), 3);
  EXPECT_EQ(range(10).batch(4, {.drop_remainder = true}).iterator().skip(100), 2);
  EXPECT_EQ(range(10).shuffle().repeat(3).shard(4, 1).iterator().skip(INT64_MAX), 8);
  EXPECT_EQ(range(10).skip(3).take(5).prefetch(2).iterator().skip(INT64_MAX), 5);
  auto started = range(10).prefetch(2).iterator();
  started.next();
  EXPECT_EQ(started.skip(4), 4);
  EXPECT_EQ(started.next()->item<int>(), 5);
}

TEST(Resume, RefusesAPositionThatTheDatasetDoesNotHave) {
  auto walk = range(10).batch(2).iterator();
  walk.next();
  StateMap state = save(walk);
  state.integer("position") = 6;
  EXPECT_THAT([&] { restore(walk, state); },
              ThrowsMessage<InvalidArgument>(HasSubstr("which has 5 elements")));
  state.integer("position") = -1;
  EXPECT_THROW(restore(walk, state), InvalidArgument);
  state.integer("position") = INT64_MAX;
  EXPECT_THROW(restore(walk, state), InvalidArgument);
  EXPECT_EQ(walk.next()->to_vector<std::int64_t>(), (Integers{2, 3}))
      << "a refusal changes nothing";
}

TEST(Resume, AfterAnErrorRestoringMakesTheIteratorUsable) {
  bool broken = true;
  const auto dataset = range(5).map([&broken](const Tensor& x) {
    if (broken && x.item<int>() == 2) throw std::runtime_error("unreadable");
    return x;
  });
  auto walk = dataset.iterator();
  walk.next();
  const StateMap before = save(walk);
  walk.next();
  EXPECT_THROW(walk.next(), std::runtime_error);
  broken = false;
  restore(walk, before);
  EXPECT_EQ(drain(walk).size(), 4u);
}

// A training loop that is killed and started again.
TEST(Resume, LoopsGoOnThroughTheStateOfTheDataset) {
  const auto make = [] { return range(20).shuffle({.seed = 5}).batch(3).prefetch(2); };
  std::vector<Integers> expected;
  {
    const auto dataset = make();
    for (int epoch = 0; epoch < 3; ++epoch)
      for (const Tensor& batch : dataset) expected.push_back(batch.to_vector<std::int64_t>());
  }
  ASSERT_EQ(expected.size(), 21u);
  for (std::size_t killed_after = 0; killed_after <= expected.size(); ++killed_after) {
    std::vector<Integers> seen;
    StateMap state;
    {
      const auto dataset = make();
      state = save(dataset);
      for (int epoch = 0; epoch < 3 && seen.size() < killed_after; ++epoch)
        for (const Tensor& batch : dataset) {
          seen.push_back(batch.to_vector<std::int64_t>());
          state = save(dataset);
          if (seen.size() == killed_after) break;
        }
    }
    const auto dataset = make();
    restore(dataset, state);
    const std::int64_t epochs_begun = state.integer("epoch");
    for (std::int64_t epoch = epochs_begun; epoch < 3; ++epoch)
      for (const Tensor& batch : dataset) seen.push_back(batch.to_vector<std::int64_t>());
    EXPECT_EQ(seen, expected) << "killed after " << killed_after;
  }
}

TEST(Epochs, AreCountedByCopiesTogetherAndByOthersApart) {
  const auto dataset = range(3);
  const auto copy = dataset;
  EXPECT_EQ(dataset.iterator().epoch(), 0);
  EXPECT_EQ(copy.iterator().epoch(), 1);
  EXPECT_EQ(dataset.batch(2).iterator().epoch(), 0);
  EXPECT_EQ(dataset.iterator().epoch(), 2);
  EXPECT_EQ(dataset.erased().iterator(7).epoch(), 7);
  EXPECT_EQ(dataset.iterator().epoch(), 3);
}

TEST(Epochs, AfterARestoreGoOnFromTheRestoredOne) {
  const auto dataset = range(9).shuffle();
  std::vector<Integers> epochs;
  for (int i = 0; i < 4; ++i) epochs.push_back(values_of(dataset));
  StateMap state = save(dataset);
  state.integer("epoch") = 1;
  state.integer("position") = 0;
  restore(dataset, state);
  EXPECT_EQ(values_of(dataset), epochs[1]);
  EXPECT_EQ(values_of(dataset), epochs[2]);
}

}  // namespace
}  // namespace lockstep::data
