// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/comm/bucket.h>

#include <algorithm>

namespace lockstep {

std::vector<Bucket> group_by_size(std::span<const std::int64_t> bytes,
                                  std::int64_t bytes_per_pack) {
  require(bytes_per_pack >= 0, SourceLocation{}, "group_by_size",
          "expected bytes_per_pack >= 0 (0: everything in one bucket), got ", bytes_per_pack);
  if (bytes.empty()) return {};
  const bool size_unknown = std::ranges::any_of(bytes, [](std::int64_t size) { return size < 0; });
  if (bytes_per_pack == 0 || size_unknown) return {{0, bytes.size()}};

  std::vector<Bucket> buckets;
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (buckets.empty() || filled > bytes_per_pack) {
      buckets.push_back({i, i});
      filled = 0;
    }
    buckets.back().end = i + 1;
    filled += bytes[i];
  }
  return buckets;
}

}  // namespace lockstep
