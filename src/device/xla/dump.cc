// SPDX-License-Identifier: Apache-2.0
#include "device/xla/dump.h"

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::xla {
namespace {

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

}  // namespace

void dump(const std::string& text) {
  const char* const directory = std::getenv("LOCKSTEP_XLA_DUMP");
  if (!directory || !*directory) return;
  static std::atomic<int> written{0};
  const std::filesystem::path path = std::filesystem::path(directory) /
                                     ("program_" + host_name() + '_' + std::to_string(getpid()) +
                                      '_' + std::to_string(written.fetch_add(1)) + ".mlir");
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file)
    logging::warning(message("LOCKSTEP_XLA_DUMP", "cannot write ", path.string(),
                             "; name a directory that can be written to"));
}

}  // namespace lockstep::xla
