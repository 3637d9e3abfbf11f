// SPDX-License-Identifier: Apache-2.0
// How workers find each other, and what becomes of those that do not.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/base/log.h>
#include <lockstep/telemetry/telemetry.h>

#include <chrono>
#include <thread>

#include "comm/grpc_world.h"
#include "support/ports.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Lines that are logged while it lives.
class LogLines {
 public:
  LogLines() {
    logging::set_sink([this](logging::Level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_ += std::string(line) + '\n';
    });
  }
  ~LogLines() { logging::set_sink({}); }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

GrpcOptions options_of(int rank, const std::vector<std::string>& addresses) {
  return {.rank = rank, .addresses = addresses, .startup_timeout = 20s, .collective_timeout = 20s};
}

// Runs `body` for every rank in a thread of its own.
std::vector<Outcome> run_ranks(int size, const std::function<void(int)>& body) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        outcomes[static_cast<std::size_t>(rank)].error = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

float sum_of_ones(Communicator& comm) {
  float x = 1;
  comm.all_reduce({.name = "ones"}, ReduceOp::sum, {&x, 1, DType::f32}, {&x, 1, DType::f32}).wait();
  return x;
}

}  // namespace

TEST(GrpcGroup, S14_AMissingPeerIsNamedWhileWaitedForAndAtTheEnd) {
  LogLines log;
  const auto addresses = free_addresses(2);
  const auto start = Clock::now();
  try {
    GrpcOptions options = options_of(0, addresses);
    options.startup_timeout = 6s;
    GrpcGroup group(options);
    FAIL() << "expected DeadlineExceeded";
  } catch (const DeadlineExceeded& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("worker 1"), HasSubstr(addresses[1])));
    EXPECT_THAT(error.context().peer, HasSubstr(addresses[1]));
  }
  EXPECT_GE(Clock::now() - start, 6s);
  EXPECT_LT(Clock::now() - start, 11s);
  EXPECT_THAT(log.text(), AllOf(HasSubstr("worker 1"), HasSubstr(addresses[1])));
}

TEST(GrpcGroup, S14_APeerThatComesLateIsWaitedFor) {
  const auto addresses = free_addresses(2);
  expect_all_ok(run_ranks(2, [&](int rank) {
    if (rank == 1) std::this_thread::sleep_for(1500ms);
    GrpcGroup group(options_of(rank, addresses));
    expect(sum_of_ones(group.communicator()) == 2, "wrong sum");
  }));
}

TEST(GrpcGroup, WhatGoesOverTheWireIsCounted) {
  const telemetry::Counter& messages = telemetry::counter("lockstep_wire_messages_total");
  const telemetry::Counter& bytes = telemetry::counter("lockstep_wire_bytes_total");
  const auto addresses = free_addresses(2);
  expect_all_ok(run_ranks(2, [&](int rank) {
    GrpcGroup group(options_of(rank, addresses));
    const std::int64_t messages_before = messages.value(), bytes_before = bytes.value();
    std::vector<float> values(1 << 20);
    const Elements range = elements(std::span(values));
    group.communicator().all_reduce({}, ReduceOp::sum, range, range).wait();
    // Each rank has sent a half twice; both ranks are counted here, one perhaps in part.
    expect(bytes.value() - bytes_before >= (4 << 20), "got ", bytes.value() - bytes_before);
    expect(messages.value() - messages_before >= 3, "got ", messages.value() - messages_before);
  }));
}

TEST(GrpcGroup, S23_ATakenPortIsNamed) {
  const Listener listener;
  const auto start = Clock::now();
  try {
    GrpcGroup group(options_of(0, {listener.address()}));
    FAIL() << "expected Unavailable";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(listener.address()), HasSubstr("in use")));
  }
  EXPECT_LT(Clock::now() - start, 5s);
}

TEST(GrpcGroup, S23_OnePortServesTwentyStarts) {
  const auto addresses = free_addresses(1);
  for (int i = 0; i < 20; ++i) {
    GrpcGroup group(options_of(0, addresses));
    EXPECT_EQ(sum_of_ones(group.communicator()), 1);
  }
}

TEST(GrpcGroup, TheSameWorkersStartAgainAndAgain) {
  const auto addresses = free_addresses(3);
  for (int i = 0; i < 10; ++i)
    expect_all_ok(run_ranks(3, [&](int rank) {
      GrpcGroup group(options_of(rank, addresses));
      expect(sum_of_ones(group.communicator()) == 3, "wrong sum");
    }));
}

TEST(GrpcGroup, WorkersOfDifferentClustersSeeBothLists) {
  const auto addresses = free_addresses(3);
  const auto outcomes = run_ranks(2, [&](int rank) {
    std::vector<std::string> mine{addresses[0], addresses[1]};
    if (rank == 1) mine.push_back(addresses[2]);
    GrpcGroup group(options_of(rank, mine));
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<PeerError>()) << outcome.text();
    EXPECT_THAT(outcome.text(), HasSubstr('[' + addresses[0] + ", " + addresses[1] + ']'));
    EXPECT_THAT(outcome.text(), HasSubstr(addresses[1] + ", " + addresses[2]));
  }
}

TEST(GrpcGroup, OptionsThatMustAgreeAreCompared) {
  const auto addresses = free_addresses(2);
  const auto outcomes = run_ranks(2, [&](int rank) {
    GrpcOptions options = options_of(rank, addresses);
    options.agreement = rank == 0 ? "bytes_per_pack 0" : "bytes_per_pack 7";
    GrpcGroup group(options);
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<PeerError>()) << outcome.text();
    EXPECT_THAT(outcome.text(),
                AllOf(HasSubstr("bytes_per_pack 0"), HasSubstr("bytes_per_pack 7")));
  }
}

TEST(GrpcGroup, OptionsThatDoNotFitAreTheCallersMistake) {
  const auto refused = [](const GrpcOptions& options, const std::string& part) {
    try {
      GrpcGroup group(options);
      ADD_FAILURE() << "expected InvalidArgument with " << part;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  refused({}, "got none");
  refused({.rank = 2, .addresses = {"127.0.0.1:1", "127.0.0.1:2"}}, "from 0 to 1, got 2");
  refused({.addresses = {"127.0.0.1"}}, "\"127.0.0.1\"");
  refused({.addresses = {"127.0.0.1:1", "127.0.0.1:1"}}, "two workers");
  refused({.addresses = {"127.0.0.1:1"}, .heartbeat_timeout = 0s}, "heartbeat_timeout");
  refused({.addresses = free_addresses(1),
           .tls = TlsFiles{.ca = "/nowhere/ca.pem", .certificate = "", .key = ""}},
          "/nowhere/ca.pem");
}

TEST(GrpcGroup, ARankThatHasLeftIsNoErrorUntilItIsNeeded) {
  const auto addresses = free_addresses(3);
  const auto outcomes = run_ranks(3, [&](int rank) {
    GrpcGroup group(options_of(rank, addresses));
    sum_of_ones(group.communicator());
    if (rank == 2) return;
    std::this_thread::sleep_for(300ms);
    const auto start = Clock::now();
    try {
      sum_of_ones(group.communicator());
    } catch (const PeerError&) {
      expect(Clock::now() - start < 5s, "told late");
      throw;
    }
  });
  EXPECT_TRUE(outcomes[2].ok()) << outcomes[2].text();
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_TRUE(outcomes[rank].threw<PeerError>()) << outcomes[rank].text();
    EXPECT_THAT(outcomes[rank].text(),
                AllOf(HasSubstr("rank 2 will never come"), HasSubstr("worker 2"),
                      HasSubstr(addresses[2]), HasSubstr("\"ones\"")));
  }
}

TEST(GrpcGroup, ARankThatIsAStepAheadIsNamedAtOnce) {
  const auto addresses = free_addresses(2);
  const auto outcomes = run_ranks(2, [&](int rank) {
    GrpcGroup group(options_of(rank, addresses));
    const auto start = Clock::now();
    if (rank == 1) group.begin_epoch();
    try {
      sum_of_ones(group.communicator());
    } catch (const PeerError&) {
      expect(Clock::now() - start < 5s, "told late");
      throw;
    }
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<PeerError>()) << outcome.text();
    EXPECT_THAT(outcome.text(), AllOf(HasSubstr("rank 1 will never come"), HasSubstr("\"ones\"")));
  }
}

TEST(GrpcGroup, S24_TheDeadlineHoldsForEveryKindOfCall) {
  const std::function<Pending(Communicator&, Elements)> calls[] = {
      [](Communicator& comm, Elements x) {
        return comm.all_reduce({.name = "late"}, ReduceOp::sum, x, x);
      },
      [](Communicator& comm, Elements) { return comm.barrier({.name = "late"}); },
      [](Communicator& comm, Elements x) { return comm.broadcast({.name = "late"}, 0, x); }};
  for (const auto& call : calls) {
    const auto addresses = free_addresses(2);
    const auto outcomes = run_ranks(2, [&](int rank) {
      GrpcOptions options = options_of(rank, addresses);
      options.collective_timeout = 1s;
      GrpcGroup group(options);
      sum_of_ones(group.communicator());
      std::vector<float> x(100'000);
      if (rank == 1) std::this_thread::sleep_for(3s);
      const auto start = Clock::now();
      try {
        call(group.communicator(), elements(std::span(x))).wait();
      } catch (const DeadlineExceeded& error) {
        expect(Clock::now() - start < 3s, "late");
        expect(error.context().peer.find(addresses[1]) != std::string::npos, error.what());
        throw;
      }
    });
    for (const Outcome& outcome : outcomes) {
      EXPECT_TRUE(outcome.threw<DeadlineExceeded>()) << outcome.text();
      EXPECT_THAT(outcome.text(), AllOf(HasSubstr("\"late\""), HasSubstr("rank 1")));
    }
  }
}

}  // namespace lockstep::testing
