// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/source_location.h>
#include <lockstep/data/element.h>
#include <lockstep/tensor/rows.h>
#include <lockstep/tensor/state.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace lockstep::data {

class DatasetNode;   // one step of a chain; defined in src/data, as the next two are
class IteratorNode;  // its walk through one epoch
struct Progress;     // which epoch comes next, and how far the current one is

struct ShuffleOptions {
  std::int64_t buffer_size = 0;  // elements among which the next one is drawn; 0: the whole dataset
  std::uint64_t seed = 0;
  bool reshuffle_each_iteration = true;  // false: every epoch in the order of the first
};

struct BatchOptions {
  bool drop_remainder = false;  // leave out a last batch that is not full
};

using LeafFunction = std::function<Leaves(const Leaves&)>;
using LeafGenerator = std::function<std::optional<Leaves>()>;
// Which rows of a batch of so many rows are wanted.
using RowPart = std::function<RowRange(std::int64_t rows)>;

// One walk through a dataset: what Iterator<T> and the strategies are made of. Movable; used by one
// thread at a time.
class LOCKSTEP_EXPORT AnyIterator {
 public:
  AnyIterator(AnyIterator&&) noexcept;
  AnyIterator& operator=(AnyIterator&&) noexcept;
  // Cancels background work and waits for it; a source that does not return within 10 s is left
  // behind in its thread, with an error in the log.
  ~AnyIterator();

  // The next element, or nothing at the end and ever after. Throws what the source or a mapped
  // function throws; from then on each call throws it again.
  std::optional<Leaves> next();
  // Passes over up to `count` elements without reading them; returns how many there were.
  std::int64_t skip(std::int64_t count);

  std::int64_t epoch() const { return epoch_; }
  std::int64_t position() const { return position_; }  // elements given out or skipped so far

  // Visits epoch and position. A visitor that sets others moves the iterator there: it goes on with
  // exactly the elements that the saved one had before it, those that were prefetched included.
  // Throws InvalidArgument when the epoch has no such position.
  void visit_state(StateVisitor& visitor);

 private:
  friend class AnyDataset;
  AnyIterator(std::shared_ptr<const DatasetNode> node, std::shared_ptr<Progress> progress,
              std::uint64_t serial, std::int64_t epoch, std::int64_t position);
  void move_to(std::int64_t epoch, std::int64_t position);

  std::shared_ptr<const DatasetNode> node_;
  std::shared_ptr<Progress> progress_;  // null: an iterator that the dataset does not follow
  std::unique_ptr<IteratorNode> walk_;
  std::exception_ptr error_;
  std::int64_t epoch_ = 0;
  std::int64_t position_ = 0;
  std::uint64_t serial_ = 0;
  bool ended_ = false;
};

// A Dataset without its element type: the chain of sources and transformations, over vectors of
// leaves. Dataset<T> documents the transformations; here stands what strategies need besides. A
// cheap handle to an immutable chain; copies share the count of epochs. Thread-safe.
class LOCKSTEP_EXPORT AnyDataset {
 public:
  explicit AnyDataset(std::shared_ptr<const DatasetNode> node);
  AnyDataset(const AnyDataset&) = default;  // a move is a copy
  AnyDataset& operator=(const AnyDataset&) = default;

  static AnyDataset from_tensor_slices(Leaves tensors, SourceLocation at);
  static AnyDataset from_tensors(Leaves element, SourceLocation at);
  static AnyDataset range(std::int64_t begin, std::int64_t end, std::int64_t step,
                          SourceLocation at);
  static AnyDataset from_generator(std::function<LeafGenerator(std::stop_token)> make,
                                   SourceLocation at);

  AnyDataset map(LeafFunction function, SourceLocation at) const;
  AnyDataset shuffle(const ShuffleOptions& options, SourceLocation at) const;
  AnyDataset batch(std::int64_t size, const BatchOptions& options, SourceLocation at) const;
  AnyDataset repeat(std::int64_t count, SourceLocation at) const;
  AnyDataset take(std::int64_t count, SourceLocation at) const;
  AnyDataset skip(std::int64_t count, SourceLocation at) const;
  AnyDataset shard(std::int64_t num_shards, std::int64_t index, SourceLocation at) const;
  AnyDataset prefetch(std::int64_t depth, SourceLocation at) const;

  std::int64_t cardinality() const;
  // Dtypes and shapes of the leaves; nothing where they depend on a function (map, from_generator).
  std::optional<ElementSpec> element_spec() const;
  // The rows of a full batch: the first dimension of all leaves if their spec fixes it, else the
  // size of the last batch() with only prefetch, repeat, shuffle, shard, skip and take after it.
  // Nothing when unknown (a map after batch) or when leaves differ.
  std::optional<std::int64_t> batch_size() const;
  // Throws InvalidArgument "[op] ... call batch(...)" when the elements are known to have no rows.
  void require_batched(const char* op, SourceLocation at) const;
  // Each batch cut down to the rows that `part` names, with one more leaf at the end: a scalar i64,
  // the rows of the whole batch. The cut is made inside the last batch() where batch_size() can see
  // it, so that other rows are neither read nor mapped; else from whole batches. A part without
  // rows gives tensors of 0 rows. Elements that turn out to have no rows end the walk with
  // InvalidArgument "[op] ...".
  AnyDataset deal(RowPart part, const char* op = "AnyDataset::deal",
                  SourceLocation at = SourceLocation::current()) const;

  // The chain in words: "range(0, 10) > shuffle(seed 7) > batch(4)".
  std::string describe() const;

  // A walk through the next epoch, at the place to which visit_state has moved the dataset, if it
  // has.
  AnyIterator iterator() const;
  // A walk from any place, which leaves the count of epochs alone.
  AnyIterator iterator(std::int64_t epoch, std::int64_t position = 0) const;
  // Visits epoch and position of the walk that iterator() began last, or the start of the next
  // epoch once that walk is at its end.
  void visit_state(StateVisitor& visitor) const;

 private:
  std::shared_ptr<const DatasetNode> node_;
  std::shared_ptr<Progress> progress_;
};

}  // namespace lockstep::data
