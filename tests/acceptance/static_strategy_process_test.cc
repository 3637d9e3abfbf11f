// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/replicas.h"

namespace lockstep {
namespace {

// S42, its last part: a strategy with static lifetime, with variables and results that outlive it or
// not, as the order of destruction will have it. What is tested is that the process exits with code 0.
const Strategy& early() {
  static const MirroredStrategy strategy({.devices = testing::cpus(4)});
  return strategy;
}
std::vector<Variable> variables;
std::vector<PerReplica<Tensor>> results;
const MirroredStrategy late({.devices = testing::cpus(3)});

TEST(StaticStrategy, S42_LeavesTheProcessInPeace) {
  for (const Strategy& strategy : {early(), static_cast<const Strategy&>(late)}) {
    const auto scope = strategy.scope();
    variables.emplace_back(Tensor(1.0f), VariableOptions{.aggregation = VariableAggregation::sum});
    Variable& v = variables.back();
    results.push_back(strategy.run([&] { return v.assign_add(Tensor(1.0f)); }));
    const int count = strategy.num_replicas_in_sync();
    EXPECT_THAT(testing::items(results.back()), ::testing::Each(1 + count));
  }
}

}  // namespace
}  // namespace lockstep
