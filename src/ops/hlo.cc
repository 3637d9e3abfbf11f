// SPDX-License-Identifier: Apache-2.0
#include "ops/hlo.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "tensor/visit_dtype.h"

namespace lockstep::hlo {
namespace {

using xla::Node;

xla::Trace& trace() { return *xla::current_trace(); }

Expr emit(std::string_view instruction, std::span<const Node> operands, const Type& type,
          std::string_view attributes = {}, std::string_view region = {}) {
  return Expr(
      trace().emit("stablehlo." + std::string(instruction), operands, attributes, type, region));
}
Expr emit(std::string_view instruction, const Expr& x, const Type& type,
          std::string_view attributes = {}) {
  return emit(instruction, {&x.node(), 1}, type, attributes);
}

std::uint64_t bits_of(double value, Element element) {
  std::uint64_t bits = 0;
  if (element > Element::boolean) return static_cast<std::uint64_t>(value);
  visit_dtype(static_cast<DType>(element), [&]<class T>(T) {
    T converted;
    if constexpr (std::is_arithmetic_v<T>)
      converted = static_cast<T>(value);
    else
      converted = T(static_cast<float>(value));
    std::memcpy(&bits, &converted, sizeof converted);
  });
  return bits;
}

Element wide(Element element) { return is_half(element) ? Element::f32 : element; }

}  // namespace

// ---- tensors

Expr operand(const char* op, const Tensor& x, SourceLocation at) {
  if (!xla::current_trace())
    throw FailedPrecondition(
        message(op,
                "tensors on TPUs are computed with in the step function given to "
                "Strategy::run; outside it, copy_to(x, Device{}) brings them to the host"),
        at);
  return Expr(trace().operand(x.buffer(), x.dtype(), x.shape(), op, at));
}

Expr wide_operand(const char* op, const Tensor& x, SourceLocation at) {
  const Expr value = operand(op, x, at);
  return convert(value, wide(value.element()));
}

Tensor tensor(const Expr& x, DType dtype) {
  const Expr converted = convert(x, xla::element_of(dtype));
  return Tensor(trace().result(converted.node(), dtype), dtype, x.shape());
}

Tensor tensor_in_place_of(const Expr& replaces, const Expr& x, DType dtype) {
  const Expr converted = convert(x, xla::element_of(dtype));
  const int id = replaces.node().id;
  return Tensor(trace().result(converted.node(), dtype, id < 0 ? -1 - id : -1), dtype, x.shape());
}

// ---- values made from nothing

Expr constant_bits(std::uint64_t bits, const Type& type) {
  return emit("constant", {}, type, "value = " + xla::constant_text(type, bits));
}
Expr constant(double value, const Type& type) {
  return constant_bits(bits_of(value, type.element), type);
}
Expr iota(const Type& type, int axis) {
  return emit("iota", {}, type, "iota_dimension = " + std::to_string(axis) + " : i64");
}

// ---- element by element

Expr apply(std::string_view instruction, const Expr& x) { return emit(instruction, x, x.type()); }

Expr apply(std::string_view instruction, const Expr& a, const Expr& b) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "hlo::apply");
  const Node operands[] = {broadcast(a, shape).node(), broadcast(b, shape).node()};
  return emit(instruction, operands, {a.element(), shape});
}

Expr compare(std::string_view direction, const Expr& a, const Expr& b) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "hlo::compare");
  const Node operands[] = {broadcast(a, shape).node(), broadcast(b, shape).node()};
  return emit(
      "compare", operands, {Element::boolean, shape},
      "comparison_direction = #stablehlo<comparison_direction " + std::string(direction) + ">");
}

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  const Shape shape = broadcast_shapes(
      condition.shape(), broadcast_shapes(a.shape(), b.shape(), "hlo::select"), "hlo::select");
  const Node operands[] = {broadcast(condition, shape).node(), broadcast(a, shape).node(),
                           broadcast(b, shape).node()};
  return emit("select", operands, {a.element(), shape});
}

namespace {

// The bits of the least and the largest value, and one beyond it as a float.
struct IntegerRange {
  std::uint64_t least, largest;
  double begin, end;
};

IntegerRange range_of(Element element) {
  switch (element) {
    case Element::i32:
      return {0x80000000u, 0x7FFFFFFFu, -0x1p31, 0x1p31};
    case Element::i64:
      return {0x8000000000000000u, 0x7FFFFFFFFFFFFFFFu, -0x1p63, 0x1p63};
    default:
      return {0, 255, 0, 256};
  }
}

}  // namespace

Expr convert(const Expr& x, Element element) {
  if (x.element() == element) return x;
  const Type type{element, x.shape()};
  if (element == Element::boolean) return not_equal(x, 0);
  if (!is_floating(x.element()) || is_floating(element) || element > Element::boolean)
    return emit("convert", x, type);
  // Half floats reach no integer's limits exactly; compared wide.
  const Expr from = is_half(x.element()) ? emit("convert", x, {Element::f32, x.shape()}) : x;
  const IntegerRange range = range_of(element);
  const Expr inside = emit("convert", from, type);
  const Expr high = select(from >= range.end, constant_bits(range.largest, {element, {}}), inside);
  const Expr low = select(from < range.begin, constant_bits(range.least, {element, {}}), high);
  return select(not_equal(from, from), constant(0, {element, {}}), low);
}

Expr bitcast(const Expr& x, Element element) {
  return emit("bitcast_convert", x, {element, x.shape()});
}

namespace {

// The highest power of z first.
Expr polynomial(const Expr& z, std::initializer_list<double> coefficients) {
  auto next = coefficients.begin();
  Expr p = constant(*next++, z.type());
  while (next != coefficients.end()) p = p * z + *next++;
  return p;
}

// 1 - erfc(|x|), erfc by minus its logarithm: |x| times a polynomial, as in math.h.
Expr erf_f32(const Expr& x) {
  const Expr size = minimum(abs(x), 4);
  const Expr z = size * size;
  const Expr even = polynomial(z, {-9.785463546e-8, -2.87413043e-5, -0.0007779040677,
                                   -0.0002753758412, 0.1027701382, 1.128379166});
  const Expr odd = polynomial(
      z, {2.524807275e-6, 0.0001892559426, 0.001837099309, -0.01911045128, 0.6366199006});
  return sign(x) * -expm1(-(size * (even + size * odd)));
}

// 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...), whose terms are all positive; by
// Horner's scheme from a term that is below rounding for |x| <= 6, where erf is 1.
Expr erf_f64(const Expr& x) {
  constexpr int kTerms = 130;
  const Expr size = minimum(abs(x), 6);
  const Expr twice = 2 * (size * size);
  Expr sum = constant(1, x.type());
  for (int n = kTerms; n > 0; --n) sum = 1 + twice * sum / (2 * n + 1);
  const Expr value = 2 * std::numbers::inv_sqrtpi * exp(-(size * size)) * size * sum;
  return sign(x) * minimum(value, 1);
}

// For 0 <= r <= 1: as math.h has it.
Expr atan_f32(const Expr& r) {
  const Expr z = r * r, u = z * z;
  const Expr even = polynomial(
      u, {-0.001793559366, -0.03117723826, -0.08403406974, -0.1426423797, -0.3333329907});
  const Expr odd = polynomial(u, {0.01091430532, 0.05795692504, 0.1095216902, 0.1999854786});
  return r + r * z * (even + z * odd);
}

// For 0 <= r <= 1: the angle is halved three times, to less than a tenth, for which the terms of
// r - r^3 / 3 + r^5 / 5 - ... after the eighth are below rounding.
Expr atan_f64(Expr r) {
  for (int i = 0; i < 3; ++i) r = r / (1 + sqrt(1 + r * r));
  constexpr int kTerms = 8;
  const Expr z = r * r;
  Expr sum = constant(1.0 / (2 * kTerms + 1), r.type());
  for (int n = kTerms - 1; n >= 0; --n) sum = 1.0 / (2 * n + 1) - z * sum;
  return 8 * (r * sum);
}

}  // namespace

Expr atan(const Expr& x) {
  const Expr size = abs(x), steep = size > 1;
  const Expr r = select(steep, 1 / size, size);
  const Expr angle = x.element() == Element::f64 ? atan_f64(r) : atan_f32(r);
  const double half_pi = std::numbers::pi / 2, in_f32 = 1.57079637f;
  const Expr rest =
      x.element() == Element::f64 ? half_pi - angle : (in_f32 - angle) + (half_pi - in_f32);
  return sign(x) * select(steep, rest, angle);
}

Expr is_finite(const Expr& x) {
  if (!is_floating(x.element())) return equal(x, x);
  // Not x * 0 == 0: XLA makes y * 0 of (y * 2) * 0, even where y * 2 overflows.
  return abs(x) < std::numeric_limits<double>::infinity();
}

Expr erf(const Expr& x) { return x.element() == Element::f64 ? erf_f64(x) : erf_f32(x); }

Expr floor_mod(const Expr& a, const Expr& b) {
  const Expr rest = rem(a, b);
  const Expr apart = not_equal(rest, 0) & ((rest < 0) ^ (b < 0));
  const Expr value = select(apart, rest + b, rest);
  return is_floating(value.element())
             ? value
             : select(equal(b, 0), constant(0, {value.element(), Shape{}}), value);
}

// ---- shapes

Expr broadcast_along(const Expr& x, const Shape& shape, std::span<const std::int64_t> axes) {
  return emit("broadcast_in_dim", x, {x.element(), shape}, "broadcast_dimensions = " + array(axes));
}

Expr broadcast(const Expr& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  std::vector<std::int64_t> axes;
  axes.reserve(Shape::kMaxRank);
  const int added = shape.rank() - x.shape().rank();
  for (int axis = 0; axis < x.shape().rank(); ++axis) axes.push_back(axis + added);
  return broadcast_along(x, shape, axes);
}

Expr reshape(const Expr& x, const Shape& shape) {
  return x.shape() == shape ? x : emit("reshape", x, {x.element(), shape});
}

Expr transpose(const Expr& x, std::span<const std::int64_t> permutation) {
  Shape shape = x.shape();
  for (std::size_t i = 0; i < permutation.size(); ++i)
    shape = shape.with_dim(static_cast<int>(i), x.shape().dim(static_cast<int>(permutation[i])));
  return emit("transpose", x, {x.element(), shape}, "permutation = " + array(permutation));
}

Expr reverse(const Expr& x, std::span<const std::int64_t> axes) {
  return emit("reverse", x, x.type(), "dimensions = " + array(axes));
}

Expr concat(std::span<const Expr> parts, int axis) {
  std::vector<Node> operands;
  operands.reserve(parts.size());
  std::int64_t total = 0;
  for (const Expr& part : parts) {
    operands.push_back(part.node());
    total += part.shape()[axis];
  }
  return emit("concatenate", operands, {parts[0].element(), parts[0].shape().with_dim(axis, total)},
              "dimension = " + std::to_string(axis) + " : i64");
}

Expr slice(const Expr& x, std::span<const std::int64_t> begin,
           std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
  std::vector<std::int64_t> limit;
  limit.reserve(begin.size());
  for (std::size_t i = 0; i < begin.size(); ++i)
    limit.push_back(extents[i] == 0 ? begin[i] : begin[i] + (extents[i] - 1) * strides[i] + 1);
  return emit("slice", x, {x.element(), Shape(extents)},
              "start_indices = " + array(begin) + ", limit_indices = " + array(limit) +
                  ", strides = " + array(strides));
}

Expr slice(const Expr& x, std::span<const std::int64_t> begin,
           std::span<const std::int64_t> extents) {
  return slice(x, begin, extents, std::vector<std::int64_t>(begin.size(), 1));
}

Expr pad(const Expr& x, std::span<const std::int64_t> before, std::span<const std::int64_t> after,
         std::span<const std::int64_t> between, double fill) {
  Shape shape = x.shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t own = shape[axis] + std::max<std::int64_t>(shape[axis] - 1, 0) * between[i];
    shape = shape.with_dim(axis, before[i] + own + after[i]);
  }
  const Node operands[] = {x.node(), constant(fill, {x.element(), {}}).node()};
  return emit("pad", operands, {x.element(), shape},
              "edge_padding_low = " + array(before) + ", edge_padding_high = " + array(after) +
                  ", interior_padding = " + array(between));
}

// ---- sums and products

Expr reduce(std::string_view instruction, const Expr& x, const Expr& initial,
            std::span<const std::int64_t> axes) {
  Shape shape = x.shape();
  for (std::size_t i = axes.size(); i-- > 0;) shape = shape.without_axis(static_cast<int>(axes[i]));
  const Node operands[] = {x.node(), initial.node()};
  return emit("reduce", operands, {x.element(), shape}, "dimensions = " + array(axes),
              reducer(instruction, x.element()));
}

namespace {

Expr reduce_last(std::string_view instruction, const Expr& x, double initial) {
  const std::int64_t last[] = {x.shape().rank() - 1};
  const Expr reduced = reduce(instruction, x, constant(initial, {x.element(), {}}), last);
  return reshape(reduced, x.shape().with_dim(-1, 1));
}

}  // namespace

Expr sum_last(const Expr& x) { return reduce_last("add", x, 0); }
Expr max_last(const Expr& x) {
  return reduce_last("maximum", x, -std::numeric_limits<double>::infinity());
}

Expr dot(const Expr& a, const Expr& b, const DotAxes& axes, const Shape& shape, Element element) {
  const auto list = [](const char* name, const std::vector<std::int64_t>& values) {
    std::string text;
    for (const std::int64_t value : values)
      text += (text.empty() ? "" : ", ") + std::to_string(value);
    return text.empty() ? text : std::string(name) + " = [" + text + "], ";
  };
  const Node operands[] = {a.node(), b.node()};
  return emit(
      "dot_general", operands, {element, shape},
      "dot_dimension_numbers = #stablehlo.dot<" + list("lhs_batching_dimensions", axes.batch_a) +
          list("rhs_batching_dimensions", axes.batch_b) +
          list("lhs_contracting_dimensions", axes.sum_a) + "rhs_contracting_dimensions = [" +
          std::to_string(axes.sum_b[0]) + "]>, precision_config = " + kPrecision);
}

// ---- text

std::string array(std::span<const std::int64_t> values) {
  std::string text = "array<i64";
  const char* separator = ": ";
  for (const std::int64_t value : values) {
    text += separator + std::to_string(value);
    separator = ", ";
  }
  return text + '>';
}

std::string reducer(std::string_view instruction, Element element) {
  const std::string type = Type{element, Shape{}}.text();
  return "{ ^bb0(%x: " + type + ", %y: " + type + "): %z = \"stablehlo." +
         std::string(instruction) + "\"(%x, %y) : (" + type + ", " + type + ") -> " + type +
         " \"stablehlo.return\"(%z) : (" + type + ") -> () }";
}

std::vector<std::int64_t> axes_up_to(int count) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(count));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

}  // namespace lockstep::hlo
