// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/source_location.h>
#include <lockstep/replica/context.h>

#include <cstddef>
#include <vector>

namespace lockstep {

// One T per local replica, for what a step function changes and lockstep does not know of: get() in
// a step gives the replica's own, without locks. Made for a fixed number of local replicas.
template <class T>
class ReplicaLocal {
 public:
  explicit ReplicaLocal(std::size_t num_local_replicas, const T& initial = T())
      : values_(num_local_replicas, Padded{initial}) {}

  // The calling replica's value. Throws FailedPrecondition outside a replica context,
  // InvalidArgument when made for fewer replicas.
  T& get(SourceLocation at = SourceLocation::current()) const {
    const auto index =
        static_cast<std::size_t>(require_replica_context("ReplicaLocal::get", at).local_index());
    require(index < values_.size(), at, "ReplicaLocal::get", "made for ", values_.size(),
            " local replicas, used on local replica ", index);
    return values_[index].value;
  }
  // Any replica's value; between runs.
  T& of(std::size_t local_replica, SourceLocation at = SourceLocation::current()) const {
    require(local_replica < values_.size(), at, "ReplicaLocal::of", "made for ", values_.size(),
            " local replicas, got number ", local_replica);
    return values_[local_replica].value;
  }
  std::size_t size() const { return values_.size(); }

 private:
  struct alignas(64) Padded {
    T value;
  };
  mutable std::vector<Padded> values_;
};

}  // namespace lockstep
