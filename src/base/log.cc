// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

namespace lockstep::logging {
namespace {

std::optional<Level> level_named(std::string_view name) {
  if (name == "debug") return Level::debug;
  if (name == "info") return Level::info;
  if (name == "warning") return Level::warning;
  if (name == "error") return Level::error;
  if (name == "off") return Level::off;
  return std::nullopt;
}

// Tells once of a value that names no level. By the C library, since it may run before main.
Level level_from_environment() noexcept {
  const char* const value = std::getenv("LOCKSTEP_LOG_LEVEL");
  if (!value || !*value) return Level::warning;
  if (const auto level = level_named(value)) return *level;
  static std::atomic_flag told;
  if (!told.test_and_set())
    std::fprintf(stderr,
                 "lockstep: [LOCKSTEP_LOG_LEVEL] expected debug, info, warning, error or off, got "
                 "\"%s\"; taking warning\n",
                 value);
  return Level::warning;
}

// Read when the library is loaded, too, so that a mistake is told of where nothing is logged.
[[maybe_unused]] const Level level_at_load = level_from_environment();

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
    case Level::off:
      break;
  }
  return spdlog::level::off;
}

struct Logger {
  std::atomic<Level> level{level_from_environment()};
  std::mutex mutex;
  std::string prefix;
  std::function<void(Level, std::string_view)> sink;
  spdlog::logger standard_error{"lockstep", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  Logger() {
    standard_error.set_level(spdlog::level::trace);
    standard_error.set_pattern("%Y-%m-%d %H:%M:%S.%e %L lockstep: %v");
  }
};

// Leaked on purpose: destructors of static objects may still log.
Logger& logger() {
  static Logger* const instance = new Logger;
  return *instance;
}

void write(Level level, std::string_view text) {
  Logger& self = logger();
  if (level < self.level.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(self.mutex);
  const std::string line = self.prefix + std::string(text);
  if (self.sink)
    self.sink(level, line);
  else
    self.standard_error.log(to_spdlog(level), line);
}

}  // namespace

void set_level(Level level) { logger().level = level; }
Level level() { return logger().level; }

void set_sink(std::function<void(Level, std::string_view)> sink) {
  const std::lock_guard lock(logger().mutex);
  logger().sink = std::move(sink);
}

void set_prefix(std::string prefix) {
  const std::lock_guard lock(logger().mutex);
  logger().prefix = std::move(prefix);
}

void debug(std::string_view text) { write(Level::debug, text); }
void info(std::string_view text) { write(Level::info, text); }
void warning(std::string_view text) { write(Level::warning, text); }
void error(std::string_view text) { write(Level::error, text); }

}  // namespace lockstep::logging
