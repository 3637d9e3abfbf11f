// SPDX-License-Identifier: Apache-2.0
// What collectives compute. How they fail: communicator_failures_test.cc.
#include "comm/communicator_conformance.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "comm/hierarchical_world.h"
#include "comm/in_process_world.h"
#include "comm/tree_reference.h"

namespace lockstep::testing {

INSTANTIATE_TEST_SUITE_P(Communicators, CommunicatorConformance,
                         ::testing::Values(in_process(), hierarchical()),
                         [](const auto& info) { return info.param.name; });

std::string Outcome::text() const {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception";
  }
  return "";
}

void expect_all_ok(const std::vector<Outcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank)
    EXPECT_TRUE(outcomes[rank].ok()) << "rank " << rank << ": " << outcomes[rank].text();
}

namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 5, 8};

template <class T>
ConstElements in(const std::vector<T>& values) {
  return elements(std::span<const T>(values));
}
template <class T>
Elements out(std::vector<T>& values) {
  return elements(std::span<T>(values));
}

template <class T>
void expect_bits(const std::vector<T>& got, const std::vector<T>& expected, int rank) {
  expect(same_bits<T>(got, expected), "rank ", rank, ": other bits than the reference, ",
         got.size(), " elements of ", name_of(dtype_of<T>));
}

template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::int64_t begin, std::int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

// Calls f(T{}) for every element type that can be summed.
template <class F>
void for_each_summable(F f) {
  f(float{}), f(double{}), f(half{}), f(bfloat16{}), f(std::int32_t{}), f(std::int64_t{});
  f(std::uint8_t{});
}

}  // namespace

TEST_P(CommunicatorConformance, AllReduceGivesTheTreeSumOnEveryRank) {
  for (const int size : kSizes) {
    const auto world = make_world(size);
    for_each_summable([&]<class T>(T) {
      for (const std::int64_t count : {0, 1, 7, 4099, 40'001}) {
        const std::vector<T> expected = reference_sum<T>(size, count);
        expect_all_ok(world->run([&](Communicator& comm) {
          const std::vector<T> mine = random_values<T>(comm.rank(), count);
          std::vector<T> result(mine.size()), in_place = mine;
          comm.all_reduce({.sequence = 0}, ReduceOp::sum, in(mine), out(result)).wait();
          comm.all_reduce({.sequence = 1}, ReduceOp::sum, in(in_place), out(in_place)).wait();
          expect_bits(result, expected, comm.rank());
          expect_bits(in_place, expected, comm.rank());
        }));
      }
    });
  }
}

TEST_P(CommunicatorConformance, AllReduceOfALargeBuffer) {
  constexpr std::int64_t kCount = 1'000'003;
  const std::vector<float> expected = reference_sum<float>(3, kCount);
  expect_all_ok(make_world(3)->run([&](Communicator& comm) {
    std::vector<float> mine = random_values<float>(comm.rank(), kCount);
    comm.all_reduce({.name = "large"}, ReduceOp::sum, in(mine), out(mine)).wait();
    expect_bits(mine, expected, comm.rank());
  }));
}

// More than any implementation moves in one piece.
TEST_P(CommunicatorConformance, LargeBuffersOfEveryKind) {
  constexpr std::int64_t kCount = 70'001;
  for (const int size : {2, 4, 5, 8}) {
    const std::vector<float> sum = reference_sum<float>(size, kCount * size);
    std::vector<std::vector<float>> inputs;
    std::vector<float> gathered;
    for (int rank = 0; rank < size; ++rank) {
      inputs.push_back(random_values<float>(rank, kCount * size));
      gathered.insert(gathered.end(), inputs.back().begin(), inputs.back().begin() + kCount);
    }
    expect_all_ok(make_world(size)->run([&](Communicator& comm) {
      const std::vector<float>& mine = inputs[static_cast<std::size_t>(comm.rank())];
      std::vector<float> part(static_cast<std::size_t>(kCount)), all(mine.size());
      comm.reduce_scatter({.sequence = 0}, ReduceOp::sum, in(mine), out(part)).wait();
      expect_bits(part, part_of(sum, comm.rank() * kCount, kCount), comm.rank());
      comm.all_reduce({.sequence = 1}, ReduceOp::sum, in(mine), out(all)).wait();
      expect_bits(all, sum, comm.rank());
      part = part_of(mine, 0, kCount);
      comm.all_gather({.sequence = 2}, in(part), out(all)).wait();
      expect_bits(all, gathered, comm.rank());
      comm.broadcast({.sequence = 3}, size - 1, out(part)).wait();
      expect_bits(part, part_of(inputs.back(), 0, kCount), comm.rank());
    }));
  }
}

TEST_P(CommunicatorConformance, AllRanksMayShareOneOutput) {
  if (!GetParam().one_process) GTEST_SKIP() << "ranks have no memory in common";
  for (const int size : kSizes) {
    for (const std::int64_t count : {1, 40'001}) {
      const std::vector<float> expected = reference_sum<float>(size, count);
      std::vector<float> shared(expected.size());
      expect_all_ok(make_world(size)->run([&](Communicator& comm) {
        const std::vector<float> mine = random_values<float>(comm.rank(), count);
        comm.all_reduce({}, ReduceOp::sum, in(mine), out(shared)).wait();
        expect_bits(shared, expected, comm.rank());
      }));
    }
  }
}

TEST_P(CommunicatorConformance, AllRanksMayShareTheOutputOfAllGather) {
  if (!GetParam().one_process) GTEST_SKIP() << "ranks have no memory in common";
  std::vector<std::int32_t> shared(3 * 9000), expected(shared.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int>(i / 9000);
  expect_all_ok(make_world(3)->run([&](Communicator& comm) {
    const std::vector<std::int32_t> mine(9000, comm.rank());
    comm.all_gather({}, in(mine), out(shared)).wait();
    expect_bits(shared, expected, comm.rank());
  }));
}

TEST_P(CommunicatorConformance, MeanDividesTheSumOnce) {
  expect_all_ok(make_world(3)->run([&](Communicator& comm) {
    const auto check = [&]<class T>(T, std::int64_t sequence) {
      std::vector<T> mine = random_values<T>(comm.rank(), 5000);
      comm.all_reduce({.sequence = sequence}, ReduceOp::mean, in(mine), out(mine)).wait();
      std::vector<T> expected = reference_sum<T>(3, 5000);
      for (T& value : expected) {
        if constexpr (std::is_same_v<T, double>) {
          value /= 3;
        } else {
          value = T(static_cast<float>(value) / 3);
        }
      }
      expect_bits(mine, expected, comm.rank());
    };
    check(float{}, 0), check(double{}, 1), check(half{}, 2), check(bfloat16{}, 3);
  }));
}

TEST_P(CommunicatorConformance, CDO_01_SumAndMeanOfScalars) {
  const auto reduce = [](Communicator& comm, std::int64_t sequence, ReduceOp op) {
    std::vector<float> x{static_cast<float>(comm.rank() + 1)};
    comm.all_reduce({.sequence = sequence}, op, in(x), out(x)).wait();
    return x[0];
  };
  expect_all_ok(make_world(4)->run([&](Communicator& comm) {
    expect(reduce(comm, 0, ReduceOp::sum) == 10.0F, "sum of 1, 2, 3, 4");
    expect(reduce(comm, 1, ReduceOp::mean) == 2.5F, "mean of 1, 2, 3, 4");
  }));
  expect_all_ok(make_world(2)->run([&](Communicator& comm) {
    expect(reduce(comm, 0, ReduceOp::sum) == 3.0F, "sum of 1, 2");
    expect(reduce(comm, 1, ReduceOp::mean) == 1.5F, "mean of 1, 2");
  }));
}

TEST_P(CommunicatorConformance, CDO_02_BatchOfReductions) {
  expect_all_ok(make_world(4)->run([](Communicator& comm) {
    const auto r = static_cast<float>(comm.rank());
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean}) {
      std::vector<float> x{1 + 2 * r}, y{2 + 2 * r};
      const std::int64_t base = op == ReduceOp::sum ? 0 : 2;
      Pending first = comm.all_reduce({.sequence = base}, op, in(x), out(x));
      Pending second = comm.all_reduce({.sequence = base + 1}, op, in(y), out(y));
      first.wait();
      second.wait();
      expect(x[0] == (op == ReduceOp::sum ? 16.0F : 4.0F), "first of the pair, got ", x[0]);
      expect(y[0] == (op == ReduceOp::sum ? 20.0F : 5.0F), "second of the pair, got ", y[0]);
    }
  }));
}

TEST_P(CommunicatorConformance, ReduceScatterGivesEachRankItsPart) {
  for (const int size : kSizes) {
    const auto world = make_world(size);
    for_each_summable([&]<class T>(T) {
      for (const std::int64_t part : {0, 1, 33, 9001}) {
        const std::vector<T> sum = reference_sum<T>(size, part * size);
        expect_all_ok(world->run([&](Communicator& comm) {
          const std::int64_t begin = part * comm.rank();
          std::vector<T> mine = random_values<T>(comm.rank(), part * size);
          std::vector<T> result(static_cast<std::size_t>(part));
          comm.reduce_scatter({.sequence = 0}, ReduceOp::sum, in(mine), out(result)).wait();
          expect_bits(result, part_of(sum, begin, part), comm.rank());
          Elements own{mine.data() + begin, part, dtype_of<T>};
          comm.reduce_scatter({.sequence = 1}, ReduceOp::sum, in(mine), own).wait();
          expect_bits(part_of(mine, begin, part), result, comm.rank());
        }));
      }
    });
  }
}

TEST_P(CommunicatorConformance, AllGatherConcatenatesInRankOrder) {
  for (const int size : kSizes) {
    const auto world = make_world(size);
    for (const std::int64_t count : {0, 1, 33, 9001}) {
      std::vector<half> expected;
      for (int rank = 0; rank < size; ++rank) {
        const auto part = random_values<half>(rank, count);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      expect_all_ok(world->run([&](Communicator& comm) {
        const std::vector<half> mine = random_values<half>(comm.rank(), count);
        std::vector<half> all(expected.size()), in_place(expected.size());
        comm.all_gather({.sequence = 0}, in(mine), out(all)).wait();
        expect_bits(all, expected, comm.rank());
        std::ranges::copy(mine, in_place.begin() + comm.rank() * count);
        const ConstElements own{in_place.data() + comm.rank() * count, count, DType::f16};
        comm.all_gather({.sequence = 1}, own, out(in_place)).wait();
        expect_bits(in_place, expected, comm.rank());
      }));
    }
  }
}

TEST_P(CommunicatorConformance, AllGatherTakesACountPerRank) {
  const std::vector<std::int64_t> counts{3, 0, 20'000, 1};
  std::vector<std::int64_t> expected;
  for (int rank = 0; rank < 4; ++rank) {
    const auto part = random_values<std::int64_t>(rank, counts[static_cast<std::size_t>(rank)]);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  expect_all_ok(make_world(4)->run([&](Communicator& comm) {
    const std::int64_t count = counts[static_cast<std::size_t>(comm.rank())];
    const auto mine = random_values<std::int64_t>(comm.rank(), count);
    std::vector<std::int64_t> all(expected.size());
    comm.all_gather({}, in(mine), out(all), counts).wait();
    expect_bits(all, expected, comm.rank());
  }));
}

TEST_P(CommunicatorConformance, CountsThatAreAllEqualMeetNoCounts) {
  expect_all_ok(make_world(2)->run([](Communicator& comm) {
    const std::vector<std::int64_t> counts{2, 2};
    const std::vector<std::uint8_t> mine(2, static_cast<std::uint8_t>(comm.rank() + 1));
    std::vector<std::uint8_t> all(4);
    const auto given = comm.rank() == 0 ? std::span(counts) : std::span<const std::int64_t>();
    comm.all_gather({}, in(mine), out(all), given).wait();
    expect_bits(all, {1, 1, 2, 2}, comm.rank());
  }));
}

TEST_P(CommunicatorConformance, BroadcastCopiesFromAnyRoot) {
  for (const int size : kSizes) {
    expect_all_ok(make_world(size)->run([&](Communicator& comm) {
      for (int root = 0; root < size; ++root)
        for (const std::int64_t count : {0, 1, 30'001}) {
          std::vector<double> data = random_values<double>(comm.rank(), count);
          comm.broadcast({.channel = Channel::variables, .sequence = root}, root, out(data)).wait();
          expect_bits(data, random_values<double>(root, count), comm.rank());
        }
    }));
  }
}

TEST_P(CommunicatorConformance, BoolIsGatheredAndBroadcast) {
  expect_all_ok(make_world(2)->run([](Communicator& comm) {
    bool mine = comm.rank() == 1, all[2] = {};
    comm.all_gather({.sequence = 0}, {&mine, 1, DType::boolean}, {all, 2, DType::boolean}).wait();
    expect(!all[0] && all[1], "gathered bool");
    comm.broadcast({.sequence = 1}, 1, {&mine, 1, DType::boolean}).wait();
    expect(mine, "broadcast bool");
  }));
}

TEST_P(CommunicatorConformance, NobodyLeavesABarrierBeforeAllHaveCome) {
  using namespace std::chrono_literals;
  for (const int size : {2, 5}) {
    expect_all_ok(make_world(size)->run([&](Communicator& comm) {
      comm.barrier({.channel = Channel::control, .sequence = 0}).wait();
      const auto start = std::chrono::steady_clock::now();
      if (comm.rank() == size - 1) std::this_thread::sleep_for(100ms);
      comm.barrier({.channel = Channel::control, .sequence = 1}).wait();
      expect(std::chrono::steady_clock::now() - start > 50ms, "left a barrier alone");
    }));
  }
}

TEST_P(CommunicatorConformance, CallsMeetByKeyWhateverTheirOrder) {
  constexpr int kCalls = 12;
  for (const int size : {2, 3, 8}) {
    expect_all_ok(make_world(size)->run([&](Communicator& comm) {
      std::vector<std::vector<std::int32_t>> values(kCalls);
      std::vector<Pending> pending(kCalls);
      for (int i = 0; i < kCalls; ++i) {
        const auto k = static_cast<std::size_t>((i + 5 * comm.rank()) % kCalls);
        const std::string name = "call " + std::to_string(k);
        const CollectiveKey key{.channel = k % 2 ? Channel::user : Channel::gradients,
                                .sequence = static_cast<std::int64_t>(k / 2),
                                .name = name};
        values[k].assign(k + 1, static_cast<std::int32_t>(k));
        pending[k] = comm.all_reduce(key, ReduceOp::sum, in(values[k]), out(values[k]));
      }
      for (int i = 0; i < kCalls; ++i) {
        const auto k = static_cast<std::size_t>((kCalls - 1 - i + comm.rank()) % kCalls);
        pending[k].wait();
        const std::vector<std::int32_t> expected(k + 1, static_cast<std::int32_t>(k) * size);
        expect_bits(values[k], expected, comm.rank());
      }
    }));
  }
}

TEST_P(CommunicatorConformance, AKeyIsUsedAgainAndMeetsInTurn) {
  constexpr int kTimes = 50;
  expect_all_ok(make_world(3)->run([&](Communicator& comm) {
    std::vector<std::vector<std::int32_t>> values;
    std::vector<Pending> pending;
    values.reserve(kTimes);
    for (int i = 0; i < kTimes; ++i) {
      auto& value = values.emplace_back(1, i);
      pending.push_back(comm.all_reduce({}, ReduceOp::sum, in(value), out(value)));
      if (i % (comm.rank() + 2) == 0) pending.back().wait();
    }
    for (int i = 0; i < kTimes; ++i) {
      pending[static_cast<std::size_t>(i)].wait();
      expect(values[static_cast<std::size_t>(i)][0] == 3 * i, "call ", i, " met another");
    }
  }));
}

TEST_P(CommunicatorConformance, DoneTurnsTrueWithoutWaiting) {
  expect_all_ok(make_world(2)->run([](Communicator& comm) {
    std::vector<float> x{1};
    Pending pending = comm.all_reduce({}, ReduceOp::sum, in(x), out(x));
    while (!pending.done()) std::this_thread::yield();
    expect(x[0] == 2, "got ", x[0]);
    pending.wait();
    expect(pending.done(), "an empty handle is done");
  }));
}

TEST_P(CommunicatorConformance, ThreadsOfOneRankDoNotMix) {
  constexpr int kCalls = 300;
  const auto loop = [](Communicator& comm, Channel channel, std::int64_t count) {
    const std::vector<float> expected = reference_sum<float>(2, count);
    const std::vector<float> mine = random_values<float>(comm.rank(), count);
    std::vector<float> result(mine.size());
    for (int i = 0; i < kCalls; ++i) {
      comm.all_reduce({.channel = channel, .sequence = i}, ReduceOp::sum, in(mine), out(result))
          .wait();
      expect_bits(result, expected, comm.rank());
    }
  };
  expect_all_ok(make_world(2)->run([&](Communicator& comm) {
    Outcome second;
    std::thread thread([&] {
      try {
        loop(comm, Channel::gradients, 20'000);
      } catch (...) {
        second.error = std::current_exception();
      }
    });
    try {
      loop(comm, Channel::user, 100);
    } catch (...) {
      thread.join();
      throw;
    }
    thread.join();
    expect(second.ok(), second.text());
  }));
}

TEST_P(CommunicatorConformance, SumsWithinAndThenBetweenWorkersHaveTheBitsOfOneGroup) {
  constexpr std::int64_t kCount = 10'001;
  const auto worker = make_world(2);  // one after the other stands for worker 0, worker 1, and both
  for_each_summable([&]<class T>(T) {
    const std::vector<T> expected = reference_sum<T>(4, kCount);
    expect_all_ok(worker->run([&](Communicator& comm) {
      std::vector<std::vector<T>> local(2);
      for (int w = 0; w < 2; ++w) {
        auto& sum = local[static_cast<std::size_t>(w)];
        sum = random_values<T>(2 * w + comm.rank(), kCount);
        comm.all_reduce({.sequence = w}, ReduceOp::sum, in(sum), out(sum)).wait();
      }
      auto& total = local[static_cast<std::size_t>(comm.rank())];
      comm.all_reduce({.sequence = 2}, ReduceOp::sum, in(total), out(total)).wait();
      expect_bits(total, expected, comm.rank());
    }));
  });
}

TEST_P(CommunicatorConformance, RandomSchedulesGiveTheBitsOfOneThread) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const int size = 2 + static_cast<int>(random() % 4);
    const std::int64_t count = 1 + static_cast<std::int64_t>(random() % 9000);
    const unsigned seed = static_cast<unsigned>(random());
    const auto world = make_world(size);
    const std::vector<float> expected = reference_sum<float>(size, count, seed);
    for (int repeat = 0; repeat < 10; ++repeat) {
      expect_all_ok(world->run([&, repeat](Communicator& comm) {
        std::mt19937 delays(seed + static_cast<unsigned>(comm.rank() * 77 + repeat));
        const auto pause = [&] {
          if (delays() % 3 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(delays() % 200));
        };
        std::vector<int> order(6);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::shuffle(order, delays);
        const std::vector<float> mine = random_values<float>(comm.rank(), count, seed);
        std::vector<std::vector<float>> results(order.size(), std::vector<float>(mine.size()));
        std::vector<Pending> pending(order.size());
        for (const int k : order) {
          pause();
          auto& result = results[static_cast<std::size_t>(k)];
          pending[static_cast<std::size_t>(k)] =
              comm.all_reduce({.sequence = k}, ReduceOp::sum, in(mine), out(result));
        }
        std::ranges::shuffle(order, delays);
        for (const int k : order) {
          pause();
          pending[static_cast<std::size_t>(k)].wait();
          expect_bits(results[static_cast<std::size_t>(k)], expected, comm.rank());
        }
      }));
    }
  }
}

}  // namespace lockstep::testing
