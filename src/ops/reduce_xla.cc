// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Element;
using hlo::Expr;

// What leaves any other operand of the instruction as it is.
Expr neutral(std::string_view instruction, Element element) {
  const hlo::Type type{element, Shape{}};
  if (instruction == "and" || instruction == "multiply") return hlo::constant(1, type);
  if (instruction == "or" || instruction == "add") return hlo::constant(0, type);
  const bool max = instruction == "maximum";
  if (hlo::is_floating(element)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return hlo::constant(max ? -infinity : infinity, type);
  }
  switch (element) {
    case Element::i32:
      return hlo::constant_bits(max ? 0x80000000u : 0x7FFFFFFFu, type);
    case Element::i64:
      return hlo::constant_bits(max ? 0x8000000000000000u : 0x7FFFFFFFFFFFFFFFu, type);
    default:
      return hlo::constant_bits(max ? 0 : 255, type);
  }
}

}  // namespace

Tensor reduce(std::string_view instruction, const Tensor& x, std::span<const std::int64_t> axes,
              const Shape& shape, std::int64_t divisor) {
  const Expr value = hlo::wide_operand("reduce", x);
  Expr y = hlo::reduce(instruction, value, neutral(instruction, value.element()), axes);
  if (divisor != 1) y = y / static_cast<double>(divisor);
  return hlo::tensor(hlo::reshape(y, shape), x.dtype());
}

// The first place that holds the extreme value, or a NaN if there is one.
Tensor arg_extreme(const Tensor& x, int axis, bool largest) {
  Expr value = hlo::wide_operand("argmax", x);
  if (value.element() == Element::boolean) value = hlo::convert(value, Element::i32);
  const std::int64_t axes[] = {axis};
  const Shape kept = x.shape().with_dim(axis, 1);
  const std::string_view instruction = largest ? "maximum" : "minimum";
  const Expr extreme = hlo::reshape(
      hlo::reduce(instruction, value, neutral(instruction, value.element()), axes), kept);
  const hlo::Type type{Element::i64, x.shape()};
  // NaNs are what no order holds of: then the extreme is NaN, too.
  const Expr chosen = hlo::equal(value, extreme) | hlo::not_equal(value, value);
  const Expr beyond = hlo::constant(static_cast<double>(x.dim(axis)), {Element::i64, Shape{}});
  const Expr places = hlo::select(chosen, hlo::iota(type, axis), beyond);
  return hlo::tensor(hlo::reduce("minimum", places, beyond, axes), DType::i64);
}

}  // namespace lockstep::traced
