// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/xla/trace.h"

// StableHLO instructions, as the bodies of ops on TPUs (*_xla.cc) write them: each call adds to the
// current trace. Operands of elementwise functions broadcast against each other as NumPy's, and a
// number beside an expression is a constant of its element type.
namespace lockstep::hlo {

using xla::Element;
using xla::Type;

class Expr {
 public:
  explicit Expr(const xla::Node& node) : node_(node) {}

  const xla::Node& node() const { return node_; }
  const Type& type() const { return node_.type; }
  Element element() const { return node_.type.element; }
  const Shape& shape() const { return node_.type.shape; }

 private:
  xla::Node node_;
};

constexpr bool is_half(Element element) {
  return element == Element::f16 || element == Element::bf16;
}
constexpr bool is_floating(Element element) { return element <= Element::bf16; }

// The value of a tensor, of this or any other device. Throws FailedPrecondition outside a traced
// step.
Expr operand(const char* op, const Tensor& x, SourceLocation at = {});
// The same for computing with: 16-bit floats become f32.
Expr wide_operand(const char* op, const Tensor& x, SourceLocation at = {});
// The tensor that an expression is the value of, converted to its dtype. It may take the memory of
// `replaces`, an argument, when that is set.
Tensor tensor(const Expr& x, DType dtype);
Tensor tensor_in_place_of(const Expr& replaces, const Expr& x, DType dtype);

// ---- values made from nothing

Expr constant(double value, const Type& type);
Expr constant_bits(std::uint64_t bits, const Type& type);
Expr iota(const Type& type, int axis);

// ---- element by element

// An instruction with operands of one type, whose result has it, too.
Expr apply(std::string_view instruction, const Expr& x);
Expr apply(std::string_view instruction, const Expr& a, const Expr& b);
// `direction`: EQ, NE, LT, LE, GT or GE.
Expr compare(std::string_view direction, const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& a, const Expr& b);
// Float to integer as cast(): saturating, NaN to 0.
Expr convert(const Expr& x, Element element);
Expr bitcast(const Expr& x, Element element);

#define LOCKSTEP_HLO_UNARY(name, instruction) \
  inline Expr name(const Expr& x) { return apply(#instruction, x); }
LOCKSTEP_HLO_UNARY(abs, abs)
LOCKSTEP_HLO_UNARY(ceil, ceil)
LOCKSTEP_HLO_UNARY(cos, cosine)
LOCKSTEP_HLO_UNARY(exp, exponential)
LOCKSTEP_HLO_UNARY(expm1, exponential_minus_one)
LOCKSTEP_HLO_UNARY(floor, floor)
LOCKSTEP_HLO_UNARY(log, log)
LOCKSTEP_HLO_UNARY(log1p, log_plus_one)
LOCKSTEP_HLO_UNARY(round, round_nearest_even)
LOCKSTEP_HLO_UNARY(sigmoid, logistic)
LOCKSTEP_HLO_UNARY(sign, sign)
LOCKSTEP_HLO_UNARY(sin, sine)
LOCKSTEP_HLO_UNARY(sqrt, sqrt)
LOCKSTEP_HLO_UNARY(tanh, tanh)
LOCKSTEP_HLO_UNARY(operator-, negate)
#undef LOCKSTEP_HLO_UNARY
Expr is_finite(const Expr& x);  // integers are
// By polynomials of the library's own.
Expr erf(const Expr& x);
Expr atan(const Expr& x);

#define LOCKSTEP_HLO_BINARY(name, instruction)                                               \
  inline Expr name(const Expr& a, const Expr& b) { return apply(#instruction, a, b); }       \
  template <class T>                                                                         \
    requires std::is_arithmetic_v<T>                                                         \
  Expr name(const Expr& a, T b) {                                                            \
    return apply(#instruction, a, constant(static_cast<double>(b), {a.element(), Shape{}})); \
  }                                                                                          \
  template <class T>                                                                         \
    requires std::is_arithmetic_v<T>                                                         \
  Expr name(T a, const Expr& b) {                                                            \
    return apply(#instruction, constant(static_cast<double>(a), {b.element(), Shape{}}), b); \
  }
LOCKSTEP_HLO_BINARY(operator+, add)
LOCKSTEP_HLO_BINARY(operator-, subtract)
LOCKSTEP_HLO_BINARY(operator*, multiply)
LOCKSTEP_HLO_BINARY(operator/, divide)
LOCKSTEP_HLO_BINARY(operator&, and)
LOCKSTEP_HLO_BINARY(operator|, or)
LOCKSTEP_HLO_BINARY(operator^, xor)
LOCKSTEP_HLO_BINARY(operator<<, shift_left)
LOCKSTEP_HLO_BINARY(operator>>, shift_right_logical)
LOCKSTEP_HLO_BINARY(maximum, maximum)
LOCKSTEP_HLO_BINARY(minimum, minimum)
LOCKSTEP_HLO_BINARY(pow, power)
LOCKSTEP_HLO_BINARY(rem, remainder)
LOCKSTEP_HLO_BINARY(atan2, atan2)
#undef LOCKSTEP_HLO_BINARY

#define LOCKSTEP_HLO_COMPARE(name, direction)                                          \
  inline Expr name(const Expr& a, const Expr& b) { return compare(#direction, a, b); } \
  inline Expr name(const Expr& a, double b) {                                          \
    return compare(#direction, a, constant(b, {a.element(), Shape{}}));                \
  }
LOCKSTEP_HLO_COMPARE(equal, EQ)
LOCKSTEP_HLO_COMPARE(not_equal, NE)
LOCKSTEP_HLO_COMPARE(operator<, LT)
LOCKSTEP_HLO_COMPARE(operator<=, LE)
LOCKSTEP_HLO_COMPARE(operator>, GT)
LOCKSTEP_HLO_COMPARE(operator>=, GE)
#undef LOCKSTEP_HLO_COMPARE
// The remainder with the sign of b; of integers 0 where b is 0.
Expr floor_mod(const Expr& a, const Expr& b);

// ---- shapes

Expr broadcast(const Expr& x, const Shape& shape);  // NumPy's rule
// Axis i of x becomes axes[i] of the result.
Expr broadcast_along(const Expr& x, const Shape& shape, std::span<const std::int64_t> axes);
Expr reshape(const Expr& x, const Shape& shape);
Expr transpose(const Expr& x, std::span<const std::int64_t> permutation);
Expr reverse(const Expr& x, std::span<const std::int64_t> axes);
Expr concat(std::span<const Expr> parts, int axis);
Expr slice(const Expr& x, std::span<const std::int64_t> begin,
           std::span<const std::int64_t> extents);
// extents[i] elements of axis i, from begin[i] on, strides[i] apart.
Expr slice(const Expr& x, std::span<const std::int64_t> begin,
           std::span<const std::int64_t> extents, std::span<const std::int64_t> strides);
// `fill` before, after and between elements; negative counts cut elements off.
Expr pad(const Expr& x, std::span<const std::int64_t> before, std::span<const std::int64_t> after,
         std::span<const std::int64_t> between, double fill = 0);

// ---- sums and products

// `instruction` is add, multiply, maximum, minimum, and, or.
Expr reduce(std::string_view instruction, const Expr& x, const Expr& initial,
            std::span<const std::int64_t> axes);
// Over the last axis, which stays with extent 1.
Expr sum_last(const Expr& x);
Expr max_last(const Expr& x);
// Axes of a and b that are walked together, and those summed over.
struct DotAxes {
  std::vector<std::int64_t> batch_a, batch_b, sum_a, sum_b;
};
Expr dot(const Expr& a, const Expr& b, const DotAxes& axes, const Shape& shape, Element element);

// ---- text

// Products are exact to the last bits of f32, which TPUs do not give unasked.
inline constexpr const char* kPrecision =
    "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";
std::string array(std::span<const std::int64_t> values);  // "array<i64: 1, 2>"
// "{ ^bb0(...): ... }", an instruction on two scalars.
std::string reducer(std::string_view instruction, Element element);
std::vector<std::int64_t> axes_up_to(int count);  // 0 ... count - 1

}  // namespace lockstep::hlo
