// SPDX-License-Identifier: Apache-2.0
// What users do by mistake ends in an error that says so, soon.
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using testing::throws;

MirroredStrategy mirrored(int replicas, CommunicationOptions communication = {},
                          ReplicaThreads threads = ReplicaThreads::concurrent) {
  std::vector<std::string> devices;
  for (int i = 0; i < replicas; ++i) devices.push_back("CPU:" + std::to_string(i));
  return MirroredStrategy(
      {.devices = devices, .replica_threads = threads, .communication = communication});
}

int replica_index() { return get_replica_context()->replica_index(); }

TEST(Misuse, ABatchOfAnotherStrategyIsRefused) {
  const auto two = mirrored(2), four = mirrored(4);
  const auto data = data::from_tensor_slices(Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f})).batch(4);
  const auto batch = *two.distribute_dataset(data).iterator().next();
  EXPECT_THAT([&] { four.run([](const Tensor&) {}, batch); },
              throws<InvalidArgument>("[Strategy::run]", "4 components", "got 2"));
}

TEST(Misuse, ARunThatAStepWaitsForGivesUp) {
  const auto strategy = mirrored(2, {.timeout = 200ms});
  strategy.run([&] {
    if (replica_index() != 0) return;
    std::thread([&] {
      EXPECT_THAT([&] { strategy.run([] {}); },
                  throws<DeadlineExceeded>("[Strategy::run]", "200 ms"));
    }).join();
  });
  strategy.run([] {});
}

TEST(Misuse, AllGatherComparesTheShapesOfRows) {
  const auto strategy = mirrored(2);
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          const Shape shape = replica_index() == 0 ? Shape{1, 2, 3} : Shape{1, 3, 2};
          return get_replica_context()->all_gather(zeros(shape));
        });
      },
      throws<PeerError>("[2, 3]", "[3, 2]"));
}

TEST(Misuse, AMergeCallAgainstAnAllReduceIsFoundOut) {
  for (const auto threads : {ReplicaThreads::concurrent, ReplicaThreads::one_at_a_time}) {
    const auto strategy = mirrored(2, {}, threads);
    EXPECT_THAT(
        [&] {
          strategy.run([] {
            ReplicaContext& context = *get_replica_context();
            if (replica_index() == 0)
              context.all_reduce(ReduceOp::sum, Tensor(1.0f));
            else
              context.merge_call([] {});
          });
        },
        throws<PeerError>("all_reduce", "merge_call"));
  }
}

TEST(Misuse, ReductionsOfDifferentListsAreFoundOut) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const std::vector<Variable> list{Variable(zeros({2}), {.name = "a"}),
                                   Variable(zeros({2}), {.name = "b"})};
  const std::vector<Variable> turned{list[1], list[0]};
  EXPECT_THAT(
      [&] {
        strategy.run([&] {
          auto reduction = get_replica_context()->begin_gradient_reduction(
              replica_index() == 0 ? list : turned, SourceLocation{});
          for (std::size_t i = 0; i < 2; ++i) reduction->ready(i, zeros({2}));
          reduction->finish();
        });
      },
      throws<PeerError>("'a'", "'b'"));
}

TEST(Misuse, AMergeCallWithoutAFunctionIsRefused) {
  const auto strategy = mirrored(2);
  EXPECT_THAT([&] { strategy.run([] { get_replica_context()->merge_call({}); }); },
              throws<InvalidArgument>("[ReplicaContext::merge_call]", "function"));
}

TEST(Misuse, TheLastHandleMayBeDroppedInAStep) {
  auto strategy = std::make_shared<std::optional<Strategy>>(mirrored(2));
  (*strategy)->run([&] {
    get_replica_context()->global_count(1);
    if (replica_index() == 1) strategy->reset();
  });
  EXPECT_FALSE(strategy->has_value());
}

TEST(Misuse, TimeoutsAreSaturatedAndPositive) {
  const auto strategy = mirrored(2, {.timeout = std::chrono::milliseconds::max()});
  strategy.run([] {
    if (replica_index() == 0) std::this_thread::sleep_for(5ms);
    get_replica_context()->global_count(1);
  });
  EXPECT_THAT([&] { mirrored(2, {.timeout = 0ms}); }, throws<InvalidArgument>("timeout", "0 ms"));
}

TEST(Misuse, AForkedChildIsToldToMakeItsOwn) {
  const auto strategy = mirrored(2);
  strategy.run([] {});
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      strategy.run([] {});
    } catch (const FailedPrecondition&) {
      code = 0;
    }
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  strategy.run([] {});
}

TEST(Reduce, MeanOfIntegersDoesNotWrap) {
  const auto strategy = mirrored(2);
  const auto big = strategy.run(
      [] { return Tensor(std::int32_t{2147483647 - get_replica_context()->replica_index()}); });
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, big).item<double>(), 2147483646.5);
  const auto small = strategy.run([] {
    return Tensor({1}, {static_cast<std::uint8_t>(200 + get_replica_context()->replica_index())});
  });
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, small, 0).item<double>(), 200.5);
}

TEST(Reduce, MeanOfHalvesIsTakenInSinglePrecision) {
  const auto strategy = mirrored(2);
  const auto tens = strategy.run([] { return full({5000}, 10, DType::f16); });
  const Tensor mean = strategy.reduce(ReduceOp::mean, tens, 0);
  EXPECT_EQ(mean.dtype(), DType::f16);
  EXPECT_EQ(mean.item<float>(), 10);
}

TEST(Reduce, EachLeafHasItsOwnKind) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable v(Tensor(3.0f));
  const auto both = strategy.run([&] { return std::pair(v.read(), Tensor(1.0f)); });
  EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, both); },
              throws<InvalidArgument>("leaf 0", "mirrored"));
  const auto [mirrored_leaf, own_leaf] = strategy.reduce(ReduceOp::mean, both);
  EXPECT_EQ(mirrored_leaf.item<float>(), 3);
  EXPECT_EQ(own_leaf.item<float>(), 1);
}

TEST(Reduce, AVariableOfAnotherStrategyIsRefused) {
  const auto mine = mirrored(2), other = mirrored(2);
  std::optional<Variable> v;
  {
    const auto scope = other.scope();
    v.emplace(Tensor(1.0f), VariableOptions{.synchronization = VariableSynchronization::on_read,
                                            .aggregation = VariableAggregation::sum});
  }
  EXPECT_THAT([&] { mine.reduce(ReduceOp::sum, *v); },
              throws<FailedPrecondition>("another strategy"));
}

}  // namespace
}  // namespace lockstep
