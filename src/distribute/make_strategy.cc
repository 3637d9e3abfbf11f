// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/distribute/multi_worker.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/tpu.h>

#include <charconv>
#include <string>
#include <vector>

#include "device/pool.h"

namespace lockstep {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.emplace_back(text.substr(0, end));
  parts.emplace_back(text);
  return parts;
}

int count_in(std::string_view text, std::string_view kind, SourceLocation at) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  require(
      error == std::errc() && end == text.data() + text.size() && count > 0 && count <= kMaxDevices,
      at, "make_strategy", "expected a count of 1 or more (up to ", kMaxDevices,
      kind == "tpu" ? ") after \"" : "), or devices, after \"", kind, ":\", got \"", text, '"');
  return count;
}

// What follows "mirrored:" or "multi_worker:": "4" stands for so many logical CPUs, "CPU:0,CPU:2" for
// these devices.
std::vector<std::string> devices_in(std::string_view text, std::string_view kind,
                                    SourceLocation at) {
  if (text.find_first_not_of("+-0123456789") != std::string_view::npos) return split(text, ',');
  const int count = count_in(text, kind, at);
  std::vector<std::string> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) devices.push_back("CPU:" + std::to_string(i));
  return devices;
}

}  // namespace

Strategy make_strategy(std::string_view text, SourceLocation at) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const bool plain = colon == std::string_view::npos;
  const std::string_view rest = plain ? "" : text.substr(colon + 1);
  if (kind == "one_device")
    return OneDeviceStrategy({.device = plain ? "CPU:0" : std::string(rest)}, at);
  const auto devices = [&] {
    return plain ? std::vector<std::string>() : devices_in(rest, kind, at);
  };
  if (kind == "mirrored") return MirroredStrategy({.devices = devices()}, at);
  if (kind == "multi_worker") return MultiWorkerMirroredStrategy({.devices = devices()}, at);
  if (kind == "tpu") return TPUStrategy({.replicas = plain ? 0 : count_in(rest, kind, at)}, at);
  throw InvalidArgument(message("make_strategy",
                                "expected \"one_device[:DEVICE]\", \"mirrored[:COUNT]\" or "
                                "\"mirrored:DEVICE,DEVICE...\", or the same with "
                                "\"multi_worker\", or \"tpu[:COUNT]\", got \"",
                                text, "\""),
                        at);
}

}  // namespace lockstep
