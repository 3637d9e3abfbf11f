// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::vec;

class Metrics : public ::testing::TestWithParam<ReplicaThreads> {};
INSTANTIATE_TEST_SUITE_P(Modes, Metrics, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Metrics, MET01_TheMeanOverUnequalReplicas) {
  const auto strategy = replicas(2, GetParam());
  const auto scope = strategy.scope();
  metrics::Mean mean;
  const auto inside = strategy.run([&] {
    mean.update_state(replica_index() == 0 ? vec({1, 2, 3}) : vec({10}));
    return mean.result();
  });
  EXPECT_THAT(items(inside), ::testing::Each(4));
  EXPECT_EQ(mean.result().item<double>(), 4);
}

}  // namespace
}  // namespace lockstep
