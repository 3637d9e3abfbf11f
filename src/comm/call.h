// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/communicator.h>

#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier
};

std::string_view name_of(CollectiveKind kind);

// A name kept by value without allocation: of a long one its first and last bytes, and a hash of the
// whole.
class CallName {
 public:
  CallName() = default;
  explicit CallName(std::string_view name);
  std::string to_string() const;  // quoted; "..." where it is cut; empty for an empty name
  friend bool operator==(const CallName&, const CallName&) = default;

 private:
  static constexpr std::size_t kHead = 20;  // bytes of a long name's beginning
  std::array<char, 56> text_{};
  std::uint32_t length_ = 0;
  std::uint32_t hash_ = 0;
};

// All of a call that ranks must agree on, but for the counts of an uneven all_gather.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  Channel channel = Channel::user;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  bool uneven = false;    // all_gather with a count per rank that differ; count is then their total
  std::int32_t root = 0;  // broadcast only
  std::int64_t sequence = 0;
  std::int64_t count = 0;  // elements of an input: of every rank's, of reduce_scatter's whole
  CallName name;
  SourceLocation at;  // whose call it is, for errors

  bool has_key(Channel c, std::int64_t s) const { return sequence == s && channel == c; }
  std::string key() const;        // `user/3 "a"`
  std::string to_string() const;  // `all_reduce sum f32[10] user/3 "a"`
  // The same in all that ranks must agree on: everything but `at`.
  bool agrees_with(const CollectiveCall& other) const;
};

// A call with the counts of an uneven all_gather; "rank 3", "ranks 1, 3".
std::string print_call(const CollectiveCall& call, std::span<const std::int64_t> counts);
std::string print_ranks(const std::vector<int>& ranks);

// "[Communicator::all_reduce]" without brackets: how messages about a call begin.
std::string api_name(CollectiveKind kind);

// Throws why an epoch has ended into a call that came after, which an error of ours then names.
[[noreturn]] void throw_into(const CollectiveCall& call, const std::exception_ptr& reason);

// The call that these arguments make. Each throws InvalidArgument for arguments that do not fit
// (see communicator.h), so that all implementations refuse the same with the same words.
CollectiveCall all_reduce_call(const CollectiveKey& key, ReduceOp op, ConstElements in,
                               Elements out);
CollectiveCall reduce_scatter_call(const CollectiveKey& key, ReduceOp op, ConstElements in,
                                   Elements out, int rank, int size);
CollectiveCall all_gather_call(const CollectiveKey& key, ConstElements in, Elements out,
                               std::span<const std::int64_t> counts, int rank, int size);
CollectiveCall broadcast_call(const CollectiveKey& key, int root, Elements data, int size);
CollectiveCall barrier_call(const CollectiveKey& key);

}  // namespace lockstep
