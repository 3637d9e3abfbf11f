// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_id;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::Each;
using ::testing::ElementsAre;

// What a step function may call on its replica's context.
class Collectives : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count) const { return replicas(count, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, Collectives, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Collectives, ARG01_SumAndMeanOfAStructure) {
  const auto strategy = make(2);
  strategy.run([] {
    const bool first = replica_index() == 0;
    const std::pair value(Tensor(first ? 1.0f : 3.0f), first ? vec({39, 2}) : vec({3, 41}));
    const auto total = get_replica_context()->all_reduce(ReduceOp::sum, value);
    EXPECT_EQ(total.first.item<float>(), 4);
    EXPECT_THAT(total.second, holds({42, 43}));
    const auto average = get_replica_context()->all_reduce(ReduceOp::mean, value);
    EXPECT_EQ(average.first.item<float>(), 2);
    EXPECT_THAT(average.second, holds({21, 21.5}));
  });
}

IndexedSlices rows_of(const Tensor& values, std::initializer_list<std::int64_t> indices,
                      const Shape& shape) {
  return {.values = values, .indices = vec<std::int64_t>(indices), .shape = shape};
}

TEST_P(Collectives, ARG03_SparseValuesStayRows) {
  const auto strategy = make(3);
  strategy.run([] {
    ReplicaContext& context = *get_replica_context();
    const IndexedSlices a = context.all_reduce(ReduceOp::sum, rows_of(vec({1}), {0}, {5}));
    const IndexedSlices b = context.all_reduce(ReduceOp::mean, rows_of(vec({2}), {1}, {5}));
    EXPECT_EQ(context.all_reduce(ReduceOp::sum, 1.0), 3);
    EXPECT_EQ(a.shape, (Shape{5}));
    EXPECT_THAT(a.indices, holds<std::int64_t>({0, 0, 0}));
    EXPECT_THAT(to_dense(a), holds({3, 0, 0, 0, 0}));
    EXPECT_THAT(to_dense(b), holds({0, 2, 0, 0, 0}));
  });
}

TEST_P(Collectives, CDO04_RowsFollowTheReplicasBesideDenseValues) {
  const auto strategy = make(2);
  strategy.run([] {
    const bool first = replica_index() == 0;
    ReplicaContext& context = *get_replica_context();
    const auto dense =
        context.all_reduce(ReduceOp::sum, first ? std::pair(1.0F, 2.0F) : std::pair(3.0F, 4.0F));
    const IndexedSlices a =
        context.all_reduce(ReduceOp::sum, first ? rows_of(vec({1, 2}), {0, 1}, {3})
                                                : rows_of(vec({5, 6}), {1, 2}, {3}));
    const IndexedSlices b =
        context.all_reduce(ReduceOp::sum, first ? rows_of(vec({3, 4}), {1, 2}, {3})
                                                : rows_of(vec({7, 8}), {0, 1}, {3}));
    EXPECT_EQ(dense, std::pair(4.0F, 6.0F));
    EXPECT_THAT(a.values, holds({1, 2, 5, 6}));
    EXPECT_THAT(a.indices, holds<std::int64_t>({0, 1, 1, 2}));
    EXPECT_THAT(b.values, holds({3, 4, 7, 8}));
    EXPECT_THAT(b.indices, holds<std::int64_t>({1, 2, 0, 1}));
  });
}

TEST_P(Collectives, SparseValuesHaveGradientsAndMayBeWithoutRows) {
  const auto strategy = make(2);
  strategy.run([] {
    const bool first = replica_index() == 0;
    const Tensor values = first ? zeros({0, 2}) : Tensor(Shape{1, 2}, {3.0F, 4.0F});
    const Tensor indices = first ? zeros({0}, DType::i32) : vec<std::int32_t>({1});
    GradientTape tape;
    tape.watch(values);
    const IndexedSlices sum = get_replica_context()->all_reduce(
        ReduceOp::mean, {.values = values, .indices = indices, .shape = {2, 2}});
    EXPECT_THAT(to_dense(sum), holds({0, 0, 1.5, 2}));
    const Tensor gradient = tape.gradient(to_dense(sum), {values})[0];
    EXPECT_EQ(gradient.shape(), values.shape());
    // Half, from each of two replicas.
    EXPECT_THAT(gradient, holds(first ? std::vector<float>{} : std::vector<float>{1, 1}));
  });
}

TEST_P(Collectives, SparseValuesThatDoNotFitAreRefused) {
  const auto strategy = make(2);
  const auto reduced = [&](const IndexedSlices& first, const IndexedSlices& second) {
    return [&strategy, first, second] {
      strategy.run([&] {
        get_replica_context()->all_reduce(ReduceOp::mean, replica_index() == 0 ? first : second);
      });
    };
  };
  const IndexedSlices good = rows_of(vec({1}), {0}, {5});
  EXPECT_THAT(reduced(good, rows_of(vec({1}), {0}, {6})),
              throws<InvalidArgument>("[ReplicaContext::all_reduce]", "one shape"));
  const IndexedSlices bad = rows_of(vec({1, 2}), {0}, {5}),
                      whole = rows_of(vec<int>({1}), {0}, {5});
  EXPECT_THAT(reduced(bad, bad), throws<InvalidArgument>("[ReplicaContext::all_reduce]", "a row"));
  EXPECT_THAT(reduced(whole, whole), throws<InvalidArgument>("mean", "i32"));
  EXPECT_THAT(reduced({}, {}),
              throws<InvalidArgument>("[ReplicaContext::all_reduce]", "undefined"));
}

TEST_P(Collectives, ARG04_GatherJoinsAlongAnyAxisInReplicas) {
  const auto strategy = make(2);
  strategy.run([] {
    const Tensor own = full({1, replica_index() + 1}, 1.0F);
    for (const int axis : {1, -1}) {
      const Tensor all = get_replica_context()->all_gather(own, axis);
      EXPECT_EQ(all.shape(), (Shape{1, 3}));
      EXPECT_THAT(all, holds({1, 1, 1}));
    }
    GradientTape tape;
    tape.watch(own);
    const Tensor all = get_replica_context()->all_gather(own, 1);
    EXPECT_THAT(tape.gradient(sum(all) * replica_id(), {own})[0],
                holds(std::vector<float>(static_cast<std::size_t>(own.num_elements()), 1)));
  });
  EXPECT_THAT([&] { strategy.run([] { get_replica_context()->all_gather(vec({1}), 1); }); },
              throws<InvalidArgument>("[ReplicaContext::all_gather]", "axis 1"));
}

TEST_P(Collectives, ARG04_GatherJoinsRowsOfUnequalCount) {
  const auto strategy = make(2);
  const auto rows = strategy.run([] { return ones({replica_index() + 1, 1}); });
  EXPECT_EQ(strategy.gather(rows).shape(), Shape({3, 1}));
  const auto gathered = strategy.run([] {
    const int r = replica_index();
    return get_replica_context()->all_gather(full({r + 1, 2}, r));
  });
  for (const Tensor& all : gathered) {
    EXPECT_EQ(all.shape(), Shape({3, 2}));
    EXPECT_THAT(all, holds({0, 0, 1, 1, 1, 1}));
  }
}

TEST_P(Collectives, ARG04_GatherJoinsAlongAnyAxis) {
  const auto strategy = make(2);
  const auto columns = strategy.run([] { return ones({1, replica_index() + 1}); });
  const Tensor joined = strategy.gather(columns, 1);
  EXPECT_EQ(joined.shape(), Shape({1, 3}));
  EXPECT_THAT(joined, holds({1, 1, 1}));
  const auto blocks = strategy.run([] { return full({2, replica_index() + 1}, replica_id() + 1); });
  for (const int axis : {1, -1})
    EXPECT_THAT(strategy.gather(blocks, axis), holds({1, 2, 2, 1, 2, 2}));
  EXPECT_THAT([&] { strategy.gather(blocks, 2); },
              throws<InvalidArgument>("[Strategy::gather]", "axis 2"));
  EXPECT_THAT([&] { strategy.gather(blocks, 0); },
              throws<InvalidArgument>("[Strategy::gather]", "one dtype and shape"));
}

TEST_P(Collectives, AllGatherTakesReplicasWithoutRows) {
  const auto strategy = make(3);
  const auto gathered = strategy.run([] {
    return get_replica_context()->all_gather(full({replica_index() == 1 ? 0 : 2, 1}, replica_id()));
  });
  for (const Tensor& all : gathered) EXPECT_THAT(all, holds({0, 0, 2, 2}));
  const auto nothing = strategy.run([] {
    return get_replica_context()->all_gather(zeros({0, 3}));
  });
  for (const Tensor& all : nothing) EXPECT_EQ(all.shape(), Shape({0, 3}));
}

TEST_P(Collectives, ARG06_TheGradientOfAllGatherIsTheReplicasShare) {
  const auto strategy = make(2);
  strategy.run([] {
    const Tensor x(Shape{1, 1}, {replica_id() + 1});
    GradientTape tape;
    tape.watch(x);
    const Tensor loss = sum(get_replica_context()->all_gather(x)) * (replica_id() + 1);
    const Tensor g = tape.gradient(loss, {x})[0];
    EXPECT_EQ(g.shape(), Shape({1, 1}));
    EXPECT_THAT(g, holds({3}));  // upstream 1 and 2
  });
}

TEST_P(Collectives, TheGradientOfAllGatherOfUnequalRows) {
  const auto strategy = make(2);
  strategy.run([] {
    const Tensor x = full({replica_index() + 1}, 1.0);
    GradientTape tape;
    tape.watch(x);
    const Tensor g =
        tape.gradient(sum(get_replica_context()->all_gather(x) * vec({1, 10, 100})), {x})[0];
    if (replica_index() == 0)
      EXPECT_THAT(g, holds({2}));
    else
      EXPECT_THAT(g, holds({20, 200}));
  });
}

// Of the losses of all replicas, as all gradients in a replica are.
TEST_P(Collectives, GradientsOfGradientsReachAllReplicas) {
  const auto strategy = make(2);
  strategy.run([] {
    const double x_0 = 1, x_1 = 3, own = replica_index() == 0 ? x_0 : x_1;
    const Tensor x({1}, {own});
    const auto gradients = [&](const auto& loss) {
      GradientTape outer;
      outer.watch(x);
      Tensor first;
      {
        GradientTape inner;
        inner.watch(x);
        first = inner.gradient(loss(*get_replica_context()), {x})[0];
      }
      return std::pair(first.item<double>(), outer.gradient(first, {x})[0].item<double>());
    };
    // Of 2 (x_0^2 + x_1^2)^2.
    const double squares = x_0 * x_0 + x_1 * x_1;
    EXPECT_EQ(gradients([&](ReplicaContext& replica) {
                return square(replica.all_reduce(ReduceOp::sum, square(x)));
              }),
              std::pair(8 * squares * own, 8 * (2 * own * (x_0 + x_1) + squares)));
    // Of 2 (x_0^3 + x_1^3).
    EXPECT_EQ(gradients([&](ReplicaContext& replica) {
                const Tensor y = replica.all_gather(x);
                return sum(y * y * y);
              }),
              std::pair(6 * own * own, 12 * own));
  });
}

TEST_P(Collectives, TheGradientOfAllReduceIsAllReduce) {
  const auto strategy = make(2);
  strategy.run([] {
    const Tensor x(2.0f);
    for (const auto op : {ReduceOp::sum, ReduceOp::mean}) {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = get_replica_context()->all_reduce(op, x) * (replica_id() + 1);
      EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), op == ReduceOp::sum ? 3 : 1.5);
    }
  });
}

TEST_P(Collectives, ARG07_AVariablesLocalComponentCanBeReduced) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  Variable v(Tensor(0.0f), {.synchronization = VariableSynchronization::on_read,
                            .aggregation = VariableAggregation::only_first_replica});
  const auto results = strategy.run([&] {
    v.assign(Tensor(3 * replica_id()));
    return get_replica_context()->all_reduce(ReduceOp::sum, v);
  });
  EXPECT_THAT(items(results), Each(9));
}

TEST_P(Collectives, EveryDTypeIsSummed) {
  const auto strategy = make(2);
  strategy.run([] {
    ReplicaContext& context = *get_replica_context();
    const int r = replica_index();
    EXPECT_EQ(context.all_reduce(ReduceOp::sum, Tensor(std::int64_t{1} << 53)).item<std::int64_t>(),
              std::int64_t{1} << 54);
    EXPECT_EQ(context.all_reduce(ReduceOp::sum, Tensor(r + 1)).item<int>(), 3);
    EXPECT_EQ(context.all_reduce(ReduceOp::mean, Tensor(r + 0.5)).item<double>(), 1);
    EXPECT_EQ(context.all_reduce(ReduceOp::sum, Tensor(half(1.5f))).item<double>(), 3);
    EXPECT_EQ(context.all_reduce(ReduceOp::sum, Tensor(bfloat16(1.5f))).item<double>(), 3);
  });
}

TEST_P(Collectives, RefuseOnEveryReplicaWhatHasNoMeaning) {
  const auto strategy = make(2);
  strategy.run([] {
    ReplicaContext& context = *get_replica_context();
    EXPECT_THAT([&] { context.all_reduce(ReduceOp::mean, Tensor(1)); },
                throws<InvalidArgument>("[ReplicaContext::all_reduce]", "i32"));
    EXPECT_THAT([&] { context.all_reduce(ReduceOp::sum, Tensor()); },
                throws<InvalidArgument>("[ReplicaContext::all_reduce]"));
    EXPECT_THAT([&] { context.all_reduce(ReduceOp::sum, Tensor(true)); },
                throws<InvalidArgument>("bool"));
    EXPECT_THAT([&] { context.all_gather(Tensor(1.0f)); },
                throws<InvalidArgument>("[ReplicaContext::all_gather]", "rank"));
    EXPECT_THAT([&] { context.all_gather(Tensor()); },
                throws<InvalidArgument>("[ReplicaContext::all_gather]"));
    EXPECT_THAT([&] { context.vote_skip(Tensor(1.0f)); },
                throws<InvalidArgument>("[ReplicaContext::vote_skip]"));
    EXPECT_THAT([&] { context.vote_skip(Tensor()); },
                throws<InvalidArgument>("[ReplicaContext::vote_skip]"));
  });
}

TEST_P(Collectives, ReplicasThatDisagreeGetBothCalls) {
  const auto strategy = make(2);
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          const Tensor x = replica_index() ? ones({3}) : ones({2});
          get_replica_context()->all_reduce(ReduceOp::sum, x);
        });
      },
      throws<PeerError>("disagree", "f32[2]", "f32[3]"));
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          if (replica_index() == 0)
            get_replica_context()->all_reduce(ReduceOp::sum, ones({2}));
          else
            get_replica_context()->all_reduce(ReduceOp::mean, ones({2}));
        });
      },
      throws<PeerError>("disagree", "sum", "mean"));
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          get_replica_context()->all_gather(replica_index() ? ones({1, 3}) : ones({1, 2}));
        });
      },
      throws<PeerError>("disagree"));
}

TEST_P(Collectives, ShapesOfOneSizeThatDisagreeAreNeverMixed) {
  const auto strategy = make(2);
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          const Tensor x = replica_index() ? ones({3, 2}) : ones({2, 3});
          get_replica_context()->all_reduce(ReduceOp::sum, x);
        });
      },
      throws<PeerError>("[2, 3]", "[3, 2]"));
}

TEST_P(Collectives, AReplicaThatReturnsEarlyIsNamed) {
  const auto strategy = make(3);
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          if (replica_index() != 1) get_replica_context()->all_reduce(ReduceOp::sum, ones({2}));
        });
      },
      throws<PeerError>("rank 1", "all_reduce"));
}

TEST_P(Collectives, GlobalCountIsTheSumOverReplicas) {
  const auto strategy = make(3);
  strategy.run([] {
    const Tensor count = get_replica_context()->global_count(replica_index());
    EXPECT_EQ(count.dtype(), DType::i64);
    EXPECT_EQ(count.item<std::int64_t>(), 3);
  });
}

TEST_P(Collectives, OneReplicasVoteSkipsTheStepOnAll) {
  const auto strategy = make(3);
  const auto skipped = [&](int voter) {
    return strategy.run([&] {
      get_replica_context()->vote_skip(Tensor(replica_index() == voter));
      return get_replica_context()->begin_gradient_reduction({}, {})->finish().skip;
    });
  };
  for (const Tensor& skip : skipped(1)) EXPECT_TRUE(skip.item<bool>());
  for (const Tensor& skip : skipped(-1)) EXPECT_FALSE(skip.item<bool>());
}

TEST_P(Collectives, AVoteDuringTheReductionCountsAtItsCommitPoint) {
  const auto strategy = make(2);
  strategy.run([] {
    ReplicaContext& context = *get_replica_context();
    const auto reduction = context.begin_gradient_reduction({}, {});
    context.vote_skip(Tensor(replica_index() == 1));
    EXPECT_TRUE(reduction->finish().skip.item<bool>());
    EXPECT_FALSE(context.begin_gradient_reduction({}, {})->finish().skip.item<bool>());
  });
}

TEST_P(Collectives, AVoteDoesNotOutliveItsStep) {
  const auto strategy = make(2);
  strategy.run([] { get_replica_context()->vote_skip(Tensor(true)); });
  const auto skips = strategy.run(
      [] { return get_replica_context()->begin_gradient_reduction({}, {})->finish().skip; });
  for (const Tensor& skip : skips) EXPECT_FALSE(skip.item<bool>());
}

TEST_P(Collectives, MergeCallRunsOnceWithEveryReplicaThere) {
  const auto strategy = make(3);
  std::vector<int> arrived(3);
  int merges = 0;
  strategy.run([&] {
    for (int round = 1; round <= 3; ++round) {
      arrived[static_cast<std::size_t>(replica_index())] = round;
      get_replica_context()->merge_call([&] {
        ++merges;
        EXPECT_THAT(arrived, Each(round));
      });
      EXPECT_EQ(merges, round);
    }
  });
}

TEST_P(Collectives, MergeCallIsNotRecordedAndDrawsNoNumbers) {
  const auto strategy = make(2);
  const Tensor x(2.0f);
  strategy.run([&] {
    const std::uint64_t counter = current_random_state().counter;
    GradientTape tape;
    tape.watch(x);
    Tensor factor;
    get_replica_context()->merge_call([&] {
      EXPECT_EQ(current_recorder(), nullptr);
      ++current_random_state().counter;
    });
    EXPECT_NE(current_recorder(), nullptr);
    EXPECT_EQ(current_random_state().counter, counter);
  });
}

TEST_P(Collectives, RandomStreamsAreTheReplicas) {
  const MirroredStrategy strategy(
      {.devices = testing::cpus(3), .replica_threads = GetParam(), .seed = 7});
  strategy.run([] {
    EXPECT_EQ(current_random_state().seed, 7u);
    EXPECT_EQ(current_random_state().stream, static_cast<std::uint64_t>(replica_index()));
    ++current_random_state().counter;
  });
  strategy.run([] { EXPECT_EQ(current_random_state().counter, 1u) << "goes on over steps"; });
  const auto scope = strategy.scope();
  EXPECT_EQ(current_random_state().seed, 7u);
  EXPECT_GE(current_random_state().stream, 3u) << "a stream that no replica has";
}

}  // namespace
}  // namespace lockstep
