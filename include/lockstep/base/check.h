// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/error.h>
#include <lockstep/base/source_location.h>

#include <sstream>
#include <string>
#include <string_view>

namespace lockstep {

// "[op] " followed by the parts, streamed. For messages; not for hot paths.
template <class... Parts>
std::string message(std::string_view op, const Parts&... parts) {
  std::ostringstream out;
  out << '[' << op << "] ";
  (out << ... << parts);
  return std::move(out).str();
}

// The caller's mistake: throws InvalidArgument(message(op, parts...), at) unless `ok`.
template <class... Parts>
inline void require(bool ok, SourceLocation at, std::string_view op, const Parts&... parts) {
  if (!ok) [[unlikely]] throw InvalidArgument(message(op, parts...), at);
}

// Our mistake: throws InternalError unless `ok`.
template <class... Parts>
inline void ensure(bool ok, std::string_view where, const Parts&... parts) {
  if (!ok) [[unlikely]] throw InternalError(message(where, parts...));
}

}  // namespace lockstep
