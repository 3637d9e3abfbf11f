// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/error.h>
#include <lockstep/base/source_location.h>

#include <sstream>
#include <string>
#include <string_view>

namespace lockstep {

namespace detail {
template <class Part>
void append_part(std::ostream& out, const Part& part) {
  if constexpr (requires { part.to_string(); })
    out << part.to_string();
  else
    out << part;
}
}  // namespace detail

// "[op] " followed by the parts, streamed; shapes, tensors and devices by their to_string(), so
// that `require` may be given the objects and writes their text only when it throws.
template <class... Parts>
std::string message(std::string_view op, const Parts&... parts) {
  std::ostringstream out;
  out << '[' << op << "] ";
  (detail::append_part(out, parts), ...);
  return std::move(out).str();
}

// The caller's mistake: throws InvalidArgument(message(op, parts...), at) unless `ok`.
template <class... Parts>
inline void require(bool ok, SourceLocation at, std::string_view op, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw InvalidArgument(message(op, parts...), at);
}

// Our mistake: throws InternalError unless `ok`.
template <class... Parts>
inline void ensure(bool ok, std::string_view where, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw InternalError(message(where, parts...));
}

}  // namespace lockstep
