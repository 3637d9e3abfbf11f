// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/base/dtype.h>

#include <utility>

namespace lockstep {

// Calls f(T{}) with the element type of `dtype`: f is a lambda `[&]<class T>(T) { ... }`.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(half{});
    case DType::bf16:
      return f(bfloat16{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::boolean:
      return f(bool{});
  }
  throw InternalError("[visit_dtype] unknown dtype");
}

}  // namespace lockstep
