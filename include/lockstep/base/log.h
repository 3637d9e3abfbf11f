// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::logging {

enum class Level { debug, info, warning, error, off };

// Lowest level that is shown. Default: LOCKSTEP_LOG_LEVEL (debug, info, warning, error, off), else
// warning; another value is told of once on standard error, at the latest when the library is
// loaded. Thread-safe, as is everything here.
LOCKSTEP_EXPORT void set_level(Level level);
LOCKSTEP_EXPORT Level level();

// Receives every shown line in place of standard error; an empty function restores the default.
LOCKSTEP_EXPORT void set_sink(std::function<void(Level, std::string_view)> sink);

// Text put before each line of this process, for example "[w1] ".
LOCKSTEP_EXPORT void set_prefix(std::string prefix);

LOCKSTEP_EXPORT void debug(std::string_view text);
LOCKSTEP_EXPORT void info(std::string_view text);
LOCKSTEP_EXPORT void warning(std::string_view text);
LOCKSTEP_EXPORT void error(std::string_view text);

}  // namespace lockstep::logging
