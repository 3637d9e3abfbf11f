// SPDX-License-Identifier: Apache-2.0
#include "ops/changed_rows.h"

#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>

#include <cstring>
#include <type_traits>

#include "ops/indices.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

template <class T>
T changed(RowChange change, T x, T by) {
  if constexpr (std::is_integral_v<T>) {
    // Products and quotients wrap around, as those of elementwise ops.
    using Wide = std::uint64_t;
    if (change == RowChange::mul)
      return static_cast<T>(static_cast<Wide>(x) * static_cast<Wide>(by));
    if (change == RowChange::div && by == static_cast<T>(-1))
      return std::is_signed_v<T> ? static_cast<T>(Wide{0} - static_cast<Wide>(x)) : T(x == by);
  }
  switch (change) {
    case RowChange::mul:
      return static_cast<T>(x * by);
    case RowChange::div:
      return static_cast<T>(x / by);
    case RowChange::min:
      return by < x || by != by ? by : x;
    case RowChange::max:
      return by > x || by != by ? by : x;
    default:
      return by;
  }
}

template <class T>
void change_row(RowChange change, T* to, const T* by, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_arithmetic_v<T>)
      to[i] = changed(change, to[i], by[i]);
    else
      to[i] = T(changed(change, static_cast<float>(to[i]), static_cast<float>(by[i])));
  }
}

template <class T>
bool divides_by_zero(RowChange change, const T* by, std::int64_t n) {
  if (change != RowChange::div || !std::is_integral_v<T>) return false;
  for (std::int64_t i = 0; i < n; ++i)
    if (by[i] == T(0.0F)) return true;
  return false;
}

Tensor changed_on_host(const char* op, RowChange change, const Tensor& x,
                       const IndexedSlices& slices, SourceLocation at) {
  const Tensor values = slices.values.to_host(), indices = slices.indices.to_host();
  Tensor y = make_result(Device{}, x.dtype(), x.shape());
  if (y.bytes()) std::memcpy(write<void>(y), x.to_host().raw_data(), y.bytes());
  const std::int64_t row = x.shape().without_axis(0).num_elements();
  visit_indices(indices, [&](const auto* first, std::int64_t count) {
    require_inside(op, first, count, x.dim(0), at);
    visit_dtype(x.dtype(), [&]<class T>(T) {
      require(!divides_by_zero(change, read<T>(values), count * row), at, op,
              "expected divisors other than 0 of ", name_of(x.dtype()), " values, got ", values);
      for (std::int64_t i = 0; i < count; ++i)
        change_row(change, write<T>(y) + first[i] * row, read<T>(values) + i * row, row);
    });
  });
  return y;
}

}  // namespace

Tensor changed_rows(const char* op, RowChange change, const Tensor& x, const IndexedSlices& slices,
                    SourceLocation at) {
  const Tensor &values = slices.values, &indices = slices.indices;
  require_indices(op, indices, at);
  require_defined(op, "values", values, at);
  require(indices.rank() == 1 && x.rank() > 0 && slices.shape == x.shape() &&
              values.shape() == x.shape().with_dim(0, indices.dim(0)) &&
              values.dtype() == x.dtype(),
          at, op, "expected slices of ", name_of(x.dtype()), x.shape(), ", got values ", values,
          " and indices ", indices, " into ", slices.shape);
  const RecorderScope suspended(nullptr);
  if (change == RowChange::add || change == RowChange::sub) {
    const Tensor places = reshape(indices, {indices.dim(0), 1});
    return tensor_scatter_add(x, places, change == RowChange::add ? values : neg(values), at);
  }
  if (traced::on(x.device()) || traced::on(values.device()) || traced::on(indices.device()))
    throw Unimplemented(message(op,
                                "is computed on the host, which a step on TPUs cannot wait for; do "
                                "it outside run, or use scatter_add"),
                        at);
  require(x.dtype() != DType::boolean || change == RowChange::update, at, op,
          "expected numbers to compute with, got bool");
  return changed_on_host(op, change, x, slices, at);
}

}  // namespace lockstep
