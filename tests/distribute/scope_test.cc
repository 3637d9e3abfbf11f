// SPDX-License-Identifier: Apache-2.0
// Scopes that are not closed as they should be.
#include <lockstep/distribute.h>
#include <lockstep/ops/random.h>
#include <lockstep/tensor/factory.h>

#include <memory>
#include <optional>
#include <thread>

#include "support/quiet_log.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

using lockstep::testing::replicas;

// A scope that may be closed at any place.
class LooseScope {
 public:
  explicit LooseScope(const Strategy& strategy) : scope_(new Strategy::Scope(strategy.scope())) {}
  void close() { scope_.reset(); }

 private:
  std::unique_ptr<Strategy::Scope> scope_;
};

std::size_t num_components() { return Variable(zeros({1})).local_values().size(); }

TEST(Scope, OfTheOuterClosedFirstTheInnerStays) {
  const auto strategy = replicas(2);
  LooseScope outer(strategy), inner(strategy);
  outer.close();
  EXPECT_EQ(num_components(), 2u);
  EXPECT_EQ(current_replica_group(), strategy.implementation());
  inner.close();
  EXPECT_FALSE(has_strategy());
  EXPECT_EQ(num_components(), 1u);
}

TEST(Scope, OutOfOrderOutlivesTheHandles) {
  std::optional<LooseScope> outer, inner;
  {
    const auto strategy = replicas(2);
    outer.emplace(strategy);
    inner.emplace(strategy);
  }
  outer->close();
  EXPECT_EQ(num_components(), 2u);
  inner->close();
  EXPECT_EQ(num_components(), 1u);
  EXPECT_NE(uniform({2}, 0, 1).raw_data(), nullptr) << "draws from a state that is still there";
}

TEST(Scope, ClosedByAnotherThreadEndsAtTheNextChance) {
  const testing::QuietLog quiet;
  const auto strategy = replicas(2), other = replicas(3);
  LooseScope scope(strategy);
  std::thread([&] {
    scope.close();
    EXPECT_FALSE(has_strategy());
  }).join();
  EXPECT_EQ(num_components(), 2u) << "the thread that opened it is still in it";
  { const auto next = strategy.scope(); }
  EXPECT_FALSE(has_strategy());
  const auto free = other.scope();
  EXPECT_EQ(num_components(), 3u);
}

TEST(Scope, ClosedInAStepEndsAtTheNextChance) {
  const testing::QuietLog quiet;
  const auto strategy = replicas(2);
  LooseScope scope(strategy);
  strategy.run([&] {
    if (testing::replica_index() == 0) scope.close();
    get_replica_context()->global_count(1);
  });
  { const auto next = strategy.scope(); }
  EXPECT_FALSE(has_strategy());
}

}  // namespace
}  // namespace lockstep
