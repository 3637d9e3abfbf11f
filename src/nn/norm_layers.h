// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>

namespace lockstep::nn {

inline void check_norm(const char* layer, std::int64_t channels, double epsilon,
                       SourceLocation at) {
  require(channels > 0, at, layer, "expected 1 channel or more, got ", channels);
  require(epsilon >= 0, at, layer, "expected an epsilon of 0 or more, got ", epsilon);
}

}  // namespace lockstep::nn
