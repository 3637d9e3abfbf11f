// SPDX-License-Identifier: Apache-2.0
#include "data/node.h"

namespace lockstep::data {
namespace {

void require_alike(const std::vector<Leaves>& elements, SourceLocation at) {
  const Leaves& first = elements[0];
  for (const Leaves& element : elements)
    for (std::size_t i = 0; i < first.size(); ++i)
      require(element[i].dtype() == first[i].dtype() && element[i].shape() == first[i].shape(), at,
              "Dataset::batch", "the elements of a batch must be alike, but tensor ", i, " is ",
              name_of(first[i].dtype()), first[i].shape(), " in one and ",
              name_of(element[i].dtype()), element[i].shape(),
              " in another; map them to one shape first");
}

// Elements as the rows of one.
Leaves stack(const std::vector<Leaves>& elements, SourceLocation at) {
  require_alike(elements, at);
  Leaves batch;
  std::vector<Tensor> rows(elements.size());
  for (std::size_t leaf = 0; leaf < elements[0].size(); ++leaf) {
    for (std::size_t i = 0; i < elements.size(); ++i) rows[i] = elements[i][leaf];
    batch.push_back(stack_rows(rows));
  }
  return batch;
}

RowRange part_of(const RowPart& part, std::int64_t rows) {
  const RowRange range = part(rows);
  ensure(0 <= range.begin && range.begin <= range.end && range.end <= rows, "AnyDataset::deal",
         "rows [", range.begin, ", ", range.end, ") of ", rows);
  return range;
}

struct BatchPlan {
  std::int64_t size = 1;
  bool drop_remainder = false;
  RowPart part;  // empty: all rows
  SourceLocation at;

  RowRange wanted(std::int64_t rows) const {
    return part ? part_of(part, rows) : RowRange{0, rows};
  }
};

// Collects the numbers of rows, then reads those that are wanted in one pass.
class RowBatchWalk final : public IteratorNode {
 public:
  RowBatchWalk(std::unique_ptr<IteratorNode> input, const RowSource& source, const BatchPlan& plan)
      : input_(std::move(input)), source_(source), plan_(plan) {}

  bool next(Item& item) override {
    rows_.clear();
    Item read;
    while (std::ssize(rows_) < plan_.size && input_->next(read)) rows_.push_back(read.row);
    const std::int64_t rows = std::ssize(rows_);
    if (rows == 0 || (plan_.drop_remainder && rows < plan_.size)) return false;
    const RowRange wanted = plan_.wanted(rows);
    item.leaves = source_.read_rows(std::span(rows_).subspan(
        static_cast<std::size_t>(wanted.begin), static_cast<std::size_t>(wanted.size())));
    if (plan_.part) item.leaves = with_row_count(std::move(item.leaves), rows);
    return true;
  }
  std::int64_t skip(std::int64_t count) override { return skip_batches(*input_, plan_, count); }

  static std::int64_t skip_batches(IteratorNode& input, const BatchPlan& plan, std::int64_t count) {
    const std::int64_t elements = input.skip(saturating_product(count, plan.size));
    const bool short_batch = elements % plan.size != 0 && !plan.drop_remainder;
    return elements / plan.size + (short_batch ? 1 : 0);
  }

 private:
  const std::unique_ptr<IteratorNode> input_;
  const RowSource& source_;
  const BatchPlan& plan_;
  std::vector<std::int64_t> rows_;
};

// Collects items, then reads and stacks those that are wanted.
class BatchWalk final : public IteratorNode {
 public:
  BatchWalk(std::unique_ptr<IteratorNode> input, const DatasetNode& source, const BatchPlan& plan,
            std::stop_token stop)
      : input_(std::move(input)), source_(source), plan_(plan), stop_(std::move(stop)) {}

  bool next(Item& item) override {
    std::vector<Item> items;
    Item read;
    while (std::ssize(items) < plan_.size && input_->next(read)) items.push_back(std::move(read));
    const std::int64_t rows = std::ssize(items);
    if (rows == 0 || (plan_.drop_remainder && rows < plan_.size)) return false;
    item.leaves = read_and_stack(items, plan_.wanted(rows));
    if (plan_.part) item.leaves = with_row_count(std::move(item.leaves), rows);
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    return RowBatchWalk::skip_batches(*input_, plan_, count);
  }

 private:
  Leaves read_and_stack(std::vector<Item>& items, RowRange wanted) const {
    const bool none = wanted.size() == 0;
    if (none) wanted = {0, 1};  // the first shows what a batch of no rows looks like
    std::vector<Leaves> elements;
    for (std::int64_t i = wanted.begin; i < wanted.end; ++i) {
      if (stop_.stop_requested()) throw Cancelled();
      elements.push_back(source_.read(std::move(items[static_cast<std::size_t>(i)])));
    }
    Leaves batch = stack(elements, plan_.at);
    if (none)
      for (Tensor& leaf : batch) leaf = slice_rows(leaf, {0, 0});
    return batch;
  }

  const std::unique_ptr<IteratorNode> input_;
  const DatasetNode& source_;
  const BatchPlan& plan_;
  const std::stop_token stop_;
};

class BatchNode final : public DatasetNode {
 public:
  BatchNode(NodePtr input, BatchPlan plan) : input_(std::move(input)), plan_(std::move(plan)) {}

  std::string describe() const override {
    std::string text = "batch(" + std::to_string(plan_.size);
    if (plan_.drop_remainder) text += ", drop remainder";
    return text + (plan_.part ? ", a part of its rows)" : ")");
  }
  NodePtr input() const override { return input_; }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    if (const RowSource* source = input_->row_source())
      return std::make_unique<RowBatchWalk>(input_->walk(walk), *source, plan_);
    return std::make_unique<BatchWalk>(input_->walk(walk), *input_, plan_, walk.stop);
  }
  std::int64_t cardinality() const override {
    const std::int64_t elements = input_->cardinality();
    if (elements < 0) return elements;
    const bool short_batch = elements % plan_.size != 0 && !plan_.drop_remainder;
    return elements / plan_.size + (short_batch ? 1 : 0);
  }
  std::optional<ElementSpec> spec() const override {
    std::optional<ElementSpec> spec = input_->spec();
    if (!spec) return spec;
    const std::int64_t elements = input_->cardinality();
    const bool all_full = plan_.drop_remainder || elements == kInfinite ||
                          (elements >= 0 && elements % plan_.size == 0);
    for (LeafSpec& leaf : *spec) leaf.dims.insert(leaf.dims.begin(), all_full ? plan_.size : -1);
    return plan_.part ? dealt_spec(std::move(*spec)) : spec;
  }
  std::optional<std::int64_t> batch_size() const override { return plan_.size; }
  NodePtr deal(const RowPart& part) const override {
    BatchPlan plan = plan_;
    plan.part = part;
    return plan_.part ? nullptr : std::make_shared<BatchNode>(input_, std::move(plan));
  }

 private:
  const NodePtr input_;
  const BatchPlan plan_;
};

// Whole batches cut down to a part of their rows.
class PartNode final : public DatasetNode {
 public:
  PartNode(NodePtr input, RowPart part, const char* op, SourceLocation at)
      : input_(std::move(input)), part_(std::move(part)), op_(op), at_(at) {}

  std::string describe() const override { return "a part of the rows"; }
  NodePtr input() const override { return input_; }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override { return input_->walk(walk); }
  Leaves read(Item item) const override {
    Leaves leaves = input_->read(std::move(item));
    const std::int64_t rows = rows_of(leaves);
    const RowRange range = part_of(part_, rows);
    for (Tensor& leaf : leaves) leaf = slice_rows(leaf, range);
    return with_row_count(std::move(leaves), rows);
  }
  std::int64_t cardinality() const override { return input_->cardinality(); }
  std::optional<ElementSpec> spec() const override {
    std::optional<ElementSpec> spec = input_->spec();
    return spec ? dealt_spec(std::move(*spec)) : spec;
  }

 private:
  std::int64_t rows_of(const Leaves& leaves) const {
    require(!leaves.empty(), at_, op_, "expected batches with at least one tensor");
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      require(leaves[i].rank() >= 1, at_, op_, "expected batches, but tensor ", i,
              " of an element is a scalar, ", leaves[i],
              "; call batch(global_batch_size), and keep the rows in a map after it");
      require(leaves[i].dim(0) == leaves[0].dim(0), at_, op_,
              "expected the tensors of a batch to have equally many rows, got ", leaves[0].shape(),
              " and ", leaves[i].shape());
    }
    return leaves[0].dim(0);
  }

  const NodePtr input_;
  const RowPart part_;
  const char* const op_;
  const SourceLocation at_;
};

}  // namespace

NodePtr make_batch(NodePtr input, std::int64_t size, const BatchOptions& options,
                   SourceLocation at) {
  return std::make_shared<BatchNode>(
      std::move(input),
      BatchPlan{.size = size, .drop_remainder = options.drop_remainder, .part = {}, .at = at});
}

NodePtr make_part(NodePtr input, RowPart part, const char* op, SourceLocation at) {
  return std::make_shared<PartNode>(std::move(input), std::move(part), op, at);
}

}  // namespace lockstep::data
