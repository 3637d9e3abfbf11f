// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/log.h>

namespace lockstep::testing {

// Nothing is logged while it lives: for tests of failures that are expected by the thousand.
class QuietLog {
 public:
  QuietLog() : level_(logging::level()) { logging::set_level(logging::Level::off); }
  ~QuietLog() { logging::set_level(level_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  logging::Level level_;
};

}  // namespace lockstep::testing
