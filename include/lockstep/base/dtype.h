// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/half.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

// Element types of tensors, buffers and collectives.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, boolean };

// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

// "f32", "bool", ...: the spelling used in messages, plans and files.
constexpr std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
  return names[static_cast<std::size_t>(dtype)];
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}
constexpr bool is_integer(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8;
}

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
}  // namespace detail

// A C++ type that is the element of some DType.
template <class T>
concept Element = requires { detail::DTypeOf<T>::value; };

// The DType whose element is T.
template <Element T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

}  // namespace lockstep
