// SPDX-License-Identifier: Apache-2.0
// Replicas of several processes: local groups on top of one that talks by gRPC.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/comm/grpc.h>
#include <lockstep/comm/hierarchical.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "comm/communicator_conformance.h"
#include "comm/tree_reference.h"
#include "support/ports.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Runs `body` on `locals` ranks of each of `workers` workers, all threads of this process.
std::vector<Outcome> run_workers(int workers, int locals,
                                 const std::function<void(Communicator&)>& body) {
  const std::vector<std::string> addresses = free_addresses(workers);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(workers * locals));
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      std::optional<GrpcGroup> between;
      try {
        between.emplace(
            GrpcOptions{.rank = worker, .addresses = addresses, .collective_timeout = 20s});
      } catch (...) {  // the other was there first, and has failed already
        for (int local = 0; local < locals; ++local)
          outcomes[static_cast<std::size_t>(worker * locals + local)].error =
              std::current_exception();
        return;
      }
      HierarchicalGroup group(locals, &between->communicator(), {.collective_timeout = 20s});
      std::vector<std::thread> replicas;
      for (int local = 0; local < locals; ++local)
        replicas.emplace_back([&, local] {
          Communicator& comm = group.local_rank(local);
          try {
            body(comm);
          } catch (...) {
            outcomes[static_cast<std::size_t>(comm.rank())].error = std::current_exception();
            comm.abort(std::current_exception());
          }
          group.returned(local);
        });
      for (std::thread& replica : replicas) replica.join();
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace

TEST(ReplicasOfWorkers, SumsHaveTheBitsOfOneGroup) {
  for (const std::int64_t count : {1, 5'000, 300'001}) {
    const std::vector<float> expected = reference_sum<float>(4, count);
    expect_all_ok(run_workers(2, 2, [&](Communicator& comm) {
      expect(comm.size() == 4, "size ", comm.size());
      for (std::int64_t step = 0; step < 5; ++step) {
        std::vector<float> values = random_values<float>(comm.rank(), count);
        const Elements range = elements(std::span(values));
        comm.all_reduce({.sequence = step}, ReduceOp::sum, range, range).wait();
        expect(same_bits<float>(values, expected), "rank ", comm.rank(), ": other bits");
      }
    }));
  }
}

TEST(ReplicasOfWorkers, TheFailureOfOneReachesAll) {
  const auto outcomes = run_workers(2, 2, [](Communicator& comm) {
    if (comm.rank() == 3) throw ResourceExhausted("[test] no memory left on replica 3");
    float x = 0;
    comm.all_reduce({}, ReduceOp::sum, {&x, 1, DType::f32}, {&x, 1, DType::f32}).wait();
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<ResourceExhausted>()) << outcome.text();
    EXPECT_THAT(outcome.text(), HasSubstr("on replica 3"));
  }
}

TEST(ReplicasOfWorkers, S15_WorkersThatDisagreeSeeBothCalls) {
  const auto outcomes = run_workers(2, 2, [](Communicator& comm) {
    std::vector<float> values(comm.rank() < 2 ? 10 : 12);
    const Elements range = elements(std::span(values));
    comm.all_reduce({.name = "a"}, ReduceOp::sum, range, range).wait();
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<PeerError>()) << outcome.text();
    EXPECT_THAT(outcome.text(),
                AllOf(HasSubstr("f32[10]"), HasSubstr("f32[12]"), HasSubstr("\"a\"")));
  }
}

TEST(ReplicasOfWorkers, WorkersThatDisagreeAboutAMeanFindOut) {
  const auto outcomes = run_workers(2, 2, [](Communicator& comm) {
    float x = 1;
    comm.all_reduce({.name = "a"}, comm.rank() < 2 ? ReduceOp::sum : ReduceOp::mean,
                    {&x, 1, DType::f32}, {&x, 1, DType::f32})
        .wait();
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.threw<PeerError>()) << outcome.text();
    EXPECT_THAT(outcome.text(), AllOf(HasSubstr("\"a\""), HasSubstr("\"a, mean\"")));
  }
}

}  // namespace lockstep::testing
