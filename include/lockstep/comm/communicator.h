// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/base/export.h>
#include <lockstep/base/reduce_op.h>
#include <lockstep/comm/collective_key.h>
#include <lockstep/comm/pending.h>
#include <lockstep/device/stream.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <type_traits>

namespace lockstep {

// A contiguous range of elements, not owned. Data may be null when count is 0.
struct ConstElements {
  const void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
};
struct Elements {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;

  operator ConstElements() const { return {data, count, dtype}; }
};

// The elements of a span, for calls written by hand.
template <class T>
  requires Element<std::remove_const_t<T>>
auto elements(std::span<T> range) {
  using Range = std::conditional_t<std::is_const_v<T>, ConstElements, Elements>;
  return Range{range.data(), static_cast<std::int64_t>(range.size()),
               dtype_of<std::remove_const_t<T>>};
}

// One rank's end of a group of ranks that run collectives together. Every rank of the group makes
// the same calls, each with the same key, op, dtype and count; calls of one rank may be made in any
// order and from any of its threads, and meet those of other ranks by key (collective_key.h).
//
// Calls return at once with a handle (pending.h); work happens in this and later calls of the ranks
// and while they wait. An epoch is the time from the group's start to the first failure: a failure
// ends it for all ranks with one reason, which every collective that not all ranks have entered,
// and every later call, throws. Collectives that all ranks have entered complete. So a collective
// completes on all ranks or fails on all ranks. How a new epoch begins is the implementation's
// business.
//
// Ranges of one call: an output may be exactly an input of the same rank, or not overlap it at all;
// outputs of different ranks may be one range, which is then written once, or not overlap.
//
// Every call throws, beside the reason above: InvalidArgument for a count, dtype, range or root
// that does not fit, which concerns this rank only; PeerError when this call shows that the ranks
// disagree (the text shows both calls), or that a rank's step is over and it will never come.
class LOCKSTEP_EXPORT Communicator {
 public:
  virtual ~Communicator() = default;

  // out[i] = the sum over ranks of in[i], or their mean (floating dtypes only), equal bits on all
  // ranks. Sums follow the canonical tree over ranks where the implementation promises it
  // (describe()). Integers wrap around; bool is InvalidArgument.
  virtual Pending all_reduce(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                             const Stream& stream = {}) = 0;

  // As all_reduce, but rank r gets only its part: out[i] is the sum of in[r * out.count + i].
  // in.count is size() * out.count. In place: out is this rank's part of in.
  virtual Pending reduce_scatter(const CollectiveKey& key, ReduceOp op, ConstElements in,
                                 Elements out, const Stream& stream = {}) = 0;

  // out = the inputs of all ranks, one after the other. Without `counts` all ranks give in.count;
  // with it rank r gives counts[r], and every rank passes the same counts. out.count is their
  // total. In place: in is this rank's place in out.
  virtual Pending all_gather(const CollectiveKey& key, ConstElements in, Elements out,
                             std::span<const std::int64_t> counts = {},
                             const Stream& stream = {}) = 0;

  // data on every rank = data of rank `root`.
  virtual Pending broadcast(const CollectiveKey& key, int root, Elements data,
                            const Stream& stream = {}) = 0;

  // Completes when every rank has come.
  virtual Pending barrier(const CollectiveKey& key) = 0;

  // Ends the epoch with `reason`, on all ranks; without effect if it has ended already. Any thread.
  virtual void abort(std::exception_ptr reason) noexcept = 0;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  // One line for logs: implementation, rank, size, order of summation.
  virtual std::string describe() const = 0;
};

}  // namespace lockstep
