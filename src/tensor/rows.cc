// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/rows.h>

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

void require_rows(const Tensor& x, const char* op) {
  require(x.defined() && x.rank() >= 1, SourceLocation{}, op,
          "expected a tensor with rows (rank >= 1), got ", x, "; batch the dataset first");
  require(x.device().is_host(), SourceLocation{}, op, "expected a tensor on the host, got ", x,
          " on ", x.device(), "; copy it by copy_to(x, Device{})");
}

std::size_t row_bytes(const Tensor& x) {
  return static_cast<std::size_t>(x.shape().without_axis(0).num_elements()) * size_of(x.dtype());
}

Tensor on_host(const Tensor& like, const Shape& shape) {
  return Tensor(
      Buffer::allocate(current_host_device(),
                       static_cast<std::size_t>(shape.num_elements()) * size_of(like.dtype())),
      like.dtype(), shape);
}

std::byte* writable(const Tensor& fresh) { return static_cast<std::byte*>(fresh.buffer().data()); }

void copy(std::byte* to, const void* from, std::size_t bytes) {
  if (bytes) std::memcpy(to, from, bytes);
}

void require_alike(std::span<const Tensor> parts, const char* op, bool whole_shape) {
  require(!parts.empty(), SourceLocation{}, op, "expected at least one tensor");
  const auto row_shape = [&](const Tensor& x) {
    if (!whole_shape) require_rows(x, op);
    return whole_shape ? x.shape() : x.shape().without_axis(0);
  };
  const DType dtype = parts[0].dtype();
  const Shape expected = row_shape(parts[0]);
  for (const Tensor& part : parts) {
    const Shape got = row_shape(part);
    require(part.dtype() == dtype && got == expected, SourceLocation{}, op, "expected rows of ",
            name_of(dtype), expected, ", got ", name_of(part.dtype()), got);
  }
}

}  // namespace

RowRange rows_of_part(std::int64_t rows, int parts, int part) {
  const std::int64_t each = (rows + parts - 1) / parts;
  const std::int64_t begin = std::min(rows, each * part);
  return {begin, std::min(rows, begin + each)};
}

Tensor slice_rows(const Tensor& x, RowRange range) {
  require_rows(x, "slice_rows");
  require(0 <= range.begin && range.begin <= range.end && range.end <= x.dim(0), SourceLocation{},
          "slice_rows", "rows [", range.begin, ", ", range.end, ") are outside ", x.shape());
  const std::size_t bytes = row_bytes(x);
  return Tensor(x.buffer().slice(static_cast<std::size_t>(range.begin) * bytes,
                                 static_cast<std::size_t>(range.size()) * bytes),
                x.dtype(), x.shape().with_dim(0, range.size()));
}

Tensor gather_rows(const Tensor& x, std::span<const std::int64_t> indices) {
  require_rows(x, "gather_rows");
  const std::size_t bytes = row_bytes(x);
  Tensor result = on_host(x, x.shape().with_dim(0, static_cast<std::int64_t>(indices.size())));
  const auto* const from = static_cast<const std::byte*>(x.raw_data());
  const std::int64_t rows = x.dim(0);
  std::byte* to = writable(result);
  for (const std::int64_t index : indices) {
    require(0 <= index && index < rows, SourceLocation{}, "gather_rows", "row ", index,
            " is outside ", x.shape());
    copy(to, from + static_cast<std::size_t>(index) * bytes, bytes);
    to += bytes;
  }
  return result;
}

Tensor concat_rows(std::span<const Tensor> parts) {
  require_alike(parts, "concat_rows", false);
  std::int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.dim(0);
  Tensor result = on_host(parts[0], parts[0].shape().with_dim(0, rows));
  std::byte* to = writable(result);
  for (const Tensor& part : parts) {
    copy(to, part.raw_data(), part.bytes());
    to += part.bytes();
  }
  return result;
}

Tensor stack_rows(std::span<const Tensor> rows) {
  require_alike(rows, "stack_rows", true);
  Tensor result =
      on_host(rows[0], rows[0].shape().with_axis(0, static_cast<std::int64_t>(rows.size())));
  std::byte* to = writable(result);
  for (const Tensor& row : rows) {
    copy(to, row.raw_data(), row.bytes());
    to += row.bytes();
  }
  return result;
}

std::int64_t common_rows(std::span<const Tensor> leaves, const char* op) {
  require(!leaves.empty(), SourceLocation{}, op, "expected a batch with at least one tensor");
  for (const Tensor& leaf : leaves) {
    require_rows(leaf, op);
    require(leaf.dim(0) == leaves[0].dim(0), SourceLocation{}, op,
            "the tensors of a batch must have equally many rows, got ", leaves[0].shape(), " and ",
            leaf.shape());
  }
  return leaves[0].dim(0);
}

}  // namespace lockstep
