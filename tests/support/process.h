// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::testing {

// What the kernel counts for this process, from /proc/self. It lists a thread for a moment after it
// has been joined, so num_threads_once_settled looks again, for up to 10 s, until it counts
// `expected`.
int num_threads();
int num_threads_once_settled(int expected);
int num_descriptors();
std::int64_t resident_bytes();

}  // namespace lockstep::testing
