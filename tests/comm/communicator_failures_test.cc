// SPDX-License-Identifier: Apache-2.0
// How collectives fail: on every rank, in time, and with a text that shows what happened.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>

#include <chrono>
#include <thread>

#include "comm/communicator_conformance.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// A call on `count` elements of a dtype, in memory of its own.
struct Call {
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  std::int64_t count = 10;
  std::string name = "a";
  std::int64_t sequence = 0;

  void operator()(Communicator& comm) const {
    std::vector<double> memory(static_cast<std::size_t>(count));
    const Elements range{memory.data(), count, dtype};
    comm.all_reduce({.sequence = sequence, .name = name}, op, range, range).wait();
  }
};

std::vector<Outcome> disagree(World& world, const Call& even, const Call& odd) {
  return world.run([&](Communicator& comm) { (comm.rank() % 2 == 0 ? even : odd)(comm); });
}

void expect_peer_error_showing(const std::vector<Outcome>& outcomes, const std::string& one,
                               const std::string& other) {
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<PeerError>()) << outcome.text();
    EXPECT_THAT(outcome.text(), AllOf(HasSubstr(one), HasSubstr(other), HasSubstr("\"a\"")));
  }
}

template <class E>
void expect_throws(const std::function<void()>& f, const std::string& part) {
  try {
    f();
  } catch (const E& e) {
    expect(std::string(e.what()).find(part) != std::string::npos, "expected \"", part,
           "\" in: ", e.what());
    return;
  }
  expect(false, "expected an error with: ", part);
}

}  // namespace

TEST_P(CommunicatorConformance, S15_CountsThatDifferAreShownOnAllRanks) {
  for (const int size : {2, 4})
    expect_peer_error_showing(disagree(*make_world(size), {.count = 10}, {.count = 12}), "f32[10]",
                              "f32[12]");
}

TEST_P(CommunicatorConformance, S15_SwappedCallsAreAnErrorAndNeverMixed) {
  const auto outcomes = make_world(2)->run([&](Communicator& comm) {
    const bool first = comm.rank() == 0;
    Call{.name = first ? "a" : "b", .sequence = 0}(comm);
    Call{.name = first ? "b" : "a", .sequence = 1}(comm);
  });
  expect_peer_error_showing(outcomes, "user/0 \"a\"", "user/0 \"b\"");
}

TEST_P(CommunicatorConformance, COL_05_ShapesAndDtypesThatDiffer) {
  expect_peer_error_showing(disagree(*make_world(2), {.count = 2}, {.count = 3}), "f32[2]",
                            "f32[3]");
  expect_peer_error_showing(disagree(*make_world(2), {}, {.dtype = DType::f64}), "f32[10]",
                            "f64[10]");
}

TEST_P(CommunicatorConformance, OpsAndKindsThatDiffer) {
  expect_peer_error_showing(disagree(*make_world(2), {}, {.op = ReduceOp::mean}), "all_reduce sum",
                            "all_reduce mean");
  const auto outcomes = make_world(2)->run([](Communicator& comm) {
    if (comm.rank() == 0) return Call{}(comm);
    comm.barrier({.name = "a"}).wait();
  });
  expect_peer_error_showing(outcomes, "all_reduce sum", "barrier");
}

TEST_P(CommunicatorConformance, RootsAndCountsOfAllGatherThatDiffer) {
  auto outcomes = make_world(2)->run([](Communicator& comm) {
    float x = 0;
    comm.broadcast({.name = "a"}, comm.rank(), {&x, 1, DType::f32}).wait();
  });
  expect_peer_error_showing(outcomes, "from rank 0", "from rank 1");
  outcomes = make_world(2)->run([](Communicator& comm) {
    const std::int64_t counts[2][2] = {{1, 3}, {3, 1}};
    float x = 0, y[4];
    comm.all_gather({.name = "a"}, {&x, 1, DType::f32}, {y, 4, DType::f32}, counts[comm.rank()])
        .wait();
  });
  expect_peer_error_showing(outcomes, "with counts 1, 3", "with counts 3, 1");
}

TEST_P(CommunicatorConformance, COL_02_AMissingRankIsNamedAtTheDeadline) {
  const auto world = make_world(3, {.collective_timeout = 300ms});
  const auto outcomes = world->run([](Communicator& comm) {
    comm.barrier({.channel = Channel::control, .sequence = 7, .name = "ready"}).wait();
    if (comm.rank() == 1) std::this_thread::sleep_for(1200ms);
    const auto start = Clock::now();
    try {
      Call{}(comm);
    } catch (const DeadlineExceeded&) {
      expect(comm.rank() == 1 || Clock::now() - start < 1000ms, "threw late");
      throw;
    }
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<DeadlineExceeded>()) << outcome.text();
    EXPECT_THAT(outcome.text(), AllOf(HasSubstr("[Communicator::all_reduce]"), HasSubstr("f32[10]"),
                                      HasSubstr("for rank 1, which did not come"),
                                      HasSubstr("control/7 \"ready\"")));
  }
}

TEST_P(CommunicatorConformance, COL_02_LaterCollectivesOfTheEpochFailToo) {
  const auto outcomes = make_world(2)->run([](Communicator& comm) {
    if (comm.rank() == 1) std::this_thread::sleep_for(400ms);
    try {
      Pending pending = comm.barrier({.sequence = 1});
      pending.wait(Deadline::after(100ms));
    } catch (const DeadlineExceeded&) {
      expect_throws<DeadlineExceeded>([&] { comm.barrier({.sequence = 2}).wait(); },
                                      "barrier user/1");
      return;
    }
    expect(false, "expected DeadlineExceeded");
  });
  expect_all_ok(outcomes);
}

TEST_P(CommunicatorConformance, ARankThatHasReturnedIsNamedAtOnce) {
  for (const bool returns_first : {true, false}) {
    const auto start = Clock::now();
    const auto outcomes = make_world(3)->run([&](Communicator& comm) {
      comm.barrier({.name = "before"}).wait();
      if ((comm.rank() == 2) != returns_first) std::this_thread::sleep_for(50ms);
      if (comm.rank() != 2) Call{}(comm);
    });
    EXPECT_LT(Clock::now() - start, 10s);
    EXPECT_TRUE(outcomes[2].ok()) << outcomes[2].text();
    for (const int rank : {0, 1}) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_TRUE(outcome.threw<PeerError>()) << outcome.text();
      EXPECT_THAT(outcome.text(), AllOf(HasSubstr("rank 2 will never come"), HasSubstr("f32[10]"),
                                        HasSubstr("\"before\"")));
    }
  }
}

TEST_P(CommunicatorConformance, AbortReachesPendingAndLaterCallsOfItsEpochOnly) {
  const auto world = make_world(3);
  const auto outcomes = world->run([](Communicator& comm) {
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(50ms);
      comm.abort(std::make_exception_ptr(ResourceExhausted("[test] out of memory on rank 2")));
    } else {
      expect_throws<ResourceExhausted>([&] { Call{}(comm); }, "out of memory on rank 2");
    }
    comm.abort(std::make_exception_ptr(InvalidArgument("[test] too late")));
    const auto late = [&] { comm.barrier({.sequence = 9, .name = "late"}).wait(); };
    expect_throws<ResourceExhausted>(late, "on rank 2");
    expect_throws<ResourceExhausted>(late, "\"late\"");
  });
  expect_all_ok(outcomes);
  expect_all_ok(world->run([](Communicator& comm) { Call{}(comm); }));
}

TEST_P(CommunicatorConformance, AnyExceptionMayBeTheReason) {
  const auto outcomes = make_world(2)->run([](Communicator& comm) {
    if (comm.rank() == 1) throw 17;
    comm.barrier({}).wait();
  });
  EXPECT_TRUE(outcomes[1].threw<int>());
  // What is no lockstep::Error cannot go from process to process as it is.
  const bool told = !GetParam().one_process && outcomes[0].threw<PeerError>();
  EXPECT_TRUE(outcomes[0].threw<int>() || told) << outcomes[0].text();
}

TEST_P(CommunicatorConformance, AHandleDroppedEarlyFreesItsBuffersAndStopsTheOthers) {
  const auto outcomes = make_world(2)->run([](Communicator& comm) {
    if (comm.rank() == 0) {
      std::vector<float> mine(100'000);
      const Elements range{mine.data(), 100'000, DType::f32};
      const Pending dropped = comm.all_reduce({}, ReduceOp::sum, range, range);
      return;
    }
    std::this_thread::sleep_for(50ms);
    Call{.count = 100'000, .name = ""}(comm);
  });
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0].text();
  EXPECT_TRUE(outcomes[1].threw<PeerError>()) << outcomes[1].text();
  EXPECT_THAT(outcomes[1].text(),
              AllOf(HasSubstr("rank 0 will never come"), HasSubstr("dropped its handle")));
}

TEST_P(CommunicatorConformance, AHandleDroppedLateCompletesTheCollective) {
  expect_all_ok(make_world(2)->run([](Communicator& comm) {
    std::vector<float> x(100'000, 1.0F);
    const Elements range{x.data(), 100'000, DType::f32};
    Pending pending = comm.all_reduce({}, ReduceOp::sum, range, range);
    comm.barrier({.sequence = 1}).wait();
    if (comm.rank() == 1) {
      pending.wait();
    } else {
      pending = Pending();
    }
    expect(x.front() == 2.0F && x.back() == 2.0F, "not completed");
  }));
}

TEST_P(CommunicatorConformance, ArgumentsThatDoNotFitAreTheCallersMistake) {
  expect_all_ok(make_world(2)->run([](Communicator& comm) {
    float x[4] = {}, y[4] = {};
    const auto f32 = [](float* data, std::int64_t count) {
      return Elements{data, count, DType::f32};
    };
    const auto refused = [&](const std::string& part, const std::function<void()>& call) {
      expect_throws<InvalidArgument>(call, part);
    };
    refused("got 4 and 3",
            [&] { comm.all_reduce({}, ReduceOp::sum, f32(x, 4), f32(y, 3)).wait(); });
    refused("got f32 and i32", [&] {
      comm.all_reduce({}, ReduceOp::sum, f32(x, 4), {y, 4, DType::i32}).wait();
    });
    refused("got bool", [&] {
      comm.all_reduce({}, ReduceOp::sum, {x, 4, DType::boolean}, {y, 4, DType::boolean}).wait();
    });
    refused("floating dtype for mean, got i32", [&] {
      comm.all_reduce({}, ReduceOp::mean, {x, 4, DType::i32}, {y, 4, DType::i32}).wait();
    });
    refused("null pointer",
            [&] { comm.all_reduce({}, ReduceOp::sum, f32(nullptr, 1), f32(y, 1)).wait(); });
    refused("got -1", [&] { comm.broadcast({}, 0, f32(x, -1)).wait(); });
    refused("overlap",
            [&] { comm.all_reduce({}, ReduceOp::sum, f32(x, 3), f32(x + 1, 3)).wait(); });
    refused("root from 0 to 1, got 2", [&] { comm.broadcast({}, 2, f32(x, 1)).wait(); });
    refused("2 parts",
            [&] { comm.reduce_scatter({}, ReduceOp::sum, f32(x, 3), f32(y, 2)).wait(); });
    refused("room for 4", [&] { comm.all_gather({}, f32(x, 2), f32(y, 3)).wait(); });
    const std::int64_t counts[] = {3, 3, 3};
    refused("got 3 counts", [&] { comm.all_gather({}, f32(x, 3), f32(y, 4), counts).wait(); });
    refused("as counts[",
            [&] { comm.all_gather({}, f32(x, 2), f32(y, 4), std::span(counts).first(2)).wait(); });
    Call{}(comm);  // the group is unharmed
  }));
}

}  // namespace lockstep::testing
