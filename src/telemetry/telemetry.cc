// SPDX-License-Identifier: Apache-2.0
#include <lockstep/telemetry/telemetry.h>

#include <memory>
#include <mutex>

namespace lockstep::telemetry {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Counter>, std::less<>> counters;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

Counter& counter(std::string_view name) {
  Registry& self = registry();
  const std::lock_guard lock(self.mutex);
  const auto found = self.counters.find(name);
  if (found != self.counters.end()) return *found->second;
  return *self.counters.emplace(name, std::make_unique<Counter>()).first->second;
}

std::map<std::string, std::int64_t> counters() {
  Registry& self = registry();
  const std::lock_guard lock(self.mutex);
  std::map<std::string, std::int64_t> values;
  for (const auto& [name, counter] : self.counters) values[name] = counter->value();
  return values;
}

}  // namespace lockstep::telemetry
