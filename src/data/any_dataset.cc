// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/any_dataset.h>
#include <lockstep/data/from_tensors.h>

#include "data/node.h"

namespace lockstep::data {
namespace {

void require_count(std::int64_t count, std::int64_t least, const char* op, SourceLocation at) {
  require(count >= least, at, op, "expected a number >= ", least, ", got ", count);
}

std::int64_t count_of(std::int64_t begin, std::int64_t end, std::int64_t step, SourceLocation at) {
  if (step > 0 ? begin >= end : begin <= end) return 0;
  const auto unsigned_difference = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
  };
  const std::uint64_t span =
      step > 0 ? unsigned_difference(end, begin) : unsigned_difference(begin, end);
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : unsigned_difference(0, step);
  const std::uint64_t count = (span - 1) / stride + 1;
  require(count <= static_cast<std::uint64_t>(INT64_MAX), at, "data::range", "from ", begin, " to ",
          end, " are more elements than can be counted");
  return static_cast<std::int64_t>(count);
}

}  // namespace

AnyDataset AnyDataset::from_tensor_slices(Leaves tensors, SourceLocation at) {
  constexpr const char* kOp = "from_tensor_slices";
  require(!tensors.empty(), at, kOp, "expected at least one tensor");
  require_host_leaves(tensors, kOp, at);
  for (const Tensor& tensor : tensors) {
    require(tensor.rank() >= 1, at, kOp, "expected tensors with rows (rank >= 1), got a scalar");
    require(tensor.dim(0) == tensors[0].dim(0), at, kOp,
            "expected tensors with equally many rows, got ", tensors[0].shape(), " and ",
            tensor.shape());
  }
  return AnyDataset(make_slices(std::move(tensors)));
}

AnyDataset AnyDataset::from_tensors(Leaves element, SourceLocation at) {
  require_host_leaves(element, "from_tensors", at);
  return AnyDataset(make_single(std::move(element)));
}

AnyDataset AnyDataset::range(std::int64_t begin, std::int64_t end, std::int64_t step,
                             SourceLocation at) {
  require(step != 0, at, "data::range", "expected a step other than 0");
  return AnyDataset(make_range(begin, end, step, count_of(begin, end, step, at)));
}

AnyDataset AnyDataset::from_generator(std::function<LeafGenerator(std::stop_token)> make,
                                      SourceLocation at) {
  return AnyDataset(make_generator(std::move(make), at));
}

Dataset<Tensor> range(std::int64_t end, SourceLocation at) { return range(0, end, 1, at); }
Dataset<Tensor> range(std::int64_t begin, std::int64_t end, std::int64_t step, SourceLocation at) {
  return Dataset<Tensor>(AnyDataset::range(begin, end, step, at));
}

AnyDataset AnyDataset::map(LeafFunction function, SourceLocation at) const {
  return AnyDataset(make_map(node_, std::move(function), at));
}

AnyDataset AnyDataset::shuffle(const ShuffleOptions& options, SourceLocation at) const {
  require_count(options.buffer_size, 0, "Dataset::shuffle", at);
  require(
      options.buffer_size > 0 || cardinality() != kInfinite, at, "Dataset::shuffle",
      "all of an infinite dataset cannot be shuffled; give .buffer_size, or shuffle before repeat");
  return AnyDataset(make_shuffle(node_, options));
}

AnyDataset AnyDataset::batch(std::int64_t size, const BatchOptions& options,
                             SourceLocation at) const {
  require_count(size, 1, "Dataset::batch", at);
  return AnyDataset(make_batch(node_, size, options, at));
}

AnyDataset AnyDataset::repeat(std::int64_t count, SourceLocation at) const {
  if (count != kInfinite) require_count(count, 0, "Dataset::repeat", at);
  return AnyDataset(make_repeat(node_, count));
}

AnyDataset AnyDataset::take(std::int64_t count, SourceLocation at) const {
  require_count(count, 0, "Dataset::take", at);
  return AnyDataset(make_take(node_, count));
}

AnyDataset AnyDataset::skip(std::int64_t count, SourceLocation at) const {
  require_count(count, 0, "Dataset::skip", at);
  return AnyDataset(make_skip(node_, count));
}

AnyDataset AnyDataset::shard(std::int64_t num_shards, std::int64_t index, SourceLocation at) const {
  require_count(num_shards, 1, "Dataset::shard", at);
  require(index >= 0 && index < num_shards, at, "Dataset::shard", "expected an index in [0, ",
          num_shards, "), got ", index);
  return AnyDataset(below_prefetch(
      node_, [&](const NodePtr& node) { return make_shard(node, num_shards, index); }));
}

AnyDataset AnyDataset::prefetch(std::int64_t depth, SourceLocation at) const {
  require_count(depth, 0, "Dataset::prefetch", at);
  return depth == 0 ? *this : AnyDataset(make_prefetch(node_, depth));
}

AnyDataset AnyDataset::deal(RowPart part, const char* op, SourceLocation at) const {
  if (NodePtr dealt = node_->deal(part)) return AnyDataset(std::move(dealt));
  return AnyDataset(
      below_prefetch(node_, [&](const NodePtr& node) { return make_part(node, part, op, at); }));
}

std::int64_t AnyDataset::cardinality() const { return node_->cardinality(); }
std::optional<ElementSpec> AnyDataset::element_spec() const { return node_->spec(); }

std::optional<std::int64_t> AnyDataset::batch_size() const {
  const std::optional<ElementSpec> spec = node_->spec();
  bool known = spec && !spec->empty(), equal = true;
  for (const LeafSpec& leaf : spec.value_or(ElementSpec{})) {
    known = known && !leaf.dims.empty() && leaf.dims[0] >= 0;
    equal = equal && known && leaf.dims[0] == (*spec)[0].dims[0];
  }
  if (!known) return node_->batch_size();
  return equal ? std::optional((*spec)[0].dims[0]) : std::nullopt;
}

void AnyDataset::require_batched(const char* op, SourceLocation at) const {
  const std::optional<ElementSpec> spec = node_->spec();
  if (!spec) return;
  for (std::size_t i = 0; i < spec->size(); ++i)
    require(!(*spec)[i].dims.empty(), at, op, "expected batches, but tensor ", i,
            " of the elements of ", describe(), " is a scalar, ", to_string((*spec)[i]),
            "; call batch(global_batch_size) first");
}

std::string AnyDataset::describe() const {
  std::string text = node_->describe();
  for (NodePtr node = node_->input(); node; node = node->input())
    text.insert(0, node->describe().append(" > "));
  return text;
}

}  // namespace lockstep::data
