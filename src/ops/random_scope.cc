// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/random_scope.h>

#include <utility>

namespace lockstep {
namespace {

thread_local RandomState threads_own;
thread_local RandomState* innermost = nullptr;

}  // namespace

RandomState& current_random_state() noexcept { return innermost ? *innermost : threads_own; }
RandomScope::RandomScope(RandomState& state) noexcept
    : previous_(std::exchange(innermost, &state)) {}
RandomScope::~RandomScope() { innermost = previous_; }

}  // namespace lockstep
