// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

// Independent streams of collectives between the same ranks; each numbers its calls on its own.
enum class Channel : std::uint8_t {
  variables,  // initial values, aggregated assignments
  input,      // end-of-data agreement; the sequence holds iterator and step
  gradients,  // the sequence is the bucket's index in the plan
  user,       // calls in the user's step function
  control     // votes, verdicts, start and stop
};

constexpr std::string_view name_of(Channel channel) {
  constexpr std::string_view names[] = {"variables", "input", "gradients", "user", "control"};
  return names[static_cast<std::size_t>(channel)];
}

// What calls of different ranks are matched by. Calls meet when channel and sequence are equal, in
// whatever order they arrive; a key may be used again, and then the n-th call with it on one rank
// meets the n-th on every other. The name, like kind, op, dtype and count of the call, takes no
// part in matching but is compared: ranks that disagree get an error that shows both.
struct CollectiveKey {
  Channel channel = Channel::user;
  std::int64_t sequence = 0;
  std::string_view name = {};  // read only during the call that it is passed to
  SourceLocation at = {};      // the line that errors of the call are to name; not compared

  // `gradients/3 "dense/kernel"`.
  LOCKSTEP_EXPORT std::string to_string() const;
};

}  // namespace lockstep
