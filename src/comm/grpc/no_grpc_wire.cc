// SPDX-License-Identifier: Apache-2.0
// In place of grpc_wire.cc in a build without gRPC.
#include <lockstep/base/check.h>

#include "comm/grpc/wire.h"

namespace lockstep {

std::unique_ptr<Wire> make_wire(WireOptions, WireEvents&) {
  throw Unavailable(message("GrpcGroup",
                            "this build of lockstep has no gRPC, which workers talk by; install "
                            "libgrpc++-dev and configure with -DLOCKSTEP_WITH_GRPC=ON"));
}

}  // namespace lockstep
