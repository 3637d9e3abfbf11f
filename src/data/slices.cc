// SPDX-License-Identifier: Apache-2.0
// Sources that hold their elements: rows of tensors, a range of integers, one element.
#include <lockstep/tensor/factory.h>

#include <algorithm>

#include "data/node.h"

namespace lockstep::data {
namespace {

// Rows 0, 1, ... below `count`.
class RowWalk final : public IteratorNode {
 public:
  explicit RowWalk(std::int64_t count) : count_(count) {}
  bool next(Item& item) override {
    if (next_ == count_) return false;
    item.row = next_++;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t done = std::min(count, count_ - next_);
    next_ += done;
    return done;
  }

 private:
  const std::int64_t count_;
  std::int64_t next_ = 0;
};

bool consecutive(std::span<const std::int64_t> rows) {
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i] != rows[i - 1] + 1) return false;
  return !rows.empty();
}

class SlicesNode final : public DatasetNode, public RowSource {
 public:
  explicit SlicesNode(Leaves tensors) : tensors_(std::move(tensors)), rows_(tensors_[0].dim(0)) {}

  std::string describe() const override {
    return "from_tensor_slices(" + std::to_string(rows_) + ")";
  }
  std::unique_ptr<IteratorNode> walk(const Walk&) const override {
    return std::make_unique<RowWalk>(rows_);
  }
  std::int64_t cardinality() const override { return rows_; }
  std::optional<ElementSpec> spec() const override {
    ElementSpec spec = spec_of(tensors_);
    for (LeafSpec& leaf : spec) leaf.dims.erase(leaf.dims.begin());
    return spec;
  }
  const RowSource* row_source() const override { return this; }

  Leaves read(Item item) const override {
    Leaves leaves;
    leaves.reserve(tensors_.size());
    for (const Tensor& tensor : tensors_)
      leaves.push_back(
          slice_rows(tensor, {item.row, item.row + 1}).with_shape(tensor.shape().without_axis(0)));
    return leaves;
  }
  Leaves read_rows(std::span<const std::int64_t> rows) const override {
    const bool view = consecutive(rows);
    Leaves leaves;
    leaves.reserve(tensors_.size() + 1);
    for (const Tensor& tensor : tensors_)
      leaves.push_back(view ? slice_rows(tensor, {rows.front(), rows.back() + 1})
                            : gather_rows(tensor, rows));
    return leaves;
  }

 private:
  const Leaves tensors_;
  const std::int64_t rows_;
};

class RangeNode final : public DatasetNode, public RowSource {
 public:
  RangeNode(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t count)
      : begin_(begin), end_(end), step_(step), count_(count) {}

  std::string describe() const override {
    std::string text = "range(" + std::to_string(begin_) + ", " + std::to_string(end_);
    return text + (step_ == 1 ? ")" : ", " + std::to_string(step_) + ")");
  }
  std::unique_ptr<IteratorNode> walk(const Walk&) const override {
    return std::make_unique<RowWalk>(count_);
  }
  std::int64_t cardinality() const override { return count_; }
  std::optional<ElementSpec> spec() const override { return ElementSpec{{DType::i64, {}}}; }
  const RowSource* row_source() const override { return this; }

  Leaves read(Item item) const override { return {Tensor(value(item.row))}; }
  Leaves read_rows(std::span<const std::int64_t> rows) const override {
    return {make_tensor<std::int64_t>(
        Shape{static_cast<std::int64_t>(rows.size())}, [&](std::span<std::int64_t> values) {
          std::transform(rows.begin(), rows.end(), values.begin(),
                         [this](std::int64_t row) { return value(row); });
        })};
  }

 private:
  std::int64_t value(std::int64_t row) const { return begin_ + row * step_; }

  const std::int64_t begin_, end_, step_, count_;
};

class SingleNode final : public DatasetNode {
 public:
  explicit SingleNode(Leaves element) : element_(std::move(element)) {}

  std::string describe() const override { return "from_tensors"; }
  std::unique_ptr<IteratorNode> walk(const Walk&) const override {
    return std::make_unique<RowWalk>(1);
  }
  Leaves read(Item) const override { return element_; }
  std::int64_t cardinality() const override { return 1; }
  std::optional<ElementSpec> spec() const override { return spec_of(element_); }

 private:
  const Leaves element_;
};

}  // namespace

NodePtr make_slices(Leaves tensors) { return std::make_shared<SlicesNode>(std::move(tensors)); }
NodePtr make_single(Leaves element) { return std::make_shared<SingleNode>(std::move(element)); }
NodePtr make_range(std::int64_t begin, std::int64_t end, std::int64_t step, std::int64_t count) {
  return std::make_shared<RangeNode>(begin, end, step, count);
}

}  // namespace lockstep::data
