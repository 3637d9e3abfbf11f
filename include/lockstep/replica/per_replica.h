// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

// How the components of a PerReplica relate, by TensorFlow's regroup rules.
enum class ReplicaKind {
  per_replica,  // each replica's own value
  uniform,      // every replica returned the same object
  mirrored      // equal by construction: a mirrored variable's value
};

// Rows of a distributed batch: how many each local replica holds, and all replicas of all workers
// together. Zero rows are legal everywhere.
struct BatchRows {
  std::vector<std::int64_t> local;
  std::int64_t global = 0;
  // Rows that every replica's tensors have where the strategy pads them with zeros; 0: just theirs.
  std::int64_t padded = 0;
};

// One value per local replica, in replica order: batches going into Strategy::run, results coming
// out.
template <class T>
class PerReplica {
 public:
  explicit PerReplica(std::vector<T> values, ReplicaKind kind = ReplicaKind::per_replica)
      : values_(std::move(values)), kind_(kind) {}
  PerReplica(std::vector<T> values, ReplicaKind kind, BatchRows rows)
      : values_(std::move(values)), kind_(kind), rows_(std::move(rows)) {}

  std::size_t size() const { return values_.size(); }
  const T& operator[](std::size_t local_replica) const {
    require(local_replica < values_.size(), SourceLocation{}, "PerReplica",
            "expected a local replica below ", values_.size(), ", got ", local_replica);
    return values_[local_replica];
  }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  ReplicaKind kind() const { return kind_; }
  // Present when this is a batch of a distributed dataset.
  const std::optional<BatchRows>& rows() const { return rows_; }

 private:
  std::vector<T> values_;
  ReplicaKind kind_;
  std::optional<BatchRows> rows_;
};

// What a step that returns nothing gives: nothing to look at.
template <>
class PerReplica<void> {};

namespace detail {
// What arrives in a replica of an argument: its own of a PerReplica, any other as it is.
template <class T>
struct Local {
  using type = T;
};
template <class T>
struct Local<PerReplica<T>> {
  using type = T;
};
template <class T>
const T& local_value(const T& value, std::size_t) {
  return value;
}
template <class T>
const T& local_value(const PerReplica<T>& value, std::size_t local_replica) {
  return value[local_replica];
}
struct Nothing {};
template <class T>
using OrNothing = std::conditional_t<std::is_void_v<T>, Nothing, T>;
}  // namespace detail

}  // namespace lockstep
