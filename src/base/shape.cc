// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/shape.h>

#include <lockstep/base/check.h>

#include <algorithm>

namespace lockstep {
namespace {

// `axis` counted from the front, checked against [-limit, limit).
int normalized(int axis, int limit, const Shape& shape, const char* op) {
  const int result = axis < 0 ? axis + limit : axis;
  require(result >= 0 && result < limit, SourceLocation{}, op, "axis ", axis,
          " is out of range for shape ", shape);
  return result;
}

// Extents are not negative, and the bytes of that many elements of any dtype can be counted, also
// when an axis is removed.
void require_extents(std::span<const std::int64_t> dims, const char* op) {
  constexpr std::int64_t kMostElements = INT64_MAX / 16;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    require(dim >= 0, SourceLocation{}, op, "extents must not be negative, got ", dim);
    require(dim <= kMostElements / elements, SourceLocation{}, op, "extent ", dim,
            " makes more elements than any memory holds");
    elements *= std::max<std::int64_t>(dim, 1);
  }
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) {
  require(dims.size() <= kMaxRank, SourceLocation{}, "Shape", "rank ", dims.size(),
          " is above the limit of ", kMaxRank);
  require_extents(dims, "Shape");
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::dim(int axis) const {
  return (*this)[normalized(axis, rank_, *this, "Shape::dim")];
}

std::int64_t Shape::num_elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims()) product *= dim;
  return product;
}

Shape Shape::with_dim(int axis, std::int64_t extent) const {
  Shape result = *this;
  result.dims_[static_cast<std::size_t>(normalized(axis, rank_, *this, "Shape::with_dim"))] =
      extent;
  require_extents(result.dims(), "Shape::with_dim");
  return result;
}

Shape Shape::without_axis(int axis) const {
  const int cut = normalized(axis, rank_, *this, "Shape::without_axis");
  Shape result;
  for (int i = 0; i < rank_; ++i)
    if (i != cut) result.dims_[static_cast<std::size_t>(result.rank_++)] = (*this)[i];
  return result;
}

Shape Shape::with_axis(int axis, std::int64_t extent) const {
  require(rank_ < kMaxRank, SourceLocation{}, "Shape::with_axis", "rank is at the limit of ",
          kMaxRank);
  const int place = normalized(axis, rank_ + 1, *this, "Shape::with_axis");
  Shape result;
  for (int i = 0; i <= rank_; ++i)
    result.dims_[static_cast<std::size_t>(i)] =
        i == place ? extent : (*this)[i < place ? i : i - 1];
  result.rank_ = rank_ + 1;
  require_extents(result.dims(), "Shape::with_axis");
  return result;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string((*this)[i]);
  return text + "]";
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op, SourceLocation at) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t da = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t db = i <= b.rank() ? b[b.rank() - i] : 1;
    require(da == db || da == 1 || db == 1, at, op, "shapes ", a, " and ", b,
            " do not broadcast: extents ", da, " and ", db, " must be equal or one of them 1");
    dims[static_cast<std::size_t>(rank - i)] = da == 1 ? db : da;
  }
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
}

}  // namespace lockstep
