// SPDX-License-Identifier: Apache-2.0
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;

const auto kRefused = [](const char* call) {
  return throws<FailedPrecondition>(call, "'v'", "invalid", "the disk is full", "assign");
};

// Every way of using it in the calling thread is refused.
void expect_invalid(Variable v) {
  EXPECT_FALSE(v.valid());
  EXPECT_THAT([&] { v.read(); }, kRefused("[Variable::read]"));
  EXPECT_THAT([&] { v.assign_add(vec({1, 1})); }, kRefused("[Variable::assign_add]"));
  EXPECT_THAT([&] { v.assign_sub(vec({1, 1})); }, kRefused("[Variable::assign_sub]"));
  EXPECT_THAT([&] { update_values<1>({v}, [](std::array<Tensor, 1>&) { FAIL() << "called"; }); },
              kRefused("[update]"));
}

struct Reader final : StateVisitor {
  void visit(std::string_view, Tensor& value) override {
    if (restored.defined()) value = restored;
  }
  void visit(std::string_view, std::int64_t&) override {}
  Tensor restored;
};

TEST(InvalidVariable, OfOneComponentIsValidOnceAssigned) {
  Variable v(vec({1, 2}), {.name = "v"});
  v.invalidate("the disk is full");
  expect_invalid(v);
  v.assign(vec({3, 4}));
  EXPECT_TRUE(v.valid());
  EXPECT_THAT(v.read(), holds({3, 4}));
}

TEST(InvalidVariable, OfReplicasIsInvalidOnAllUntilAssignedOutside) {
  const auto strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable v(vec({1, 2}), {.name = "v"});
  v.invalidate("the disk is full");
  expect_invalid(v);
  strategy.run([&] {
    expect_invalid(v);
    EXPECT_THAT([&] { v.assign(vec({3, 4})); }, kRefused("[Variable::assign]"));
  });
  v.assign(vec({3, 4}));
  strategy.run([&] { EXPECT_THAT(v.read(), holds({3, 4})); });
}

TEST(InvalidVariable, IsValidOnceEveryComponentIsSet) {
  const auto strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable v(vec({1, 2}), {.name = "v"});
  v.invalidate("the disk is full");
  v.set_local_value(1, vec({5, 6}));
  v.set_local_value(1, vec({5, 6}));
  expect_invalid(v);
  v.set_local_value(0, vec({5, 6}));
  EXPECT_THAT(v.read(), holds({5, 6}));
}

TEST(InvalidVariable, IsRestoredButNotSaved) {
  Variable v(vec({1, 2}), {.name = "v"});
  v.invalidate("the disk is full");
  Reader reader;
  EXPECT_THAT([&] { v.visit_state(reader); }, kRefused("[Variable::read]"));
  reader.restored = vec({7, 8});
  v.visit_state(reader);
  EXPECT_THAT(v.read(), holds({7, 8}));
}

TEST(InvalidVariable, ShowsItsComponentsToWhoAsks) {
  const auto strategy = replicas(2);
  const auto scope = strategy.scope();
  Variable v(vec({1, 2}), {.name = "v"});
  v.invalidate("the disk is full");
  for (const Tensor& value : v.local_values()) EXPECT_THAT(value, holds({1, 2}));
}

TEST(InvalidVariable, AStepsVerdictCountsFromItsEndOn) {
  const auto strategy = replicas(2);
  const auto scope = strategy.scope();
  const Variable v(vec({1, 2}), {.name = "v"});
  strategy.run([&] {
    ReplicaContext& context = *get_replica_context();
    if (replica_index() == 1) context.invalidate({&v, 1}, "the disk is full");
    context.global_count(1);
    EXPECT_THAT(v.read(), holds({1, 2}));
  });
  expect_invalid(v);
}

TEST(InvalidVariable, WithoutAStrategyItCountsAtOnce) {
  const Variable v(vec({1, 2}), {.name = "v"});
  get_replica_context()->invalidate({&v, 1}, "the disk is full");
  expect_invalid(v);
}

}  // namespace
}  // namespace lockstep
