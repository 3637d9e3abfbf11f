// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/replica/context.h>

#include <thread>

#include "replica/default_context.h"
#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::throws;
using lockstep::testing::vec;

// A group of two local replicas that never run anything.
class StubGroup final : public ReplicaGroup {
 public:
  std::span<const Device> local_devices() const override { return devices_; }
  int num_replicas_in_sync() const override { return 2; }
  WorkerGroup& workers() override { return single_worker(); }
  bool run_active() const override { return active; }
  Tensor broadcast_initial_value(std::string_view, Tensor value, SourceLocation) override {
    return value;
  }
  bool active = false;

 private:
  std::array<Device, 2> devices_{Device{DeviceKind::cpu, 0}, Device{DeviceKind::cpu, 1}};
};

void expect_default_context() {
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  ReplicaContext* const context = get_replica_context();
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(context->replica_index(), 0);
  EXPECT_EQ(context->local_index(), 0);
  EXPECT_EQ(context->num_replicas_in_sync(), 1);
  EXPECT_EQ(context->replica_id_in_sync_group().item<int>(), 0);
  EXPECT_EQ(context->replica_id_in_sync_group().dtype(), DType::i32);
}

TEST(Context, CTX01_WithoutAScopeThereIsADefaultReplica) {
  expect_default_context();
  std::thread(expect_default_context).join();
}

TEST(Context, CrossReplicaScopesNest) {
  const auto group = std::make_shared<StubGroup>();
  {
    const ContextScope outer(group);
    EXPECT_TRUE(has_strategy());
    EXPECT_TRUE(in_cross_replica_context());
    EXPECT_EQ(get_replica_context(), nullptr);
    EXPECT_EQ(current_replica_group(), group);
    {
      ReplicaContext& replica = default_replica_context();
      const ContextScope inner(group, replica);
      EXPECT_TRUE(has_strategy());
      EXPECT_FALSE(in_cross_replica_context());
      EXPECT_EQ(get_replica_context(), &replica);
    }
    EXPECT_TRUE(in_cross_replica_context());
  }
  expect_default_context();
}

TEST(Context, AThreadStartedInAScopeIsOutsideIt) {
  const ContextScope scope(std::make_shared<StubGroup>());
  std::thread(expect_default_context).join();
}

TEST(Context, RequireNamesTheCallAndSaysWhatToDo) {
  EXPECT_EQ(&require_replica_context("op", {}), get_replica_context());
  const ContextScope scope(std::make_shared<StubGroup>());
  EXPECT_THAT([] { require_replica_context("Sgd::minimize", {}); },
              throws<FailedPrecondition>("[Sgd::minimize]", "replica context", "Strategy::run"));
}

TEST(DefaultContext, CollectivesAreIdentities) {
  ReplicaContext& context = *get_replica_context();
  const Tensor x = vec({1, 2, 3});
  EXPECT_THAT(context.all_reduce(ReduceOp::sum, x), holds({1, 2, 3}));
  EXPECT_THAT(context.all_reduce(ReduceOp::mean, x), holds({1, 2, 3}));
  EXPECT_THAT(context.all_gather(x), holds({1, 2, 3}));
  EXPECT_EQ(context.global_count(5).item<std::int64_t>(), 5);
  EXPECT_EQ(context.global_count(Tensor(std::int64_t{6})).item<std::int64_t>(), 6);
  EXPECT_FALSE(context.batch_rows());
  const auto [number, pair] =
      context.all_reduce(ReduceOp::sum, std::tuple(2.5, std::pair(x, Tensor(4.0f))));
  EXPECT_EQ(number, 2.5);
  EXPECT_THAT(pair.first, holds({1, 2, 3}));
}

TEST(DefaultContext, CollectivesRefuseWhatManyReplicasWouldRefuse) {
  ReplicaContext& context = *get_replica_context();
  EXPECT_THAT([&] { context.all_reduce(ReduceOp::mean, Tensor(3)); },
              throws<InvalidArgument>("[ReplicaContext::all_reduce]", "i32"));
  EXPECT_THAT([&] { context.all_gather(Tensor(3.0f)); },
              throws<InvalidArgument>("[ReplicaContext::all_gather]", "rank"));
  EXPECT_THAT([&] { context.all_reduce(ReduceOp::sum, Tensor()); }, throws<InvalidArgument>());
  EXPECT_THAT([&] { context.vote_skip(Tensor(1.0f)); },
              throws<InvalidArgument>("[ReplicaContext::vote_skip]", "boolean"));
}

TEST(DefaultContext, MergeCallRunsTheFunctionUnrecorded) {
  const Variable w(Tensor(3.0f));
  bool merged = false;
  get_replica_context()->merge_call([&] {
    merged = true;
    EXPECT_EQ(current_recorder(), nullptr);
  });
  EXPECT_TRUE(merged);
}

TEST(DefaultContext, AReductionHandsBackWhatItWasGiven) {
  ReplicaContext& context = *get_replica_context();
  const std::vector<Variable> variables{Variable(Tensor(1.0f)), Variable(Tensor(2.0f))};
  const auto reduction = context.begin_gradient_reduction(variables, {});
  reduction->ready(1, Tensor());
  reduction->ready(0, Tensor(7.0f));
  const ReducedGradients reduced = reduction->finish();
  EXPECT_EQ(reduced.gradients[0].item<float>(), 7);
  EXPECT_FALSE(reduced.gradients[1].defined());
  EXPECT_FALSE(reduced.skip.item<bool>());
}

TEST(DefaultContext, AVoteCountsForOneStep) {
  ReplicaContext& context = *get_replica_context();
  context.vote_skip(Tensor(false));
  context.vote_skip(Tensor(true));
  EXPECT_TRUE(context.begin_gradient_reduction({}, {})->finish().skip.item<bool>());
  EXPECT_FALSE(context.begin_gradient_reduction({}, {})->finish().skip.item<bool>());
}

}  // namespace
}  // namespace lockstep
