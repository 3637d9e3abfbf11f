// SPDX-License-Identifier: Apache-2.0
// Chains of random transformations against the definitions, element by element.
#include <gmock/gmock.h>
#include <lockstep/data/from_tensors.h>

#include <random>

#include "data/reference.h"

namespace lockstep::data {
namespace {

using reference::Elements;

// A chain as a function of the epoch, next to the dataset that should do the same.
struct Chain {
  Dataset<Tensor> dataset;
  std::function<Elements(std::uint64_t epoch)> elements;
  bool ragged = false;  // batches may be short, so they cannot be batched again
};

Chain source(std::int64_t rows, bool table) {
  Elements all;
  for (std::int64_t i = 0; i < rows; ++i) all.push_back({i});
  auto dataset =
      table ? from_tensor_slices(Tensor(Shape{rows}, std::span<const std::int64_t>(iota(rows))))
            : range(rows);
  return {std::move(dataset), [all](std::uint64_t) { return all; }};
}

Chain extend(const Chain& in, std::mt19937& random) {
  const auto upto = [&](int most) { return static_cast<std::int64_t>(random() % (most + 1)); };
  const auto before = in.elements;
  Chain out = in;
  switch (random() % 8) {
    case 0: {
      const std::int64_t buffer = upto(3) ? upto(12) : 0;
      const std::uint64_t seed = random();
      const bool again = upto(3) > 0;
      out.dataset = in.dataset.shuffle(
          {.buffer_size = buffer, .seed = seed, .reshuffle_each_iteration = again});
      out.elements = [=](std::uint64_t epoch) {
        return reference::shuffled(before(epoch), buffer, seed, again ? epoch : 0);
      };
      break;
    }
    case 1: {
      if (in.ragged) break;
      const std::int64_t size = 1 + upto(5);
      const bool drop = upto(1);
      out.dataset = in.dataset.batch(size, {.drop_remainder = drop});
      out.elements = [=](std::uint64_t epoch) {
        return reference::batched(before(epoch), size, drop);
      };
      out.ragged = !drop;
      break;
    }
    case 2: {
      const std::int64_t count = upto(3);
      out.dataset = in.dataset.repeat(count);
      out.elements = [=](std::uint64_t epoch) {
        Elements all;
        for (std::int64_t r = 0; r < count; ++r) {
          const Elements round =
              before(epoch * static_cast<std::uint64_t>(count) + static_cast<std::uint64_t>(r));
          all.insert(all.end(), round.begin(), round.end());
        }
        return all;
      };
      break;
    }
    case 3: {
      const std::int64_t count = upto(30);
      out.dataset = in.dataset.take(count);
      out.elements = [=](std::uint64_t epoch) {
        Elements all = before(epoch);
        all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
        return all;
      };
      break;
    }
    case 4: {
      const std::int64_t count = upto(6);
      out.dataset = in.dataset.skip(count);
      out.elements = [=](std::uint64_t epoch) {
        Elements all = before(epoch);
        all.erase(all.begin(), all.begin() + std::min<std::int64_t>(count, std::ssize(all)));
        return all;
      };
      break;
    }
    case 5: {
      const std::int64_t shards = 1 + upto(3), index = upto(static_cast<int>(shards) - 1);
      out.dataset = in.dataset.shard(shards, index);
      out.elements = [=](std::uint64_t epoch) {
        Elements mine;
        const Elements all = before(epoch);
        for (std::int64_t i = 0; i < std::ssize(all); ++i)
          if (i % shards == index) mine.push_back(all[static_cast<std::size_t>(i)]);
        return mine;
      };
      break;
    }
    case 6: {
      out.dataset = in.dataset.map([](const Tensor& x) {
        Integers values = x.to_vector<std::int64_t>();
        for (std::int64_t& value : values) value = 3 * value + 1;
        return Tensor(x.shape(), std::span<const std::int64_t>(values));
      });
      out.elements = [=](std::uint64_t epoch) {
        Elements all = before(epoch);
        for (Integers& element : all)
          for (std::int64_t& value : element) value = 3 * value + 1;
        return all;
      };
      break;
    }
    default:
      out.dataset = in.dataset.prefetch(upto(3));
  }
  return out;
}

TEST(RandomPipelines, AgreeWithTheDefinitions) {
  std::mt19937 random(20240607);
  std::size_t elements = 0;
  for (int trial = 0; trial < 500; ++trial) {
    Chain chain = source(static_cast<std::int64_t>(random() % 41), random() % 2);
    for (std::size_t length = 1 + random() % 6; length > 0; --length) chain = extend(chain, random);
    const std::int64_t first_epoch = trial % 3;
    for (std::int64_t epoch = first_epoch; epoch < first_epoch + 2; ++epoch) {
      const Elements expected = chain.elements(static_cast<std::uint64_t>(epoch));
      Iterator<Tensor> walk(chain.dataset.erased().iterator(epoch), Tensor());
      ASSERT_EQ(drain(walk), expected) << chain.dataset.describe() << " in epoch " << epoch;
      EXPECT_EQ(chain.dataset.cardinality(), std::ssize(expected)) << chain.dataset.describe();
      const std::int64_t position = static_cast<std::int64_t>(random() % (expected.size() + 1));
      Iterator<Tensor> later(chain.dataset.erased().iterator(epoch, position), Tensor());
      ASSERT_EQ(drain(later), Elements(expected.begin() + position, expected.end()))
          << chain.dataset.describe() << " in epoch " << epoch << " from " << position;
      elements += expected.size();
    }
  }
  EXPECT_GT(elements, 5000u) << "the trials should not be mostly empty";
}

}  // namespace
}  // namespace lockstep::data
