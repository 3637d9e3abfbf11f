// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::testing {

// What the kernel counts for this process, from /proc/self.
int num_threads();
int num_descriptors();
std::int64_t resident_bytes();

}  // namespace lockstep::testing
