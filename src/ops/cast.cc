// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>

#include <lockstep/ops/recorder.h>

#include <limits>

#include "ops/cuda/kernels.h"
#include "ops/half_kernels.h"
#include "ops/launch.h"
#include "ops/result.h"
#include "ops/traced.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

template <class T>
constexpr bool kIsHalf = !std::is_arithmetic_v<T>;

template <class To, class From>
To converted(From x) {
  if constexpr (kIsHalf<From>) {
    return converted<To>(static_cast<float>(x));
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The largest value may round up to one beyond it, so that range is half open.
    constexpr From kBegin = static_cast<From>(std::numeric_limits<To>::min());
    constexpr To kHalfOfEnd = std::numeric_limits<To>::max() / 2 + 1;
    constexpr From kEnd = static_cast<From>(kHalfOfEnd) * From(2);
    if (x != x) return To(0);
    if (x < kBegin) return std::numeric_limits<To>::min();
    return x >= kEnd ? std::numeric_limits<To>::max() : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void cast_loop(const void* x, void* y, std::int64_t n) {
  const From* __restrict from = static_cast<const From*>(x);
  To* __restrict to = static_cast<To*>(y);
  for (std::int64_t i = 0; i < n; ++i) to[i] = converted<To>(from[i]);
}

void cast_cpu(DType from, DType to, const void* x, void* y, std::int64_t n) {
  if (is_half(from) && to == DType::f32)
    return half_kernels().widen(from, x, static_cast<float*>(y), n);
  if (from == DType::f32 && is_half(to))
    return half_kernels().narrow(to, static_cast<const float*>(x), y, n);
  // Booleans are bytes of 0 and 1, which compilers vectorise only as such.
  visit_dtype(from == DType::boolean ? DType::u8 : from, [&]<class From>(From) {
    visit_dtype(to, [&]<class To>(To) { cast_loop<To, From>(x, y, n); });
  });
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
