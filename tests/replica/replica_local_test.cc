// SPDX-License-Identifier: Apache-2.0
#include <lockstep/replica/per_replica.h>
#include <lockstep/replica/replica_local.h>

#include "support/errors.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

using lockstep::testing::replicas;
using lockstep::testing::throws;

TEST(ReplicaLocal, GivesEachReplicaItsOwn) {
  const auto strategy = replicas(3);
  const ReplicaLocal<std::vector<int>> seen(3);
  for (int step = 0; step < 4; ++step)
    strategy.run([&] { seen.get().push_back(testing::replica_index()); });
  for (int r = 0; r < 3; ++r)
    EXPECT_EQ(seen.of(static_cast<std::size_t>(r)), std::vector<int>(4, r));
}

TEST(ReplicaLocal, StartsFromTheInitialValue) {
  const ReplicaLocal<int> counts(2, 41);
  EXPECT_EQ(++counts.get(), 42);  // the default context is replica 0
  EXPECT_EQ(counts.of(1), 41);
  EXPECT_EQ(counts.size(), 2u);
}

TEST(ReplicaLocal, RefusesTheCrossReplicaSideAndTooManyReplicas) {
  const ReplicaLocal<int> one(1);
  const auto strategy = replicas(2);
  EXPECT_THAT([&] { strategy.run([&] { one.get(); }); },
              throws<InvalidArgument>("[ReplicaLocal::get]", "1", "replica 1"));
  const auto scope = strategy.scope();
  EXPECT_THAT([&] { one.get(); }, throws<FailedPrecondition>("[ReplicaLocal::get]"));
}

TEST(PerReplica, HoldsOneValuePerReplica) {
  const PerReplica<int> values({4, 5, 6});
  EXPECT_EQ(values.size(), 3u);
  EXPECT_EQ(values[2], 6);
  EXPECT_EQ(std::vector<int>(values.begin(), values.end()), (std::vector{4, 5, 6}));
  EXPECT_EQ(values.kind(), ReplicaKind::per_replica);
  EXPECT_FALSE(values.rows());
  EXPECT_THAT([&] { values[3]; }, throws<InvalidArgument>("[PerReplica]", "3"));
}

}  // namespace
}  // namespace lockstep
