// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/source_location.h>
#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <type_traits>

namespace lockstep {

// An argument of a binary op: a tensor, something that reads as one (a variable), or a number. It
// captures the line on which it was written, which operators cannot take as an argument. A number
// takes the dtype of the other operand, so that x * 2.0 has the dtype of x.
class Operand {
 public:
  Operand(const Tensor& tensor, SourceLocation at = SourceLocation::current())  // NOLINT: implicit
      : tensor_(tensor), at_(at) {}
  template <class T>
    requires(std::convertible_to<const T&, Tensor> && !std::same_as<T, Tensor> &&
             !std::is_arithmetic_v<T>)
  Operand(const T& readable, SourceLocation at = SourceLocation::current())  // NOLINT: implicit
      : tensor_(readable), at_(at) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T number, SourceLocation at = SourceLocation::current())  // NOLINT: implicit
      : is_number_(true),
        integral_(std::is_integral_v<T>),
        number_(static_cast<double>(number)),
        at_(at) {}

  bool is_number() const { return is_number_; }
  bool is_integral_number() const { return integral_; }
  double number() const { return number_; }
  const Tensor& tensor() const { return tensor_; }
  SourceLocation location() const { return at_; }

 private:
  Tensor tensor_;  // undefined for a number
  bool is_number_ = false;
  bool integral_ = false;
  double number_ = 0;
  SourceLocation at_;
};

}  // namespace lockstep
