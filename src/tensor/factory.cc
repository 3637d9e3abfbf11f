// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/accelerator.h"
#include "device/xla/trace.h"
#include "tensor/convert.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

// The number of steps from begin that stay before end, whatever their distance.
std::uint64_t steps_between(std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (step > 0 ? begin >= end : begin <= end) return 0;
  const auto unsigned_of = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const std::uint64_t distance =
      step > 0 ? unsigned_of(end) - unsigned_of(begin) : unsigned_of(begin) - unsigned_of(end);
  const std::uint64_t stride = step > 0 ? unsigned_of(step) : 0 - unsigned_of(step);
  return (distance - 1) / stride + 1;
}

// Where a tensor lies that is made from nothing: for a TPU with the host, from which ops carry it.
Device home() {
  return current_device().kind == DeviceKind::xla ? current_host_device() : current_device();
}

Tensor full_on_host(const Shape& shape, double value, DType dtype) {
  const DeviceScope host(current_host_device());
  return full(shape, value, dtype);
}

// Elements that write(T*) computes, on the host, and which then go to the current device.
template <class Write>
Tensor made(DType dtype, const Shape& shape, Write&& write) {
  const auto count = static_cast<std::size_t>(shape.num_elements());
  Buffer buffer = Buffer::allocate(current_host_device(), count * size_of(dtype));
  visit_dtype(dtype, [&]<class T>(T) { write(static_cast<T*>(buffer.data())); });
  const Tensor values(std::move(buffer), dtype, shape);
  const Device device = home();
  return device.is_host() ? values : copy_to(values, device);
}

// A constant of the step that is being traced.
Tensor traced_full(xla::Trace& trace, const Shape& shape, double value, DType dtype) {
  std::uint64_t bits = 0;
  visit_dtype(dtype, [&]<class T>(T) {
    const T element = detail::converted<T>(value);
    std::memcpy(&bits, &element, sizeof element);
  });
  const xla::Type type{xla::element_of(dtype), shape};
  const std::string text = "value = " + xla::constant_text(type, bits);
  return Tensor(trace.result(trace.emit("stablehlo.constant", {}, text, type), dtype), dtype,
                shape);
}

Buffer copied(const Tensor& x, Device device, SourceLocation at) {
  const bool from_tpu = x.device().kind == DeviceKind::xla;
  if (device.kind == DeviceKind::xla) {
    if (x.device() == device) return x.buffer();  // values there are never written
    if (from_tpu) return copied(copy_to(x, Device{}, at), device, at);
    return xla::upload(device.index, x.dtype(), x.shape(), x.raw_data());
  }
  Buffer buffer = Buffer::allocate(device, x.bytes());
  if (from_tpu)
    xla::download(x.buffer(), buffer.data(), x.bytes(), "copy_to", at);
  else
    copy_bytes(device, buffer.data(), x.device(), x.raw_data(), x.bytes());
  return buffer;
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype) {
  xla::Trace* const trace = xla::current_trace();
  if (trace && current_device().kind == DeviceKind::xla)
    return traced_full(*trace, shape, value, dtype);
  const Device device = home();
  const auto count = static_cast<std::size_t>(shape.num_elements());
  const bool zero = value == 0 && !std::signbit(value);
  if (!zero && !device.is_host()) return copy_to(full_on_host(shape, value, dtype), device);
  Buffer buffer = Buffer::allocate(device, count * size_of(dtype));
  if (zero)
    zero_bytes(device, buffer.data(), buffer.bytes());
  else
    visit_dtype(dtype, [&]<class T>(T) {
      std::fill_n(static_cast<T*>(buffer.data()), count, detail::converted<T>(value));
    });
  return Tensor(std::move(buffer), dtype, shape);
}

Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor zeros_like(const Tensor& like, SourceLocation at) {
  require(like.defined(), at, "zeros_like", "like is undefined; pass a tensor that holds a value");
  return zeros(like.shape(), like.dtype());
}

Tensor ones_like(const Tensor& like, SourceLocation at) {
  require(like.defined(), at, "ones_like", "like is undefined; pass a tensor that holds a value");
  return ones(like.shape(), like.dtype());
}

Tensor copy_to(const Tensor& x, Device device, SourceLocation at) {
  require(x.defined(), at, "copy_to", "x is undefined; pass a tensor that holds a value");
  return Tensor(copied(x, device, at), x.dtype(), x.shape());
}

Tensor range(std::int64_t begin, std::int64_t end, std::int64_t step, DType dtype,
             SourceLocation at) {
  require(step != 0, at, "range", "expected a step other than 0");
  const std::uint64_t steps = steps_between(begin, end, step);
  require(steps <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()), at,
          "range", "from ", begin, " to ", end, " by ", step, " has ", steps,
          " elements, more than a tensor can hold");
  const auto count = static_cast<std::int64_t>(steps);
  const Shape shape({count}, at, "range");  // refuses what no process can address
  return made(dtype, shape, [&]<class T>(T* values) {
    for (std::int64_t i = 0; i < count; ++i) {
      // Unsigned, as the product may be out of range where the sum is not.
      const auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(begin) +
                                                   static_cast<std::uint64_t>(i) *
                                                       static_cast<std::uint64_t>(step));
      if constexpr (std::is_same_v<T, std::int64_t>)
        values[i] = value;
      else
        values[i] = detail::converted<T>(static_cast<double>(value));
    }
  });
}

Tensor linspace(double begin, double end, std::int64_t count, DType dtype, SourceLocation at) {
  require(is_floating(dtype), at, "linspace", "expected a floating dtype, got ", name_of(dtype));
  require(count >= 0, at, "linspace", "expected 0 or more values, got ", count);
  const double step = count > 1 ? (end - begin) / static_cast<double>(count - 1) : 0;
  return made(dtype, Shape({count}, at, "linspace"), [&]<class T>(T* values) {
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = detail::converted<T>(begin + static_cast<double>(i) * step);
    if (count > 1) values[count - 1] = detail::converted<T>(end);
  });
}

Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns, DType dtype, SourceLocation at) {
  const std::int64_t width = columns.value_or(rows);
  require(rows >= 0 && width >= 0, at, "eye", "expected 0 or more rows and columns, got ", rows,
          " and ", width);
  const Shape shape({rows, width}, at, "eye");
  return made(dtype, shape, [&]<class T>(T* values) {
    std::fill_n(values, shape.num_elements(), detail::converted<T>(0.0));
    for (std::int64_t i = 0; i < std::min(rows, width); ++i)
      values[i * width + i] = detail::converted<T>(1.0);
  });
}

}  // namespace lockstep
