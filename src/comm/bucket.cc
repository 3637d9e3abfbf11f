// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/comm/bucket.h>

#include <algorithm>
#include <numeric>

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

std::vector<Bucket> group_by_count(std::span<const std::int64_t> sizes, int num_packs) {
  require(num_packs >= 0 && std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 0; }),
          SourceLocation{}, "group_by_count",
          "expected sizes and num_packs >= 0 (0: nothing is packed), got num_packs ", num_packs);
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::vector<Bucket> buckets;
  std::int64_t filled = 0;
  bool closed = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (closed) buckets.push_back({i, i});
    buckets.back().end = i + 1;
    filled += sizes[i];
    // Its share, without the fraction that the next one has of an uneven total.
    const auto share = total * static_cast<std::int64_t>(buckets.size()) / std::max(num_packs, 1);
    const bool last = static_cast<int>(buckets.size()) == num_packs;
    closed = num_packs == 0 || (filled >= share && !last);
  }
  return buckets;
}

}  // namespace lockstep
