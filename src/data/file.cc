// SPDX-License-Identifier: Apache-2.0
#include "data/file.h"

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace lockstep::data {

std::vector<unsigned char> read_file(const std::filesystem::path& path, std::string_view op,
                                     std::string_view advice, SourceLocation at,
                                     std::size_t limit) {
  const auto require_ok = [&](bool ok) {
    if (!ok)
      throw Unavailable(
          message(op, "cannot read ", path.string(), ": ", std::strerror(errno), advice), at);
  };
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  require_ok(file != nullptr);
  std::vector<unsigned char> bytes;
  std::size_t size = 0, got = 1;
  while (got > 0 && size <= limit) {
    bytes.resize(size + std::min(limit + 1 - size, std::max(size, std::size_t{1} << 16)));
    got = std::fread(bytes.data() + size, 1, bytes.size() - size, file.get());
    size += got;
  }
  require_ok(!std::ferror(file.get()));
  bytes.resize(size);
  return bytes;
}

std::optional<std::filesystem::path> find_in_data_dir(const std::filesystem::path& name,
                                                      std::string_view op) {
  const char* const directory = std::getenv("LOCKSTEP_DATA_DIR");
  if (!directory || !*directory) return std::nullopt;
  const std::filesystem::path path = std::filesystem::path(directory) / name;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  logging::info(message(op, "no ", path.string(), "; LOCKSTEP_DATA_DIR is passed over"));
  return std::nullopt;
}

}  // namespace lockstep::data
