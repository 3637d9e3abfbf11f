// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/xla/plugin.h"

namespace lockstep::xla {
namespace {

namespace fs = std::filesystem;

// Google's PCI devices that are TPUs: v2 and v3, v4, v5p, v5e, v6e, v7x.
constexpr const char* kVendor = "0x1ae0";
constexpr const char* kChips[] = {"0x0027", "0x005e", "0x0062", "0x0063",
                                  "0x006f", "0x0076", "0x007c", "0x0083"};

bool has_tpu() {
  std::error_code ignored;
  if (fs::exists("/dev/accel0", ignored)) return true;
  for (const auto& device : fs::directory_iterator("/sys/bus/pci/devices", ignored)) {
    const auto read = [&](const char* name) {
      std::string text;
      std::ifstream(device.path() / name) >> text;
      return text;
    };
    if (read("vendor") == kVendor &&
        std::count(std::begin(kChips), std::end(kChips), read("device")) > 0)
      return true;
  }
  return false;
}

// libtpu waits for a TPU for ever where there is none.
std::string checked(std::string path, SourceLocation at) {
  if (fs::path(path).filename().string().starts_with("libtpu") && !has_tpu())
    throw Unavailable(
        message("TPUStrategy", "no TPU: ", path,
                " is there, but no TPU chip among the PCI devices; to try the program on CPUs name "
                "a CPU plugin by {.plugin = path} or LOCKSTEP_PJRT_CPU_PLUGIN"),
        at);
  return path;
}

std::vector<std::string> usual_places() {
  std::vector<std::string> places = {"/lib/libtpu.so", "/usr/lib/libtpu.so",
                                     "/usr/local/lib/libtpu.so"};
  std::vector<fs::path> roots = {"/usr/local/lib", "/usr/lib"};
  for (const auto& [variable, folder] :
       {std::pair("HOME", ".local/lib"), std::pair("VIRTUAL_ENV", "lib")})
    if (const char* const root = std::getenv(variable)) roots.push_back(fs::path(root) / folder);
  std::error_code ignored;
  for (const fs::path& root : roots)
    for (const auto& entry : fs::directory_iterator(root, ignored))
      if (entry.path().filename().string().starts_with("python3"))
        for (const char* packages : {"site-packages", "dist-packages"})
          places.push_back((entry.path() / packages / "libtpu" / "libtpu.so").string());
  return places;
}

}  // namespace

std::string find_plugin(const std::string& option, SourceLocation at) {
  std::error_code ignored;
  if (!option.empty()) {
    if (fs::exists(option, ignored)) return checked(option, at);
    throw Unavailable(
        message("TPUStrategy", "no TPU plugin: .plugin names ", option, ", which does not exist"),
        at);
  }
  std::string searched;
  for (const char* const variable : {"LOCKSTEP_PJRT_CPU_PLUGIN", "TPU_LIBRARY_PATH"}) {
    const char* const path = std::getenv(variable);
    const bool set = path && *path;
    if (set && fs::exists(path, ignored)) return checked(path, at);
    searched += std::string("$") + variable + " (" +
                (set ? std::string(path) + " does not exist" : "not set") + "), ";
  }
  for (const std::string& place : usual_places()) {
    if (fs::exists(place, ignored)) return checked(place, at);
    searched += place + ", ";
  }
  searched.resize(searched.size() - 2);
  throw Unavailable(
      message("TPUStrategy", "no TPU was found: no PJRT plugin in any of ", searched,
              "; on a TPU machine install libtpu (pip install libtpu), elsewhere name a plugin by "
              "{.plugin = path} or LOCKSTEP_PJRT_CPU_PLUGIN, for example that of the Python "
              "package xla-cpu-pjrt"),
      at);
}

}  // namespace lockstep::xla
