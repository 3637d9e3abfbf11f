// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

template <class T>
T converted(double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
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
  const std::int64_t span = step > 0 ? end - begin + step - 1 : begin - end - step - 1;
  const std::int64_t count = std::max<std::int64_t>(0, span / (step > 0 ? step : -step));
  Buffer buffer =
      Buffer::allocate(current_device(), static_cast<std::size_t>(count) * size_of(dtype));
  visit_dtype(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<T*>(buffer.data())[i] = converted<T>(static_cast<double>(begin + i * step));
  });
  return Tensor(std::move(buffer), dtype, Shape{count});
}

}  // namespace lockstep
