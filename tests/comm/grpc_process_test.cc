// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: one killed, one stalled, ones that disagree, and large tensors.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/comm/grpc.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <stop_token>
#include <thread>
#include <vector>

#include "support/child_process.h"
#include "support/ports.h"
#include "support/process.h"
#include "support/sanitizers.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

GrpcOptions options_from_environment() {
  GrpcOptions options{.rank = std::atoi(variable("TEST_RANK").c_str()),
                      .addresses = {},
                      .startup_timeout = 30s,
                      .collective_timeout = kSanitized ? 60s : 10s,
                      .heartbeat_timeout = 2s};
  std::istringstream list(variable("TEST_ADDRESSES"));
  for (std::string address; list >> address;) options.addresses.push_back(address);
  return options;
}

void reduce(Communicator& comm, const char* name, std::int64_t sequence,
            std::vector<float>& values) {
  const Elements range = elements(std::span(values));
  comm.all_reduce({.sequence = sequence, .name = name}, ReduceOp::sum, range, range).wait();
}

// Reduces until something happens.
void train(Communicator& comm, std::size_t count) {
  std::vector<float> values(count);
  for (std::int64_t step = 0;; ++step) {
    if (step == 10) std::puts("step 10"), std::fflush(stdout);
    reduce(comm, "gradient", step, values);
  }
}

void reduce_large(Communicator& comm) {
  for (const std::size_t mebibytes : {5, 64, 300}) {
    std::vector<float> values(mebibytes << 18);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17);
    const std::int64_t before = resident_bytes();
    std::atomic<std::int64_t> peak{before};
    {
      const std::jthread watch([&](const std::stop_token& stop) {
        for (; !stop.stop_requested(); std::this_thread::sleep_for(1ms))
          peak = std::max(peak.load(), resident_bytes());
      });
      reduce(comm, "large", static_cast<std::int64_t>(mebibytes), values);
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != 2 * static_cast<float>(i % 17))
        throw std::runtime_error("wrong value at " + std::to_string(i));
    std::printf("%zu MiB: %lld MiB more\n", mebibytes,
                static_cast<long long>((peak - before) >> 20));
    if (mebibytes == 300 && !kSanitized && peak - before > (3LL * 300 << 20))
      throw std::runtime_error("too much memory");
  }
}

void play(const std::string& scenario, Communicator& comm) {
  const bool first = comm.rank() == 0;
  std::vector<float> ten(10), twelve(12);
  if (scenario == "small steps") train(comm, 100);
  if (scenario == "large steps") train(comm, 16 << 20);
  if (scenario == "large tensors") reduce_large(comm);
  if (scenario == "other counts") reduce(comm, "a", 0, first ? ten : twelve);
  if (scenario == "other order") {
    reduce(comm, first ? "a" : "b", 0, ten);
    reduce(comm, first ? "b" : "a", 1, ten);
  }
  if (scenario == "throws") {
    std::vector<float> one(1);
    reduce(comm, "before", 0, one);
    if (comm.rank() == 1) throw ResourceExhausted("[test] no memory left on worker 1");
    reduce(comm, "after", 1, one);
  }
}

// Workers of one scenario, as processes.
struct Workers {
  Workers(const std::string& scenario, int size) : addresses(free_addresses(size)) {
    std::string list;
    for (const std::string& address : addresses) list += address + ' ';
    for (int rank = 0; rank < size; ++rank)
      all.push_back(std::make_unique<ChildProcess>(
          "GrpcProcesses.DISABLED_Worker",
          std::map<std::string, std::string>{{"TEST_RANK", std::to_string(rank)},
                                             {"TEST_ADDRESSES", list},
                                             {"TEST_SCENARIO", scenario}}));
  }
  ChildProcess& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }
  // Expects that the worker has ended with an error by now plus `limit`, and returns its output.
  std::string error_of(int rank, std::chrono::milliseconds limit) {
    EXPECT_EQ(at(rank).wait(limit), 3) << "rank " << rank << ": " << at(rank).output();
    return at(rank).output();
  }

  std::vector<std::string> addresses;
  std::vector<std::unique_ptr<ChildProcess>> all;
};

}  // namespace

// What a worker process does; see Workers.
TEST(GrpcProcesses, DISABLED_Worker) {
  int code = 0;
  try {
    GrpcGroup group(options_from_environment());
    try {
      play(variable("TEST_SCENARIO"), group.communicator());
      std::puts("done");
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", dynamic_cast<const PeerError*>(&error) ? "PeerError" : "other error",
                  error.what());
      group.communicator().abort(std::current_exception());
      code = 3;
    }
  } catch (const std::exception& error) {
    std::printf("start-up: %s\n", error.what());
    code = 4;
  }
  std::fflush(stdout);
  std::_Exit(code);
}

TEST(GrpcProcesses, S25_AKilledWorkerIsNamedByTheOthers) {
  for (const char* const steps : {"small steps", "large steps"}) {
    Workers workers(steps, 3);
    ASSERT_TRUE(workers.at(0).says("step 10", 60s)) << workers.at(0).output();
    workers.at(2).signal(SIGKILL);
    for (const int rank : {0, 1})
      EXPECT_THAT(workers.error_of(rank, 15s),
                  AllOf(HasSubstr("PeerError"), HasSubstr("worker 2"),
                        HasSubstr(workers.addresses[2]), HasSubstr("\"gradient\"")));
  }
}

TEST(GrpcProcesses, AStalledWorkerIsNamedAfterTheHeartbeatTimeout) {
  for (const char* const steps : {"small steps", "large steps"}) {
    Workers workers(steps, 3);
    ASSERT_TRUE(workers.at(0).says("step 10", 60s)) << workers.at(0).output();
    workers.at(1).signal(SIGSTOP);
    for (const int rank : {0, 2})
      EXPECT_THAT(workers.error_of(rank, 20s),
                  AllOf(HasSubstr("PeerError"), HasSubstr("worker 1"), HasSubstr("no sign of life"),
                        HasSubstr(workers.addresses[1])));
  }
}

TEST(GrpcProcesses, S15_CountsThatDifferAreShownOnBothSides) {
  Workers workers("other counts", 2);
  for (const int rank : {0, 1})
    EXPECT_THAT(workers.error_of(rank, 20s), AllOf(HasSubstr("PeerError"), HasSubstr("f32[10]"),
                                                   HasSubstr("f32[12]"), HasSubstr("\"a\"")));
}

TEST(GrpcProcesses, S15_SwappedCallsAreAnErrorOnBothSides) {
  Workers workers("other order", 2);
  for (const int rank : {0, 1})
    EXPECT_THAT(workers.error_of(rank, 20s),
                AllOf(HasSubstr("PeerError"), HasSubstr("\"a\""), HasSubstr("\"b\"")));
}

TEST(GrpcProcesses, AWorkerThatFailsSaysWhy) {
  Workers workers("throws", 3);
  for (const int rank : {0, 1, 2})
    EXPECT_THAT(workers.error_of(rank, 20s), HasSubstr("no memory left on worker 1"));
  EXPECT_THAT(workers.at(0).output(), HasSubstr(workers.addresses[1]));
}

TEST(GrpcProcesses, S28_LargeTensorsNeedNoSettingAndLittleMemory) {
  Workers workers("large tensors", 2);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(workers.at(rank).wait(120s), 0) << workers.at(rank).output();
    std::fputs(workers.at(rank).output().c_str(), stderr);
  }
}

}  // namespace lockstep::testing
