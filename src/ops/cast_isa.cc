// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <type_traits>

#include "ops/cast_kernels.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

template <class T>
struct Bounds {
  static constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
};

template <class To, class From>
[[gnu::always_inline]] inline To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The largest value may round up to one beyond it, so that range is half open.
    constexpr From kBegin = static_cast<From>(Bounds<To>::kLeast);
    constexpr From kEnd = static_cast<From>(Bounds<To>::kMost / 2 + 1) * From(2);
    const bool inside = (x >= kBegin) & (x < kEnd);
    const To value = static_cast<To>(inside ? x : From(0));
    const To beyond = x >= kEnd ? Bounds<To>::kMost : x < kBegin ? Bounds<To>::kLeast : To(0);
    return inside ? value : beyond;
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void cast(const void* x, void* y, std::int64_t n) {
  const From* __restrict from = static_cast<const From*>(x);
  To* __restrict to = static_cast<To*>(y);
  for (std::int64_t i = 0; i < n; ++i) to[i] = converted<To>(from[i]);
}

// In the order of DType.
template <class From>
constexpr CastKernels::From casts_from() {
  return {{cast<float, From>, cast<double, From>, nullptr, nullptr, cast<std::int32_t, From>,
           cast<std::int64_t, From>, cast<std::uint8_t, From>, cast<bool, From>}};
}

}  // namespace

constinit const CastKernels cast_kernels{{casts_from<float>(),
                                          casts_from<double>(),
                                          {},
                                          {},
                                          casts_from<std::int32_t>(),
                                          casts_from<std::int64_t>(),
                                          casts_from<std::uint8_t>(),
                                          casts_from<std::uint8_t>()}};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
