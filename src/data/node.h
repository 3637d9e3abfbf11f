// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/any_dataset.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

namespace lockstep::data {

using NodePtr = std::shared_ptr<const DatasetNode>;

// An element on its way: a row of the source that nobody has read yet, or tensors.
struct Item {
  std::int64_t row = -1;
  Leaves leaves;
};

// What a walk is told at its start.
struct Walk {
  std::uint64_t epoch = 0;
  std::stop_token stop;  // requested when nobody waits for the elements any more
};

// Thrown inside a walk whose stop was requested; never reaches a user.
struct Cancelled {};

// A walk through one epoch of a node, which it must not outlive. After its end it stays there.
class IteratorNode {
 public:
  virtual ~IteratorNode() = default;
  virtual bool next(Item& item) = 0;
  // Passes over up to `count` elements; returns how many there were, fewer only at the end.
  virtual std::int64_t skip(std::int64_t count) {
    Item item;
    std::int64_t done = 0;
    while (done < count && next(item)) ++done;
    return done;
  }
};

// A source whose items are row numbers, so that many are read at once.
class RowSource {
 public:
  // The given rows, stacked.
  virtual Leaves read_rows(std::span<const std::int64_t> rows) const = 0;

 protected:
  ~RowSource() = default;
};

// One step of a chain; immutable. The defaults are those of a source.
class DatasetNode {
 public:
  virtual ~DatasetNode() = default;
  virtual std::string describe() const = 0;  // of this step alone
  virtual NodePtr input() const { return nullptr; }

  virtual std::unique_ptr<IteratorNode> walk(const Walk& walk) const = 0;
  // The tensors of an item that this node's walk gave.
  virtual Leaves read(Item item) const { return std::move(item.leaves); }
  // Non-null when this node's items are rows of the source as they are.
  virtual const RowSource* row_source() const { return nullptr; }

  virtual std::int64_t cardinality() const = 0;
  virtual std::optional<ElementSpec> spec() const { return std::nullopt; }
  // As AnyDataset's, by the sizes of batch() alone.
  virtual std::optional<std::int64_t> batch_size() const { return std::nullopt; }
  // The chain with `part` cut out of its batches; null where batch_size() is unknown.
  virtual NodePtr deal(const RowPart& part) const {
    static_cast<void>(part);
    return nullptr;
  }
};

// A step that hands on elements of its input as they are, only others or in another order.
class PassNode : public DatasetNode {
 public:
  explicit PassNode(NodePtr input) : input_(std::move(input)) {}
  // This step on another input.
  virtual NodePtr over(NodePtr input) const = 0;

  NodePtr input() const final { return input_; }
  Leaves read(Item item) const override { return input_->read(std::move(item)); }
  const RowSource* row_source() const override { return input_->row_source(); }
  std::int64_t cardinality() const override { return input_->cardinality(); }
  std::optional<ElementSpec> spec() const final { return input_->spec(); }
  std::optional<std::int64_t> batch_size() const final { return input_->batch_size(); }
  NodePtr deal(const RowPart& part) const final {
    NodePtr dealt = input_->deal(part);
    return dealt ? over(std::move(dealt)) : nullptr;
  }

 protected:
  const NodePtr input_;
};

// Sources.
NodePtr make_slices(Leaves tensors);
NodePtr make_single(Leaves element);
NodePtr make_range(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t count);
NodePtr make_generator(std::function<LeafGenerator(std::stop_token)> make, SourceLocation at);

// Transformations; their arguments have been checked.
NodePtr make_map(NodePtr input, LeafFunction function, SourceLocation at);
NodePtr make_shuffle(NodePtr input, const ShuffleOptions& options);
NodePtr make_batch(NodePtr input, std::int64_t size, const BatchOptions& options,
                   SourceLocation at);
NodePtr make_repeat(NodePtr input, std::int64_t count);
NodePtr make_take(NodePtr input, std::int64_t count);
NodePtr make_skip(NodePtr input, std::int64_t count);
NodePtr make_shard(NodePtr input, std::int64_t num_shards, std::int64_t index);
NodePtr make_prefetch(NodePtr input, std::int64_t depth);
// `part` cut out of the elements themselves; for what DatasetNode::deal cannot do.
NodePtr make_part(NodePtr input, RowPart part, const char* op, SourceLocation at);
// `wrap` applied below the prefetches at the end of a chain, so that they hold only what is wanted.
NodePtr below_prefetch(const NodePtr& node, const std::function<NodePtr(NodePtr)>& wrap);

// The leaves cut down to `mine`, with the number of `rows` as one more.
Leaves with_row_count(Leaves leaves, std::int64_t rows);
// Spec of the same.
ElementSpec dealt_spec(ElementSpec batches);

// InvalidArgument "[op] ..." when a leaf is undefined or not on the host.
void require_host_leaves(const Leaves& leaves, const char* op, SourceLocation at);
// The spec of elements that look like `element`.
ElementSpec spec_of(const Leaves& element);
// a * b for factors >= 0, or the largest integer.
std::int64_t saturating_product(std::int64_t a, std::int64_t b);

}  // namespace lockstep::data
