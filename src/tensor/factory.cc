// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

// As cast: integers saturate and NaN becomes 0.
template <class T>
T converted(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<T>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

// The number of steps from begin that stay before end, whatever their distance.
std::uint64_t steps_between(std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (step > 0 ? begin >= end : begin <= end) return 0;
  const auto unsigned_of = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const std::uint64_t distance =
      step > 0 ? unsigned_of(end) - unsigned_of(begin) : unsigned_of(begin) - unsigned_of(end);
  const std::uint64_t stride = step > 0 ? unsigned_of(step) : 0 - unsigned_of(step);
  return (distance - 1) / stride + 1;
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype) {
  const auto count = static_cast<std::size_t>(shape.num_elements());
  Buffer buffer = Buffer::allocate(current_device(), count * size_of(dtype));
  if (value == 0 && !std::signbit(value) && count)
    std::memset(buffer.data(), 0, count * size_of(dtype));
  else
    visit_dtype(dtype, [&]<class T>(T) {
      std::fill_n(static_cast<T*>(buffer.data()), count, converted<T>(value));
    });
  return Tensor(std::move(buffer), dtype, shape);
}

Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }
Tensor zeros_like(const Tensor& like) { return zeros(like.shape(), like.dtype()); }
Tensor ones_like(const Tensor& like) { return ones(like.shape(), like.dtype()); }

Tensor copy_to(const Tensor& x, Device device) {
  Buffer buffer = Buffer::allocate(device, x.bytes());
  if (x.bytes()) std::memcpy(buffer.data(), x.raw_data(), x.bytes());
  return Tensor(std::move(buffer), x.dtype(), x.shape());
}

Tensor range(std::int64_t begin, std::int64_t end, std::int64_t step, DType dtype) {
  require(step != 0, SourceLocation{}, "range", "expected a step other than 0");
  const std::uint64_t steps = steps_between(begin, end, step);
  require(steps <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
          SourceLocation{}, "range", "from ", begin, " to ", end, " by ", step, " has ", steps,
          " elements, more than a tensor can hold");
  const auto count = static_cast<std::int64_t>(steps);
  const Shape shape{count};  // refuses what no process can address
  Buffer buffer =
      Buffer::allocate(current_device(), static_cast<std::size_t>(count) * size_of(dtype));
  visit_dtype(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t value = begin + i * step;
      if constexpr (std::is_same_v<T, std::int64_t>)
        static_cast<T*>(buffer.data())[i] = value;
      else
        static_cast<T*>(buffer.data())[i] = converted<T>(static_cast<double>(value));
    }
  });
  return Tensor(std::move(buffer), dtype, shape);
}

}  // namespace lockstep
