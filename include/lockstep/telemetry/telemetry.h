// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep::telemetry {

// A number that only grows, counted for the whole process. Thread-safe, one relaxed add per call.
class LOCKSTEP_EXPORT Counter {
 public:
  void add(std::int64_t amount = 1) noexcept {
    value_.fetch_add(amount, std::memory_order_relaxed);
  }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// The counter of that name, made on first use and never destroyed. Names follow Prometheus:
// lockstep_<what>_<unit>_total. Look it up once, keep the reference.
LOCKSTEP_EXPORT Counter& counter(std::string_view name);

// Every counter's value now.
LOCKSTEP_EXPORT std::map<std::string, std::int64_t> counters();

}  // namespace lockstep::telemetry
