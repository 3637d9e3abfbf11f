// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace lockstep::testing {
namespace {

int entries_of(const char* folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

int num_threads() { return entries_of("/proc/self/task"); }
int num_threads_once_settled(int expected) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int count = num_threads();
  while (count != expected && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    count = num_threads();
  }
  return count;
}
// The iterator's own descriptor is one of them.
int num_descriptors() { return entries_of("/proc/self/fd") - 1; }

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace lockstep::testing
