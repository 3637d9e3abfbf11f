// SPDX-License-Identifier: Apache-2.0
#include "comm/call.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

std::string print_key(Channel channel, std::int64_t sequence, const std::string& quoted_name) {
  std::string text(name_of(channel));
  text += '/' + std::to_string(sequence);
  if (!quoted_name.empty()) text += ' ' + quoted_name;
  return text;
}

std::string print_range(DType dtype, std::int64_t count) {
  return std::string(name_of(dtype)) + '[' + std::to_string(count) + ']';
}

CollectiveCall make_call(CollectiveKind kind, const CollectiveKey& key) {
  CollectiveCall call;
  call.kind = kind;
  call.channel = key.channel;
  call.sequence = key.sequence;
  call.name = CallName(key.name);
  call.at = key.at;
  return call;
}

template <class... Parts>
void check(bool ok, const CollectiveCall& call, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw InvalidArgument(message(api_name(call.kind), call.key(), ": ", parts...), call.at);
}

void check_range(const CollectiveCall& call, const char* which, ConstElements range) {
  check(range.count >= 0, call, "expected a count of at least 0 for ", which, ", got ",
        range.count);
  check(range.data != nullptr || range.count == 0, call, "expected memory for the ", range.count,
        " elements of ", which, ", got a null pointer");
}

void check_ranges(const CollectiveCall& call, ConstElements in, ConstElements out) {
  check_range(call, "in", in);
  check_range(call, "out", out);
  check(in.dtype == out.dtype, call, "expected one dtype for in and out, got ", name_of(in.dtype),
        " and ", name_of(out.dtype));
}

void check_op(const CollectiveCall& call) {
  check(call.dtype != DType::boolean, call, "expected a numeric dtype to ", name_of(call.op),
        ", got bool; cast it to i32 first");
  check(call.op == ReduceOp::sum || is_floating(call.dtype), call,
        "expected a floating dtype for mean, got ", name_of(call.dtype),
        ", whose mean is not an integer; sum it and divide, or cast it first");
}

// The two ranges are the same or have no byte in common; `place` is where they may coincide.
void check_overlap(const CollectiveCall& call, ConstElements small, ConstElements large,
                   std::int64_t place) {
  if (small.count == 0 || large.count == 0) return;
  const auto element = size_of(small.dtype);
  const auto* s = static_cast<const std::byte*>(small.data);
  const auto* l = static_cast<const std::byte*>(large.data);
  const auto* allowed = l + static_cast<std::size_t>(place) * element;
  const bool apart = s + static_cast<std::size_t>(small.count) * element <= l ||
                     l + static_cast<std::size_t>(large.count) * element <= s;
  check(apart || s == allowed, call,
        "in and out overlap; expected separate ranges, or the same one for a call in place");
}

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                        "barrier"};
  return names[static_cast<std::size_t>(kind)];
}

void throw_into(const CollectiveCall& call, const std::exception_ptr& reason) {
  try {
    std::rethrow_exception(reason);
  } catch (const Error& error) {
    ErrorContext context = error.context();
    if (context.collective.empty()) {
      context.collective = call.key();
      error.rethrow_with(std::move(context));
    }
    throw;
  }
}

std::string api_name(CollectiveKind kind) { return "Communicator::" + std::string(name_of(kind)); }

std::string CollectiveKey::to_string() const {
  return print_key(channel, sequence, CallName(name).to_string());
}

CallName::CallName(std::string_view name) : length_(static_cast<std::uint32_t>(name.size())) {
  if (name.size() <= text_.size()) {
    std::copy_n(name.data(), name.size(), text_.data());
    return;
  }
  std::copy_n(name.data(), kHead, text_.data());
  const std::size_t tail = text_.size() - kHead;
  std::copy_n(name.data() + name.size() - tail, tail, text_.data() + kHead);
  hash_ = 2166136261u;  // FNV-1a
  for (const char c : name) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 16777619u;
}

std::string CallName::to_string() const {
  if (length_ == 0) return {};
  const std::string_view text(text_.data(), std::min<std::size_t>(length_, text_.size()));
  if (length_ <= text_.size()) return '"' + std::string(text) + '"';
  return '"' + std::string(text.substr(0, kHead)) + "..." + std::string(text.substr(kHead)) + '"';
}

std::string CollectiveCall::key() const { return print_key(channel, sequence, name.to_string()); }

std::string print_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

std::string print_call(const CollectiveCall& call, std::span<const std::int64_t> counts) {
  std::string text = call.to_string();
  for (std::size_t i = 0; call.uneven && i < counts.size(); ++i)
    text += (i ? ", " : " with counts ") + std::to_string(counts[i]);
  return text;
}

bool CollectiveCall::agrees_with(const CollectiveCall& other) const {
  const auto compared = [](const CollectiveCall& c) {
    return std::tie(c.kind, c.channel, c.op, c.dtype, c.uneven, c.root, c.sequence, c.count,
                    c.name);
  };
  return compared(*this) == compared(other);
}

std::string CollectiveCall::to_string() const {
  std::string text(name_of(kind));
  if (kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter)
    text += ' ' + std::string(name_of(op));
  if (kind == CollectiveKind::broadcast) text += " from rank " + std::to_string(root);
  if (kind != CollectiveKind::barrier) text += ' ' + print_range(dtype, count);
  if (uneven) text += " in all";
  return text + ' ' + key();
}

CollectiveCall all_reduce_call(const CollectiveKey& key, ReduceOp op, ConstElements in,
                               Elements out) {
  CollectiveCall call = make_call(CollectiveKind::all_reduce, key);
  call.op = op;
  call.dtype = in.dtype;
  call.count = in.count;
  check_ranges(call, in, out);
  check_op(call);
  check(in.count == out.count, call, "expected one count for in and out, got ", in.count, " and ",
        out.count);
  check_overlap(call, in, out, 0);
  return call;
}

CollectiveCall reduce_scatter_call(const CollectiveKey& key, ReduceOp op, ConstElements in,
                                   Elements out, int rank, int size) {
  CollectiveCall call = make_call(CollectiveKind::reduce_scatter, key);
  call.op = op;
  call.dtype = in.dtype;
  call.count = in.count;
  check_ranges(call, in, out);
  check_op(call);
  check(in.count == size * out.count, call, "expected in to hold ", size,
        " parts (one per rank) of ", out.count, " elements, as many as out, got ", in.count,
        " elements");
  check_overlap(call, out, in, rank * out.count);
  return call;
}

CollectiveCall all_gather_call(const CollectiveKey& key, ConstElements in, Elements out,
                               std::span<const std::int64_t> counts, int rank, int size) {
  CollectiveCall call = make_call(CollectiveKind::all_gather, key);
  call.dtype = in.dtype;
  call.count = in.count;
  check_ranges(call, in, out);
  std::int64_t total = size * in.count, place = rank * in.count;
  if (!counts.empty()) {
    check(static_cast<int>(counts.size()) == size, call, "expected one count for each of ", size,
          " ranks, got ", counts.size(), " counts");
    check(std::ranges::all_of(counts, [](auto count) { return count >= 0; }), call,
          "expected counts of at least 0, got a negative one");
    const auto own = counts.begin() + rank;
    check(in.count == *own, call, "expected ", *own, " elements in, as counts[", rank,
          "] says, got ", in.count);
    place = std::accumulate(counts.begin(), own, std::int64_t{0});
    total = std::accumulate(own, counts.end(), place);
    call.uneven = std::ranges::any_of(counts, [&](auto count) { return count != counts[0]; });
    if (call.uneven) call.count = total;
  }
  check(out.count == total, call, "expected room for ", total, " elements in out, got ", out.count);
  check_overlap(call, in, out, place);
  return call;
}

CollectiveCall broadcast_call(const CollectiveKey& key, int root, Elements data, int size) {
  CollectiveCall call = make_call(CollectiveKind::broadcast, key);
  call.dtype = data.dtype;
  call.count = data.count;
  call.root = root;
  check_range(call, "data", data);
  check(root >= 0 && root < size, call, "expected a root from 0 to ", size - 1, ", got ", root);
  return call;
}

CollectiveCall barrier_call(const CollectiveKey& key) {
  return make_call(CollectiveKind::barrier, key);
}

}  // namespace lockstep
