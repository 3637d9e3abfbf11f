// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator_conformance.h"
#include "comm/grpc_world.h"

namespace lockstep::testing {

INSTANTIATE_TEST_SUITE_P(Grpc, CommunicatorConformance, ::testing::Values(grpc()),
                         [](const auto& info) { return info.param.name; });

}  // namespace lockstep::testing
