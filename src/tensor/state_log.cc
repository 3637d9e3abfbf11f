// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/state_log.h>

namespace lockstep {
namespace {

thread_local StateLog* innermost = nullptr;

}  // namespace

StateLog::~StateLog() = default;

StateLog* current_state_log() noexcept { return innermost; }
StateLogScope::StateLogScope(StateLog* log) noexcept : previous_(std::exchange(innermost, log)) {}
StateLogScope::~StateLogScope() { innermost = previous_; }

}  // namespace lockstep
