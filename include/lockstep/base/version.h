// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lockstep/base/export.h"

namespace lockstep {

// The version of the library that is linked, as "major.minor.patch". Workers of one cluster compare
// it when they meet.
[[nodiscard]] LOCKSTEP_EXPORT std::string_view version();

}  // namespace lockstep
