// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

// A place in the user's source, captured by a defaulted last argument:
//   Tensor softmax(const Tensor& x, SourceLocation at = SourceLocation::current());
// (std::source_location is missing from clang 14 with libstdc++ and carries more than is shown.)
struct SourceLocation {
  const char* file = "";
  int line = 0;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace lockstep
