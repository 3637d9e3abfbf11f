// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/shape.h>

#include <lockstep/base/check.h>

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

using Dims = std::span<const std::int64_t>;

std::string text_of(Dims dims) {
  std::string text = "[";
  for (const std::int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

// `axis` counted from the front, checked against [-limit, limit).
int normalized(int axis, int limit, const Shape& shape, SourceLocation at, const char* op) {
  require(limit > 0, at, op, "axis ", axis, " of a scalar: shape ", shape, " has no axes");
  const int result = axis < 0 ? axis + limit : axis;
  require(result >= 0 && result < limit, at, op, "axis ", axis, " is out of range for shape ",
          shape, "; expected ", -limit, " to ", limit - 1);
  return result;
}

// Extents are not negative, and the bytes of that many elements of any dtype can be counted, also
// when an axis is removed.
void require_extents(Dims dims, SourceLocation at, const char* op) {
  constexpr std::int64_t kMostElements = INT64_MAX / 16;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0) [[unlikely]]
      throw InvalidArgument(message(op, "extents must not be negative, got ", text_of(dims)), at);
    if (dim > kMostElements / elements) [[unlikely]]
      throw InvalidArgument(
          message(op, "shape ", text_of(dims), " has more elements than any memory holds"), at);
    elements *= std::max<std::int64_t>(dim, 1);
  }
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims, SourceLocation at, const char* op) {
  require(dims.size() <= kMaxRank, at, op, "rank ", dims.size(), " is above the limit of ",
          kMaxRank);
  require_extents(dims, at, op);
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::dim(int axis, SourceLocation at) const {
  return (*this)[normalized(axis, rank_, *this, at, "Shape::dim")];
}

std::int64_t Shape::num_elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims()) product *= dim;
  return product;
}

Shape Shape::with_dim(int axis, std::int64_t extent, SourceLocation at, const char* op) const {
  Shape result = *this;
  result.dims_[static_cast<std::size_t>(normalized(axis, rank_, *this, at, op))] = extent;
  require_extents(result.dims(), at, op);
  return result;
}

Shape Shape::without_axis(int axis, SourceLocation at) const {
  const int cut = normalized(axis, rank_, *this, at, "Shape::without_axis");
  Shape result;
  for (int i = 0; i < rank_; ++i)
    if (i != cut) result.dims_[static_cast<std::size_t>(result.rank_++)] = (*this)[i];
  return result;
}

Shape Shape::with_axis(int axis, std::int64_t extent, SourceLocation at, const char* op) const {
  require(rank_ < kMaxRank, at, op, "rank is at the limit of ", kMaxRank);
  const int place = normalized(axis, rank_ + 1, *this, at, op);
  Shape result;
  for (int i = 0; i <= rank_; ++i)
    result.dims_[static_cast<std::size_t>(i)] =
        i == place ? extent : (*this)[i < place ? i : i - 1];
  result.rank_ = rank_ + 1;
  require_extents(result.dims(), at, op);
  return result;
}

std::string Shape::to_string() const { return text_of(dims()); }

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
  return Shape(Dims(dims.data(), static_cast<std::size_t>(rank)), at, op);
}

}  // namespace lockstep
