// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace lockstep::logging {
namespace {

Level level_from_environment() {
  const char* value = std::getenv("LOCKSTEP_LOG_LEVEL");
  const std::string_view text = value ? value : "";
  if (text == "debug") return Level::debug;
  if (text == "info") return Level::info;
  if (text == "error") return Level::error;
  if (text == "off") return Level::off;
  return Level::warning;
}

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
