// SPDX-License-Identifier: Apache-2.0
#include "ops/indices.h"

#include "ops/around_axis.h"
#include "ops/cuda/kernels.h"
#include "ops/launch.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

template <class I>
void row_numbers_cpu(const char* op, const I* coordinates, std::int64_t count,
                     const std::vector<std::int64_t>& extents, std::int64_t* numbers,
                     SourceLocation at) {
  for (std::int64_t i = 0; i < count; ++i, coordinates += extents.size()) {
    std::int64_t number = 0;
    for (std::size_t c = 0; c < extents.size(); ++c) {
      const std::int64_t index = coordinates[c];
      require(index >= 0 && index < extents[c], at, op, "index ", index, " at place ", i,
              ", coordinate ", c, ", is outside the ", extents[c], " of axis ", c);
      number = number * extents[c] + index;
    }
    numbers[i] = number;
  }
}

template <class I>
void numbers_along_cpu(const char* op, const I* indices, const AroundAxis& taken, std::int64_t size,
                       std::int64_t* numbers, SourceLocation at) {
  require_inside(op, indices, taken.outer * taken.along * taken.inner, size, at);
  for (std::int64_t o = 0; o < taken.outer; ++o)
    for (std::int64_t j = 0; j < taken.along; ++j)
      for (std::int64_t k = 0; k < taken.inner; ++k)
        *numbers++ = (o * size + *indices++) * taken.inner + k;
}

}  // namespace

void require_indices(const char* op, const Tensor& indices, SourceLocation at) {
  require_defined(op, "indices", indices, at);
  require_dtype(indices.dtype() == DType::i32 || indices.dtype() == DType::i64, op, indices,
                "i32 or i64 as indices", at);
}

Shape joined(const char* op, const Shape& front, const Shape& back, int skipped,
             SourceLocation at) {
  std::int64_t dims[2 * Shape::kMaxRank];
  std::size_t rank = 0;
  for (const std::int64_t dim : front.dims()) dims[rank++] = dim;
  for (int axis = skipped; axis < back.rank(); ++axis) dims[rank++] = back[axis];
  return Shape(std::span<const std::int64_t>(dims, rank), at, op);
}

Tensor row_numbers(const char* op, const Tensor& indices, std::span<const std::int64_t> extents,
                   Outside outside, SourceLocation at) {
  const Device device = indices.device();
  if (traced::on(device)) return traced::row_numbers(indices, extents, outside);
  Tensor numbers = make_result(device, DType::i64, indices.shape().without_axis(-1));
  launch(
      op, device, writes(numbers), reads(indices),
      [=, extents = std::vector<std::int64_t>(extents.begin(), extents.end())](
          Tensor& to, const Tensor& coordinates) {
        visit_indices(coordinates, [&](const auto* first, std::int64_t) {
          row_numbers_cpu(op, first, to.num_elements(), extents, write<std::int64_t>(to), at);
        });
      },
      [=](Tensor& to, const Tensor& coordinates) {
        cuda::row_numbers(coordinates.dtype(), coordinates.raw_data(), write<void>(to), extents,
                          to.num_elements(), to.device());
      });
  return numbers;
}

Tensor numbers_along(const char* op, const Tensor& indices, const Shape& shape, int axis,
                     SourceLocation at) {
  const Device device = indices.device();
  if (traced::on(device)) return traced::numbers_along(indices, shape, axis);
  Tensor numbers = make_result(device, DType::i64, indices.shape());
  const AroundAxis taken(indices.shape(), axis);
  const std::int64_t size = shape[axis];
  launch(
      op, device, writes(numbers), reads(indices),
      [=](Tensor& to, const Tensor& chosen) {
        visit_indices(chosen, [&](const auto* first, std::int64_t) {
          numbers_along_cpu(op, first, taken, size, write<std::int64_t>(to), at);
        });
      },
      [=](Tensor& to, const Tensor& chosen) {
        cuda::numbers_along(chosen.dtype(), chosen.raw_data(), write<void>(to), size, taken.along,
                            taken.inner, to.num_elements(), to.device());
      });
  return numbers;
}

}  // namespace lockstep
