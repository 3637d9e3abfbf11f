// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/data/any_dataset.h>
#include <lockstep/distribute/extension.h>
#include <lockstep/replica/per_replica.h>
#include <lockstep/tensor/nest.h>

#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep {

namespace detail {

// What a process's dataset holds: global batches, of which it deals its replicas their rows, or batches
// that are its replicas' in turn.
enum class Dealing { rows_of_global_batches, batches_of_replicas };

// One step's batch: the leaves of each local replica, and the row counts.
struct DealtBatch {
  std::vector<std::vector<Tensor>> leaves;
  BatchRows rows;
};

// A distributed dataset as all workers know it: the how manieth of its strategy, made where.
struct DatasetName {
  int number = 0;
  SourceLocation at;
};

// DistributedIterator and DistributedDataset without the element type.
class LOCKSTEP_EXPORT AnyDistributedIterator {
 public:
  AnyDistributedIterator(std::shared_ptr<StrategyInterface> strategy, DatasetName name,
                         Dealing dealing, data::AnyIterator batches,
                         const std::optional<data::ElementSpec>& spec);
  std::optional<DealtBatch> next();
  void visit_state(StateVisitor& visitor) { batches_.visit_state(visitor); }

 private:
  // This worker's part of a step.
  struct OwnBatches {
    std::vector<data::Leaves> of_replicas;
    std::int64_t global_rows = 0;  // of the batch that they are dealt from, if they are
  };
  std::optional<OwnBatches> take();
  std::optional<OwnBatches> take_rows();
  std::optional<OwnBatches> take_batches();
  std::optional<OwnBatches> next_of_worker(std::optional<std::int64_t>& rows);
  void check_batch_size(const std::string& call, const std::vector<std::int64_t>& global_rows);
  void place(DealtBatch& batch);

  std::shared_ptr<StrategyInterface> strategy_;
  DatasetName name_;
  Dealing dealing_;
  data::AnyIterator batches_;
  std::int64_t steps_ = 0;
  std::vector<bool> shorter_;            // whose last global batch was smaller than another's
  std::optional<data::Leaves> no_rows_;  // what a step gets once this worker's data has ended
  std::int64_t padded_rows_ = 0;         // of each replica, where the strategy pads
};

class LOCKSTEP_EXPORT AnyDistributedDataset {
 public:
  AnyDistributedDataset(std::shared_ptr<StrategyInterface> strategy, Dealing dealing,
                        const data::AnyDataset& dataset, SourceLocation at);
  AnyDistributedDataset(const AnyDistributedDataset&) = default;  // a move is a copy
  AnyDistributedDataset& operator=(const AnyDistributedDataset&) = default;
  AnyDistributedIterator iterator() const {
    return {strategy_, name_, dealing_, dealt_.iterator(), dealt_.element_spec()};
  }
  std::int64_t cardinality() const;
  std::string describe() const;
  void visit_state(StateVisitor& visitor) const { dealt_.visit_state(visitor); }

 private:
  std::shared_ptr<StrategyInterface> strategy_;
  DatasetName name_;
  Dealing dealing_;
  data::AnyDataset dealt_;
};

}  // namespace detail

// The steps of one epoch: what a DistributedDataset's loop goes through.
template <class T>
class DistributedIterator {
 public:
  DistributedIterator(detail::AnyDistributedIterator erased, T prototype)
      : erased_(std::move(erased)), prototype_(std::move(prototype)) {}

  // The next step's batch, or nothing once all workers' data has ended: every worker and replica
  // takes the same number of steps, those without rows get batches of zero rows. Throws
  // FailedPrecondition in a step function, what the dataset throws, and PeerError on all workers but
  // the one whose dataset has thrown or who takes a batch of another dataset.
  std::optional<PerReplica<T>> next() {
    std::optional<detail::DealtBatch> batch = erased_.next();
    if (!batch) return std::nullopt;
    std::vector<T> values;
    values.reserve(batch->leaves.size());
    for (const auto& leaves : batch->leaves)
      values.push_back(with_leaves(prototype_, std::span<const Tensor>(leaves)));
    return PerReplica<T>(std::move(values), ReplicaKind::per_replica, std::move(batch->rows));
  }
  void visit_state(StateVisitor& visitor) { erased_.visit_state(visitor); }

 private:
  detail::AnyDistributedIterator erased_;
  T prototype_;
};

// Batches that are dealt over the replicas of a strategy. A value; each loop over it is one epoch. See
// Strategy::distribute_dataset and distribute_datasets_from_function for the rules.
template <class T>
class DistributedDataset {
 public:
  using value_type = PerReplica<T>;

  DistributedDataset(const detail::AnyDistributedDataset& erased, T prototype)
      : erased_(erased), prototype_(std::move(prototype)) {}

  DistributedIterator<T> iterator() const { return {erased_.iterator(), prototype_}; }

  class Cursor {
   public:
    using value_type = PerReplica<T>;
    using difference_type = std::ptrdiff_t;
    explicit Cursor(DistributedIterator<T> steps)
        : steps_(std::move(steps)), batch_(steps_.next()) {}
    const PerReplica<T>& operator*() const { return *batch_; }
    const PerReplica<T>* operator->() const { return &*batch_; }
    Cursor& operator++() {
      batch_.reset();
      batch_ = steps_.next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Cursor& cursor, std::default_sentinel_t) { return !cursor.batch_; }

   private:
    DistributedIterator<T> steps_;
    std::optional<PerReplica<T>> batch_;
  };
  Cursor begin() const { return Cursor(iterator()); }
  std::default_sentinel_t end() const { return {}; }

  // Steps of an epoch as this worker's own data have it, of which another worker may have more;
  // data::kInfinite or data::kUnknown.
  std::int64_t cardinality() const { return erased_.cardinality(); }
  // The chain, and which rows this process reads.
  std::string describe() const { return erased_.describe(); }
  // Epoch and position of the loop begun last, so that loops resume.
  void visit_state(StateVisitor& visitor) const { erased_.visit_state(visitor); }

 private:
  detail::AnyDistributedDataset erased_;
  T prototype_;
};

}  // namespace lockstep
