// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/source_location.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::data {

// The bytes of a file; of a longer one than `limit`, its first limit + 1, by which it is recognised.
// Throws Unavailable "[op] cannot read ..." with the system's reason and `advice`.
std::vector<unsigned char> read_file(const std::filesystem::path& path, std::string_view op,
                                     std::string_view advice, SourceLocation at,
                                     std::size_t limit = std::numeric_limits<std::size_t>::max() -
                                                         1);

// The file or folder of that name in the directory LOCKSTEP_DATA_DIR; nothing, which the log tells, where
// that has none, and where the variable is not set.
std::optional<std::filesystem::path> find_in_data_dir(const std::filesystem::path& name,
                                                      std::string_view op);

}  // namespace lockstep::data
