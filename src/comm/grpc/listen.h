// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "comm/grpc/wire.h"

namespace lockstep {

// Returns when a socket could listen at "host:port". Throws Unavailable that says why it cannot; an
// address in use is tried again for two seconds, as the process that has it may be about to end.
void check_free(const std::string& address);

// For a server that could not bind although check_free() returned: an address taken since, or TLS
// files that gRPC cannot use (InvalidArgument).
[[noreturn]] void throw_not_bound(const WireOptions& options);

}  // namespace lockstep
