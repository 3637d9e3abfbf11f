// SPDX-License-Identifier: Apache-2.0
// Several workers in a build without gRPC.
#include <gmock/gmock.h>
#include <lockstep/lockstep.h>
#include <stdlib.h>

#include "support/errors.h"

namespace lockstep {
namespace {

using lockstep::testing::throws;

TEST(WithoutGrpc, SeveralWorkersAreUnavailableAndOneTrainsAlone) {
  setenv("TF_CONFIG", R"({"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]},
                          "task": {"type": "worker", "index": 0}})",
         1);
  EXPECT_THAT([] { MultiWorkerMirroredStrategy strategy; },
              throws<Unavailable>("no gRPC", "LOCKSTEP_WITH_GRPC=ON"));
  setenv("TF_CONFIG", "{}", 1);
  EXPECT_EQ(MultiWorkerMirroredStrategy().num_replicas_in_sync(), 1);
  unsetenv("TF_CONFIG");
}

}  // namespace
}  // namespace lockstep
