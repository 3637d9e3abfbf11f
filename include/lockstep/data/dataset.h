// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/any_dataset.h>

#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace lockstep::data {

// One walk through a Dataset<T>. Movable; used by one thread at a time. See AnyIterator for
// contracts.
template <class T>
class Iterator {
 public:
  Iterator(AnyIterator erased, T prototype)
      : erased_(std::move(erased)), prototype_(std::move(prototype)) {}

  std::optional<T> next() {
    auto leaves = erased_.next();
    if (!leaves) return std::nullopt;
    return with_leaves(prototype_, std::span<const Tensor>(*leaves));
  }
  std::int64_t skip(std::int64_t count) { return erased_.skip(count); }
  std::int64_t epoch() const { return erased_.epoch(); }
  std::int64_t position() const { return erased_.position(); }
  void visit_state(StateVisitor& visitor) { erased_.visit_state(visitor); }

 private:
  AnyIterator erased_;
  T prototype_;
};

// A sequence of elements of type T (a nest: an aggregate of tensors, a tuple, a Tensor, ...), made
// by a source and a chain of transformations with tf.data's names. A Dataset is an immutable value,
// cheap to copy; each transformation returns a new one. Nothing is read before iteration.
//
//   const auto train = digits<Example>("train").shuffle({.seed = 7}).batch(128).prefetch(2);
//   for (const Example& batch : train) ...
//
// Each iteration is one epoch. The elements and their order depend only on the chain, its seeds and
// the number of the epoch, never on time, threads or an earlier run, so a program that runs again
// sees the same. Copies of a dataset count their epochs together. Thread-safe; see Iterator for
// walks.
//
// All transformations throw InvalidArgument at the caller's line for arguments out of range.
template <class T>
class Dataset {
  static_assert(Nest<T>, "Dataset<T>: T must be a nest of tensors (see lockstep/tensor/nest.h)");

 public:
  using value_type = T;
  class Cursor;

  // `prototype` shows how leaves make a T; only where T holds vectors, maps or optionals does its
  // value matter.
  explicit Dataset(const AnyDataset& erased, T prototype = {})
      : erased_(erased), prototype_(std::move(prototype)) {}

  // Each element x as f(x), another nest, in the same order. f must be a pure function: it is
  // called only for elements that are delivered, in whatever thread wants them, by several at once.
  template <class F>
  auto map(F f, SourceLocation at = SourceLocation::current()) const {
    static_assert(std::is_invocable_v<const F&, const T&>,
                  "Dataset::map: the function must take a const T& and be callable as const");
    using U = std::remove_cvref_t<std::invoke_result_t<const F&, const T&>>;
    static_assert(
        FixedNest<U>,
        "Dataset::map: the function must return a nest without vectors, maps or optionals");
    return Dataset<U>(erased_.map(
        [f = std::move(f), prototype = prototype_](const Leaves& leaves) {
          return flatten(f(with_leaves(prototype, std::span<const Tensor>(leaves))));
        },
        at));
  }

  // The elements in random order: a buffer of `buffer_size` elements is kept full, and each element
  // is drawn from it at random. The order depends on the seed and the epoch alone. Shuffling all of
  // an infinite dataset is InvalidArgument.
  Dataset shuffle(ShuffleOptions options = {},
                  SourceLocation at = SourceLocation::current()) const {
    return with(erased_.shuffle(options, at));
  }

  // `size` >= 1 consecutive elements as one, stacked along a new first axis; the last batch may be
  // short. Elements of a batch that differ in shape or dtype are InvalidArgument when it is read.
  Dataset batch(std::int64_t size, BatchOptions options = {},
                SourceLocation at = SourceLocation::current()) const {
    static_assert(TensorNest<T>,
                  "Dataset::batch: a number cannot hold a batch; make it a Tensor in T");
    return with(erased_.batch(size, options, at));
  }

  // The dataset `count` times over, each time the next epoch of what stands before; without a
  // count, without end (unless it is empty).
  Dataset repeat(std::int64_t count = kInfinite,
                 SourceLocation at = SourceLocation::current()) const {
    return with(erased_.repeat(count, at));
  }

  // The first `count` elements; all but the first `count` elements.
  Dataset take(std::int64_t count, SourceLocation at = SourceLocation::current()) const {
    return with(erased_.take(count, at));
  }
  Dataset skip(std::int64_t count, SourceLocation at = SourceLocation::current()) const {
    return with(erased_.skip(count, at));
  }

  // Elements index, index + num_shards, ...; all shards together are the dataset.
  Dataset shard(std::int64_t num_shards, std::int64_t index,
                SourceLocation at = SourceLocation::current()) const {
    return with(erased_.shard(num_shards, index, at));
  }

  // Reads up to `depth` elements ahead in a thread of each iterator; 0 does nothing. An error of
  // what stands before comes out of next() after the elements read before it.
  Dataset prefetch(std::int64_t depth, SourceLocation at = SourceLocation::current()) const {
    return with(erased_.prefetch(depth, at));
  }

  // The number of elements of an epoch, kInfinite, or kUnknown (a generator is not counted).
  std::int64_t cardinality() const { return erased_.cardinality(); }
  std::string describe() const { return erased_.describe(); }

  // A walk through the next epoch; begin() for range-for, which yields const T&.
  Iterator<T> iterator() const { return Iterator<T>(erased_.iterator(), prototype_); }
  Cursor begin() const { return Cursor(iterator()); }
  std::default_sentinel_t end() const { return {}; }

  // Visits epoch and position of the iteration begun last, so that loops resume: after a restore
  // the next iteration starts where the saved one stood.
  void visit_state(StateVisitor& visitor) const { erased_.visit_state(visitor); }

  const AnyDataset& erased() const { return erased_; }
  const T& prototype() const { return prototype_; }

 private:
  Dataset with(AnyDataset erased) const { return Dataset(std::move(erased), prototype_); }

  AnyDataset erased_;
  T prototype_;
};

// The iterator of range-for: an input iterator whose element lives until it advances.
template <class T>
class Dataset<T>::Cursor {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  explicit Cursor(Iterator<T> walk) : walk_(std::move(walk)), element_(walk_.next()) {}

  const T& operator*() const { return *element_; }
  const T* operator->() const { return &*element_; }
  Cursor& operator++() {
    element_.reset();
    element_ = walk_.next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Cursor& cursor, std::default_sentinel_t) { return !cursor.element_; }

 private:
  Iterator<T> walk_;
  std::optional<T> element_;
};

}  // namespace lockstep::data
