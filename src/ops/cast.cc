// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>

#include <lockstep/ops/recorder.h>

#include <algorithm>
#include <cstddef>

#include "ops/cast_kernels.h"
#include "ops/cuda/kernels.h"
#include "ops/half_kernels.h"
#include "ops/launch.h"
#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

CastKernel kernel_between(DType from, DType to) {
  return cast_kernels().from[static_cast<int>(from)].to[static_cast<int>(to)];
}

// One of them 16 bits wide: in blocks by way of float.
void cast_half(DType from, DType to, const std::byte* x, std::byte* y, std::int64_t n) {
  float wide[kHalfBlock];
  for (std::int64_t i = 0; i < n; i += kHalfBlock) {
    const std::int64_t count = std::min(kHalfBlock, n - i);
    const void* const source = x + static_cast<std::size_t>(i) * size_of(from);
    void* const target = y + static_cast<std::size_t>(i) * size_of(to);
    if (is_half(from))
      half_kernels().widen(from, source, wide, count);
    else
      kernel_between(from, DType::f32)(source, wide, count);
    if (is_half(to))
      half_kernels().narrow(to, wide, target, count);
    else
      kernel_between(DType::f32, to)(wide, target, count);
  }
}

void cast_cpu(DType from, DType to, const void* x, void* y, std::int64_t n) {
  if (is_half(from) && to == DType::f32)
    return half_kernels().widen(from, x, static_cast<float*>(y), n);
  if (from == DType::f32 && is_half(to))
    return half_kernels().narrow(to, static_cast<const float*>(x), y, n);
  if (is_half(from) || is_half(to))
    return cast_half(from, to, static_cast<const std::byte*>(x), static_cast<std::byte*>(y), n);
  kernel_between(from, to)(x, y, n);
}

}  // namespace

Tensor cast(const Tensor& x, DType dtype, SourceLocation at) {
  require_defined("cast", "x", x, at);
  if (x.dtype() == dtype) return x;
  const Device device = common_device("cast", {&x}, at);
  Tensor y;
  if (traced::on(device)) {
    y = traced::cast(x, dtype);
  } else {
    y = make_result(device, dtype, x.shape());
    launch(
        "cast", device, writes(y), reads(x),
        [](Tensor& to, const Tensor& from) {
          cast_cpu(from.dtype(), to.dtype(), from.raw_data(), write<void>(to), from.num_elements());
        },
        [](Tensor& to, const Tensor& from) {
          cuda::cast(from.dtype(), to.dtype(), from.raw_data(), write<void>(to),
                     from.num_elements(), to.device());
        });
  }
  if (is_floating(x.dtype()) && is_floating(dtype))
    record("cast", {&x}, y, [from = x.dtype()](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return cast(dy, from); });
    });
  return y;
}

Tensor stop_gradient(const Tensor& x, SourceLocation at) {
  require_defined("stop_gradient", "x", x, at);
  return x.with_shape(x.shape());
}

}  // namespace lockstep
