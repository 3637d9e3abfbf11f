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
#include <functional>
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

TEST(Misuse, CollectivesInAMergeCallAreRefused) {
  for (const auto threads : {ReplicaThreads::concurrent, ReplicaThreads::one_at_a_time}) {
    const auto strategy = mirrored(2, {}, threads);
    const std::vector<Variable> variables = [&] {
      const auto scope = strategy.scope();
      return std::vector{Variable(zeros({2}))};
    }();
    strategy.run([&] {
      ReplicaContext& context = *get_replica_context();
      context.merge_call([&] {
        const auto refused = [](const char* call) {
          return throws<FailedPrecondition>(call, "merge_call");
        };
        EXPECT_THAT([&] { context.all_reduce(ReduceOp::sum, Tensor(1.0f)); },
                    refused("[ReplicaContext::all_reduce]"));
        EXPECT_THAT([&] { context.all_gather(zeros({1})); },
                    refused("[ReplicaContext::all_gather]"));
        EXPECT_THAT([&] { context.global_count(1); }, refused("[ReplicaContext::all_reduce]"));
        EXPECT_THAT([&] { context.merge_call([] {}); }, refused("[ReplicaContext::merge_call]"));
        EXPECT_THAT([&] { context.begin_gradient_reduction(variables, {}); },
                    refused("[begin_gradient_reduction]"));
      });
    });
  }
}

TEST(Misuse, AStepThatReadsADatasetThatRunsTheStrategyEnds) {
  const auto strategy = mirrored(2, {.timeout = 300ms});
  const auto data = data::range(4)
                        .map([&](const Tensor& x) {
                          strategy.run([] {});
                          return x;
                        })
                        .prefetch(1);
  EXPECT_THAT(
      [&] {
        strategy.run([&] {
          if (replica_index() == 0)
            for (const Tensor& x : data) static_cast<void>(x);
        });
      },
      throws<DeadlineExceeded>("[Strategy::run]", "step function wait"));
  strategy.run([] {});
}

TEST(Misuse, ErrorsOfCollectivesNameTheCallersLine) {
  const auto strategy = mirrored(2, {.timeout = 100ms});
  const auto location = [&](const std::function<void()>& step) {
    try {
      strategy.run([&] { step(); });
    } catch (const Error& error) {
      EXPECT_THAT(error.location().file, ::testing::EndsWith("misuse_test.cc")) << error.what();
      return error.location().line;
    }
    ADD_FAILURE() << "nothing thrown";
    return 0;
  };
  const auto reduce = [](const Tensor& x) { get_replica_context()->all_reduce(ReduceOp::sum, x); };
  const int line = __LINE__ - 1;
  EXPECT_EQ(location([&] { reduce(zeros({replica_index() + 1})); }), line) << "they disagree";
  EXPECT_EQ(location([&] {
              if (replica_index() == 0) reduce(zeros({1}));
            }),
            line)
      << "one has left";
  EXPECT_EQ(location([&] {
              if (replica_index() == 0) std::this_thread::sleep_for(300ms);
              if (replica_index() == 1) reduce(zeros({1}));
            }),
            line)
      << "one is late";
}

TEST(Misuse, AMapThatLosesTheRowsIsFoundOut) {
  const auto strategy = mirrored(2);
  const auto data =
      data::range(8).batch(4).map([](const Tensor&) { return Tensor(1.0f); }).prefetch(1);
  const int line = __LINE__ + 1;
  const auto batches = strategy.distribute_dataset(data);
  try {
    batches.iterator().next();
    ADD_FAILURE() << "nothing thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(
        error.what(),
        ::testing::AllOf(::testing::HasSubstr("[Strategy::distribute_dataset]"),
                         ::testing::HasSubstr("scalar"), ::testing::HasSubstr("map after")));
    EXPECT_EQ(error.location().line, line);
  }
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

TEST(Reduce, MeanOfHalvesIsTakenInSinglePrecisionEverywhere) {
  const auto strategy = mirrored(3);
  const auto scope = strategy.scope();
  Variable v(full({}, 0, DType::f16), {.synchronization = VariableSynchronization::on_read,
                                       .aggregation = VariableAggregation::mean});
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto means = strategy.run([&] {
      const Tensor own = full({2}, replica_index() == 1 ? 30000 : 60000, dtype);
      if (dtype == DType::f16) v.assign(full({}, 60000, dtype));
      return get_replica_context()->all_reduce(ReduceOp::mean, own);
    });
    for (const Tensor& mean : means) {
      EXPECT_EQ(mean.dtype(), dtype);
      const float exact = dtype == DType::f16 ? 49984 : 49920;  // 50000 is a tie, to even
      EXPECT_THAT(cast(mean, DType::f32).to_vector<float>(), ::testing::Each(exact))
          << name_of(dtype);
    }
  }
  EXPECT_EQ(v.read().item<float>(), 60000);
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, v).item<float>(), 60000);
}

TEST(Reduce, TheMeanOfPlainIntegersIsRefused) {
  for (const int count : {1, 2}) {
    const auto strategy = mirrored(count);
    const auto numbers = strategy.run([] { return replica_index() + 1; });
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, numbers), count == 1 ? 1 : 3);
    EXPECT_THAT([&] { strategy.reduce(ReduceOp::mean, numbers); },
                throws<InvalidArgument>("[Strategy::reduce]", "plain integer", "double"));
    const auto mixed = strategy.run([] { return std::pair(Tensor(2), replica_index()); });
    EXPECT_THAT([&] { strategy.reduce(ReduceOp::mean, mixed); }, throws<InvalidArgument>("leaf 1"));
    const auto doubles = strategy.run([] { return replica_index() + 1.0; });
    EXPECT_EQ(strategy.reduce(ReduceOp::mean, doubles), count == 1 ? 1 : 1.5);
  }
}

TEST(Reduce, ErrorsNameTheVerbTheReplicaAndTheLine) {
  const auto strategy = mirrored(2);
  const auto refused = [&](const auto& values, std::optional<int> axis, const auto&... words) {
    EXPECT_THAT(
        [&] {
          return axis ? strategy.reduce(ReduceOp::sum, values, *axis)
                      : strategy.reduce(ReduceOp::sum, values);
        },
        throws<InvalidArgument>("[Strategy::reduce]", "misuse_test.cc:", words...));
  };
  refused(PerReplica<Tensor>({Tensor(1.0f), Tensor()}), {}, "replica 1", "undefined");
  refused(PerReplica<Tensor>({Tensor(true), Tensor(false)}), {}, "bool", "cast");
  refused(PerReplica<Tensor>({Tensor(1.0f), Tensor(1)}), {}, "f32[]", "i32[]", "one dtype");
  refused(PerReplica<Tensor>({zeros({2, 3}), zeros({1, 4})}), 0, "beside axis 0", "[3]", "[4]");
}

TEST(Gather, ErrorsNameTheVerbTheReplicaAndTheLine) {
  const auto strategy = mirrored(2);
  const auto refused = [&](const PerReplica<Tensor>& values, const auto&... words) {
    EXPECT_THAT([&] { strategy.gather(values); },
                throws<InvalidArgument>("[Strategy::gather]", "misuse_test.cc:", words...));
  };
  refused(PerReplica<Tensor>({zeros({1}), Tensor()}), "undefined", "replica 1");
  refused(PerReplica<Tensor>({zeros({1}), Tensor(1.0f)}), "rank >= 1", "replica 1");
  refused(PerReplica<Tensor>({zeros({1, 2}), zeros({1, 3})}), "[1, 2]", "[1, 3]", "replica 1");
  refused(PerReplica<Tensor>({zeros({1})}), "2 local replicas", "got 1");
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

TEST(Misuse, RowsOfAnotherNumberOfReplicas) {
  const MirroredStrategy strategy({.devices = {"CPU:0", "CPU:1"}});
  const PerReplica<Tensor> batch({zeros({1}), zeros({1})}, ReplicaKind::per_replica,
                                 BatchRows{.local = {1}, .global = 1});
  EXPECT_THAT([&] { strategy.run([](const Tensor& x) { return x; }, batch); },
              throws<InvalidArgument>("[Strategy::run]", "rows of 2", "1"));
}

}  // namespace
}  // namespace lockstep
