// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <numbers>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Element;
using hlo::Expr;

using Words = std::array<Expr, 4>;

Expr low(const Expr& x) { return hlo::convert(x, Element::u32); }
Expr high(const Expr& x) { return hlo::convert(x >> 32, Element::u32); }

// Philox 4x32-10 of as many blocks as `words` words need; see random_isa.cc. The stream's numbers
// are the program's arguments, as the counter changes with every step.
Words philox(const PhiloxStream& from, std::int64_t words) {
  xla::Trace* const trace = xla::current_trace();
  const auto argument = [&](std::uint64_t value, bool varies) {
    return Expr(trace->literal(Element::u64, value, varies));
  };
  const Shape blocks{(words + 3) / 4};
  const Expr counter = argument(from.counter, true) + hlo::iota({Element::u64, blocks}, 0);
  const Expr stream = argument(from.stream, false), seed = argument(from.seed, false);
  Words x = {low(counter), high(counter), hlo::broadcast(low(stream), blocks),
             hlo::broadcast(high(stream), blocks)};
  Expr key0 = low(seed), key1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const Expr p0 = hlo::convert(x[0], Element::u64) * 0xD2511F53u;
    const Expr p1 = hlo::convert(x[2], Element::u64) * 0xCD9E8D57u;
    x = {high(p1) ^ x[1] ^ key0, low(p1), high(p0) ^ x[3] ^ key1, low(p0)};
    key0 = key0 + 0x9E3779B9u;
    key1 = key1 + 0xBB67AE85u;
  }
  return x;
}

// The elements of several lists by turns, cut to a shape.
Expr interleaved(std::span<const Expr> lists, const Shape& shape) {
  std::vector<Expr> columns;
  columns.reserve(lists.size());
  const std::int64_t rows = lists[0].shape()[0];
  const auto count = static_cast<std::int64_t>(lists.size());
  for (const Expr& list : lists) columns.push_back(hlo::reshape(list, {rows, 1}));
  const Expr flat = hlo::reshape(hlo::concat(columns, 1), Shape{rows * count});
  const std::int64_t begin[] = {0}, extent[] = {shape.num_elements()};
  return hlo::reshape(hlo::slice(flat, begin, extent), shape);
}

// The upper 24 bits as a number in [0, 1), and all bits as one in (0, 1].
Expr unit(const Expr& word) { return hlo::convert(word >> 8, Element::f32) * 0x1p-24; }
Expr open_unit(const Expr& word) {
  return unit(word) + (hlo::convert(word & 255, Element::f32) + 0.5) * 0x1p-32;
}

// Two words to a double's 64 bits, and their upper 53 as numbers in [0, 1) and (0, 1).
std::array<Expr, 2> pairs(const Words& words) {
  const auto wide = [](const Expr& a, const Expr& b) {
    return hlo::convert(a, Element::u64) | (hlo::convert(b, Element::u64) << 32);
  };
  return {wide(words[0], words[1]), wide(words[2], words[3])};
}
Expr unit_f64(const Expr& bits) { return hlo::convert(bits >> 11, Element::f64) * 0x1p-53; }
Expr open_unit_f64(const Expr& bits) {
  return (hlo::convert(bits >> 11, Element::f64) + 0.5) * 0x1p-53;
}

struct Normals {
  Expr first, second;
};

// Box and Muller; the angle is a quarter turn by the word's upper two bits and within a quarter of
// pi by the next 24.
Normals box_muller(const Expr& a, const Expr& b) {
  const Expr radius = hlo::sqrt(-2 * hlo::log(open_unit(a)));
  const Expr r = (unit(b << 2) - 0.5) * 1.57079633f;
  const Expr s = hlo::sin(r), c = hlo::cos(r);
  const Expr odd = hlo::not_equal(b & 0x40000000u, 0), back = hlo::not_equal(b & 0x80000000u, 0);
  const Expr sine = hlo::select(odd, c, s), cosine = hlo::select(odd, -s, c);
  return {radius * hlo::select(back, -cosine, cosine), radius * hlo::select(back, -sine, sine)};
}

// See random_isa.cc.
Expr truncated_quantile(const Expr& word) {
  const Expr x = (unit(word) + 0x1p-25 - 0.5) * 1.9089994722f;
  const Expr w = -hlo::log(1 - x * x);
  Expr p = hlo::constant(-3.572372123e-7f, x.type());
  for (const float coefficient : {-1.55962048e-6f, 5.467810931e-5f, -0.0001374997782f,
                                  -0.002329246437f, 0.01154759257f, 0.2320138627f, 0.8862269219f})
    p = p * w + coefficient;
  return x * p * 1.41421356f;
}

// The normal distribution's quantile by Newton's method, as random.cc; the steps left out there end
// below rounding.
Expr quantile_f64(const Expr& p) {
  constexpr int kSteps = 8;
  const double root = std::sqrt(2 * std::numbers::pi);
  Expr z = (p - 0.5) * root;
  for (int i = 0; i < kSteps; ++i) {
    const Expr excess = 0.5 * (1 + hlo::erf(z / std::numbers::sqrt2)) - p;
    z = z - excess * root * hlo::exp(0.5 * (z * z));
  }
  return z;
}

// transform(word) of as many words as elements.
template <class Transform>
Expr of_words(const PhiloxStream& from, const Shape& shape, Transform&& transform) {
  const Words words = philox(from, shape.num_elements());
  return transform(interleaved(words, shape));
}

}  // namespace

Tensor uniform(const PhiloxStream& from, const Shape& shape, double low, double high, DType dtype) {
  const auto scaled = [&](const Expr& unit, double first, double end, double below) {
    const Expr value = first + (end - first) * unit;
    return hlo::select(value < end, value, hlo::constant(below, {unit.element(), Shape{}}));
  };
  if (dtype == DType::f64) {
    const auto bits = pairs(philox(from, 2 * shape.num_elements()));
    return hlo::tensor(
        scaled(unit_f64(interleaved(bits, shape)), low, high, std::nextafter(high, low)), dtype);
  }
  const auto first = static_cast<float>(low), end = static_cast<float>(high);
  return hlo::tensor(of_words(from, shape,
                              [&](const Expr& word) {
                                return scaled(unit(word), first, end, std::nextafter(end, first));
                              }),
                     dtype);
}

Tensor normal(const PhiloxStream& from, const Shape& shape, double mean, double stddev,
              DType dtype) {
  if (dtype == DType::f64) {
    const auto bits = pairs(philox(from, 2 * shape.num_elements()));
    const Expr radius = hlo::sqrt(-2 * hlo::log(open_unit_f64(bits[0])));
    const Expr angle = 2 * std::numbers::pi * open_unit_f64(bits[1]);
    const Expr both[] = {radius * hlo::cos(angle), radius * hlo::sin(angle)};
    return hlo::tensor(mean + stddev * interleaved(both, shape), dtype);
  }
  const Words words = philox(from, shape.num_elements());
  const Normals a = box_muller(words[0], words[1]), b = box_muller(words[2], words[3]);
  const Expr all[] = {a.first, a.second, b.first, b.second};
  return hlo::tensor(mean + stddev * interleaved(all, shape), dtype);
}

Tensor truncated_normal(const PhiloxStream& from, const Shape& shape, double mean, double stddev,
                        DType dtype) {
  if (dtype == DType::f64) {
    const double width = std::erf(std::numbers::sqrt2);
    const auto bits = pairs(philox(from, 2 * shape.num_elements()));
    const Expr p = 0.5 + (open_unit_f64(interleaved(bits, shape)) - 0.5) * width;
    return hlo::tensor(mean + stddev * quantile_f64(p), dtype);
  }
  return hlo::tensor(
      of_words(from, shape,
               [&](const Expr& word) { return mean + stddev * truncated_quantile(word); }),
      dtype);
}

// low + bits range / 2^64, whose product of 128 bits is put together from four of 64.
Tensor uniform_int(const PhiloxStream& from, const Shape& shape, std::uint64_t low,
                   std::uint64_t range, DType dtype) {
  const Expr bits = interleaved(pairs(philox(from, 2 * shape.num_elements())), shape);
  const std::uint64_t range_0 = range & 0xFFFFFFFFu, range_1 = range >> 32;
  const Expr bits_0 = bits & 0xFFFFFFFFu, bits_1 = bits >> 32;
  const Expr product_01 = bits_0 * range_1, product_10 = bits_1 * range_0;
  const Expr middle =
      ((bits_0 * range_0) >> 32) + (product_01 & 0xFFFFFFFFu) + (product_10 & 0xFFFFFFFFu);
  const Expr scaled = bits_1 * range_1 + (product_01 >> 32) + (product_10 >> 32) + (middle >> 32);
  const Expr value = scaled + hlo::constant_bits(low, {Element::u64, Shape{}});
  return hlo::tensor(hlo::bitcast(value, Element::i64), dtype);
}

Tensor permutation(const PhiloxStream& from, std::int64_t n, std::uint64_t number) {
  const hlo::Type type{Element::u64, Shape{n}};
  const Expr bits = interleaved(pairs(philox(from, 2 * n)), type.shape);
  const Expr keys =
      (bits & hlo::constant_bits(~number, {Element::u64, Shape{}})) | hlo::iota(type, 0);
  const std::string scalar = hlo::Type{Element::u64, Shape{}}.text();
  const Expr sorted(xla::current_trace()->emit(
      "stablehlo.sort", {&keys.node(), 1}, "dimension = 0 : i64", type,
      "{ ^bb0(%x: " + scalar + ", %y: " + scalar +
          "): %z = \"stablehlo.compare\"(%x, %y) <{comparison_direction = "
          "#stablehlo<comparison_direction LT>}> : (" +
          scalar + ", " + scalar +
          ") -> tensor<i1> \"stablehlo.return\"(%z) : (tensor<i1>) -> () }"));
  return hlo::tensor(sorted & hlo::constant_bits(number, {Element::u64, Shape{}}), DType::i64);
}

Tensor bernoulli(const PhiloxStream& from, const Shape& shape, std::uint64_t threshold) {
  return hlo::tensor(of_words(from, shape,
                              [&](const Expr& word) {
                                return hlo::convert(word, Element::u64) <
                                       static_cast<double>(threshold);
                              }),
                     DType::boolean);
}

}  // namespace lockstep::traced
