// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

// A run of consecutive tensors [begin, end) that are reduced by one collective.
struct Bucket {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Groups tensors of these sizes (bytes, in the order in which they become ready) by TensorFlow's
// rule for CommunicationOptions.bytes_per_pack: a bucket is closed once the bytes in it *exceed*
// `bytes_per_pack`, so that it overshoots by at most one tensor. bytes_per_pack 0, or a negative
// size (not known yet) anywhere, gives one bucket; no tensors give none. Tensors of one bucket
// should have one dtype: call it per dtype. Throws InvalidArgument for a negative bytes_per_pack.
LOCKSTEP_EXPORT std::vector<Bucket> group_by_size(std::span<const std::int64_t> bytes,
                                                  std::int64_t bytes_per_pack);

// Groups tensors of these sizes into `num_packs` of about one size, TensorFlow's num_packs; where it
// cuts tensors, a group here ends with the tensor that brings all so far to the group's share. Fewer
// groups where there are fewer tensors. num_packs 0: nothing is packed, a group for each tensor. Throws
// InvalidArgument for negative numbers.
LOCKSTEP_EXPORT std::vector<Bucket> group_by_count(std::span<const std::int64_t> sizes,
                                                   int num_packs);

// Which of the two: by size unless num_packs is there.
struct Packing {
  std::int64_t bytes_per_pack = 0;
  std::optional<int> num_packs = {};

  std::vector<Bucket> group(std::span<const std::int64_t> bytes) const {
    return num_packs ? group_by_count(bytes, *num_packs) : group_by_size(bytes, bytes_per_pack);
  }
};

}  // namespace lockstep
