// SPDX-License-Identifier: Apache-2.0
// What NCCL does with ranks that do not agree, and what the fake device says to it; and how
// StreamGroup keeps that from happening.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/comm/in_process.h>
#include <lockstep/device/buffer.h>
#include <lockstep/device/event.h>

#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/fake_collectives.h"
#include "device/accelerator.h"
#include "support/errors.h"

namespace lockstep {
namespace {

using lockstep::testing::throws;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSeeds = 200;
constexpr std::int64_t kCount = 8;

// A rank's bucket: floats in its device's memory.
struct Bucket {
  Bucket(int rank, float value, std::int64_t count = kCount)
      : device{DeviceKind::fake, rank}, count(count) {
    const std::vector<float> values(static_cast<std::size_t>(count), value);
    buffer = Buffer::allocate(device, values.size() * sizeof(float));
    copy_bytes(device, buffer.data(), Device{}, values.data(), buffer.bytes());
  }
  Elements elements(std::int64_t n) const { return {buffer.data(), n, DType::f32}; }
  Elements elements() const { return elements(count); }
  std::vector<float> on_host() const {
    std::vector<float> values(static_cast<std::size_t>(count));
    copy_bytes(Device{}, values.data(), device, buffer.data(), buffer.bytes());
    return values;
  }
  Device device;
  std::int64_t count;
  Buffer buffer;
};

// Puts an all-reduce as NCCL gets it: no rank is asked whether the others agree.
void put(FakeCollectives& collectives, int rank, const Bucket& bucket, std::int64_t number,
         std::int64_t count = kCount) {
  const Stream stream = communication_stream(bucket.device);
  Event ready;
  ready.record(compute_stream(bucket.device));
  ready.hold(stream);
  const Elements range = bucket.elements(count);
  collectives.put(rank, all_reduce_call({Channel::gradients, number}, ReduceOp::sum, range, range),
                  range.data, range.data, {}, stream);
  Event done;
  done.record(stream);
  done.hold(compute_stream(bucket.device));
}

using Program = std::function<void(FakeCollectives&, const std::vector<Bucket>& a,
                                   const std::vector<Bucket>& b)>;
std::vector<std::string> findings_of(std::uint64_t seed, const Program& program) {
  fake::Devices devices({.devices = 3, .seed = seed});
  {
    FakeCollectives collectives(3);
    std::vector<Bucket> a, b;
    for (int rank = 0; rank < 3; ++rank) {
      a.emplace_back(rank, static_cast<float>(rank + 1));
      b.emplace_back(rank, 10);
    }
    program(collectives, a, b);
    devices.findings();  // while the buckets are there
  }
  return devices.findings();
}

TEST(FakeCollectives, SumInWhateverOrderStreamsRun) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(findings_of(seed,
                            [](FakeCollectives& collectives, const auto& a, const auto& b) {
                              for (int rank : {2, 0, 1}) {
                                const auto r = static_cast<std::size_t>(rank);
                                put(collectives, rank, a[r], 0);
                                put(collectives, rank, b[r], 1);
                              }
                              for (const Bucket& bucket : a) EXPECT_THAT(bucket.on_host(), Each(6));
                              for (const Bucket& bucket : b)
                                EXPECT_THAT(bucket.on_host(), Each(30));
                            }),
                IsEmpty())
        << seed;
}

TEST(FakeCollectives, FindAnotherOrderOnEverySeed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(findings_of(seed,
                            [](FakeCollectives& collectives, const auto& a, const auto& b) {
                              for (int rank = 0; rank < 3; ++rank) {
                                const auto r = static_cast<std::size_t>(rank);
                                put(collectives, rank, rank == 1 ? b[r] : a[r], rank == 1);
                                put(collectives, rank, rank == 1 ? a[r] : b[r], rank != 1);
                              }
                            }),
                Contains(AllOf(HasSubstr("ranks disagree"), HasSubstr("gradients/0"),
                               HasSubstr("gradients/1"))));
}

TEST(FakeCollectives, FindAnotherCountOnEverySeed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_THAT(
        findings_of(seed,
                    [](FakeCollectives& collectives, const auto& a, const auto&) {
                      for (int rank = 0; rank < 3; ++rank)
                        put(collectives, rank, a[static_cast<std::size_t>(rank)], 0,
                            rank == 1 ? 7 : 8);
                    }),
        Contains(AllOf(HasSubstr("ranks disagree"), HasSubstr("f32[7]"), HasSubstr("f32[8]"))));
}

TEST(FakeCollectives, FindASkippedCallOnEverySeed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto found =
        findings_of(seed, [](FakeCollectives& collectives, const auto& a, const auto&) {
          for (int rank : {0, 2}) put(collectives, rank, a[static_cast<std::size_t>(rank)], 0);
          EXPECT_THAT([&] { a[0].on_host(); },
                      throws<DeadlineExceeded>("never be done", "FAKE:2 communication is at"));
          collectives.abort();
          EXPECT_THAT(a[0].on_host(), Each(1)) << "abort lets the streams go on";
        });
    EXPECT_THAT(found, Contains(AllOf(HasSubstr("deadlock"), HasSubstr("FAKE:0 communication"))));
  }
}

// ---- StreamGroup: every kind, and ranks that disagree

// Calls body(rank) in a thread per rank; what each threw.
std::vector<std::exception_ptr> on_all_ranks(int size, StreamGroup& group, InProcessGroup& host,
                                             const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        group.rank(rank).abort(std::current_exception());
      }
      host.returned(rank);
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

class StreamGroupTest : public ::testing::TestWithParam<CrossDeviceOps> {
 protected:
  static constexpr int kSize = 3;
  fake::Devices devices_{{.devices = kSize, .seed = 11}};
  InProcessGroup host_{kSize};
  const std::vector<Communicator*> hosts_{&host_.rank(0), &host_.rank(1), &host_.rank(2)};
  StreamGroup group_{hosts_,
                     make_stream_collectives(GetParam(), list_devices(DeviceKind::fake), hosts_)};
};
INSTANTIATE_TEST_SUITE_P(, StreamGroupTest,
                         ::testing::Values(CrossDeviceOps::nccl_all_reduce,
                                           CrossDeviceOps::reduction_to_one_device),
                         [](const auto& info) {
                           return info.param == CrossDeviceOps::nccl_all_reduce ? "InStreams"
                                                                                : "OnTheHost";
                         });

TEST_P(StreamGroupTest, OffersEveryCollectiveInTheStreams) {
  const auto errors = on_all_ranks(kSize, group_, host_, [&](int rank) {
    Communicator& communicator = group_.rank(rank);
    const auto value = static_cast<float>(rank + 1);
    const Bucket sum(rank, value), mean(rank, value), six(rank, value, 6), two(rank, 0, 2);
    const Bucket own(rank, value, rank), all(rank, 0, 3), from(rank, value, 2);
    const Stream stream = compute_stream(sum.device);
    const std::vector<std::int64_t> counts{0, 1, 2};
    const auto key = [](std::int64_t n) { return CollectiveKey{Channel::user, n}; };
    std::vector<Pending> calls;
    calls.push_back(
        communicator.all_reduce(key(0), ReduceOp::sum, sum.elements(), sum.elements(), stream));
    calls.push_back(
        communicator.all_reduce(key(1), ReduceOp::mean, mean.elements(), mean.elements(), stream));
    calls.push_back(
        communicator.reduce_scatter(key(2), ReduceOp::sum, six.elements(), two.elements(), stream));
    calls.push_back(
        communicator.all_gather(key(3), own.elements(), all.elements(), counts, stream));
    calls.push_back(communicator.broadcast(key(4), 1, from.elements(), stream));
    for (Pending& call : calls) call.wait();
    EXPECT_THAT(sum.on_host(), Each(6));
    EXPECT_THAT(mean.on_host(), Each(2));
    EXPECT_THAT(two.on_host(), Each(6));
    EXPECT_THAT(all.on_host(), ::testing::ElementsAre(2, 3, 3));
    EXPECT_THAT(from.on_host(), Each(2));
  });
  EXPECT_THAT(errors, Each(nullptr));
  EXPECT_THAT(devices_.findings(), IsEmpty());
}

TEST_P(StreamGroupTest, TellsAllRanksOfCallsThatDiffer) {
  const auto errors = on_all_ranks(kSize, group_, host_, [&](int rank) {
    const Bucket bucket(rank, 1);
    const Elements range = bucket.elements(rank == 2 ? 7 : 8);
    group_.rank(rank)
        .all_reduce({Channel::user, 0}, ReduceOp::sum, range, range, compute_stream(bucket.device))
        .wait();
  });
  for (const auto& error : errors)
    EXPECT_THAT([&] { std::rethrow_exception(error); },
                throws<PeerError>("ranks disagree", "f32[7]", "f32[8]"));
}

TEST_P(StreamGroupTest, WorksAgainInTheNextEpoch) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto errors = on_all_ranks(kSize, group_, host_, [&](int rank) {
      const Bucket bucket(rank, 1);
      if (epoch == 1 && rank == 0) throw FailedPrecondition("[test] this rank fails");
      group_.rank(rank)
          .all_reduce({Channel::user, 0}, ReduceOp::sum, bucket.elements(), bucket.elements(),
                      compute_stream(bucket.device))
          .wait();
      EXPECT_THAT(bucket.on_host(), Each(3));
    });
    for (const auto& error : errors) EXPECT_EQ(error != nullptr, epoch == 1) << epoch;
    host_.begin_epoch();
    group_.begin_epoch();
  }
}

TEST_P(StreamGroupTest, RefusesHostStreams) {
  std::vector<float> values(4);
  EXPECT_THAT(
      [&] {
        group_.rank(0)
            .all_reduce({}, ReduceOp::sum, elements(std::span(values)), elements(std::span(values)))
            .wait();
      },
      throws<InvalidArgument>("stream of an accelerator", "CPU:0"));
}

}  // namespace
}  // namespace lockstep
