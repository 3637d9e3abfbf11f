// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/random.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <numbers>

#include "ops/half_kernels.h"
#include "ops/random_draw.h"
#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

// Floats from a kernel, narrowed to the result's dtype.
template <class Kernel>
void fill_floats(Tensor& y, Kernel&& kernel) {
  const std::int64_t n = y.num_elements();
  const DType dtype = y.dtype();
  in_chunks<float>(
      draw(n), n, 4, kernel, [&](const float* values, std::int64_t i, std::int64_t count) {
        if (dtype == DType::f32)
          std::memcpy(write<float>(y) + i, values, static_cast<std::size_t>(count) * sizeof(float));
        else
          half_kernels().narrow(dtype, values, write<std::uint16_t>(y) + i, count);
      });
}

// Doubles, each made from the 64 bits of two words by transform(bits, place of the element).
template <class Transform>
void fill_doubles(Tensor& y, Transform&& transform) {
  const std::int64_t n = y.num_elements();
  double* const to = write<double>(y);
  in_chunks<std::uint32_t>(draw(2 * n), n, 2, words_of,
                           [&](const std::uint32_t* words, std::int64_t i, std::int64_t count) {
                             for (std::int64_t k = 0; k < count; ++k) {
                               to[i + k] = transform(wide_word(words, k));
                             }
                           });
}

// The upper 53 bits as a number in (0, 1).
double open_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

// The normal distribution's quantile by Newton's method, for p in the distribution's middle.
double quantile(double p) {
  double z = (p - 0.5) * std::sqrt(2 * std::numbers::pi);
  for (int i = 0; i < 20; ++i) {
    const double excess = 0.5 * std::erfc(-z / std::numbers::sqrt2) - p;
    const double step = excess * std::sqrt(2 * std::numbers::pi) * std::exp(0.5 * z * z);
    z -= step;
    if (std::abs(step) < 1e-15) break;
  }
  return z;
}

void require_floating(const char* op, DType dtype, SourceLocation at) {
  require(is_floating(dtype), at, op, "expected a floating dtype, got ", name_of(dtype));
}

std::int64_t words_for(const Shape& shape, DType dtype) {
  return shape.num_elements() * (dtype == DType::f64 ? 2 : 1);
}

// The largest finite value of a floating dtype.
double largest(DType dtype) {
  if (dtype == DType::f16) return 65504;
  if (dtype == DType::bf16) return 0x1.fep127;
  return dtype == DType::f64 ? DBL_MAX : double{FLT_MAX};
}

void require_spread(const char* op, double mean, double stddev, SourceLocation at) {
  require(std::isfinite(mean) && std::isfinite(stddev) && stddev >= 0, at, op,
          "expected a finite mean and a standard deviation of 0 or more, got ", mean, " and ",
          stddev);
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, DType dtype, SourceLocation at) {
  const double most = largest(dtype);
  require(low <= high && low >= -most && high <= most, at, "uniform", "expected bounds that ",
          name_of(dtype), " holds with low <= high, got ", low, " and ", high);
  const double width = high - low;
  require(width <= (dtype == DType::f64 ? most : double{FLT_MAX}), at, "uniform",
          "the distance of the bounds ", low, " and ", high,
          " overflows; draw from [-1, 1) and multiply");
  require_floating("uniform", dtype, at);
  if (traced::on(current_device()))
    return traced::uniform(draw(words_for(shape, dtype)), shape, low, high, dtype);
  if (!current_device().is_host())
    return drawn_on_host([&] { return uniform(shape, low, high, dtype, at); });
  Tensor y = make_result(current_device(), dtype, shape);
  if (dtype == DType::f64) {
    fill_doubles(y, [=](std::uint64_t bits) {
      const double value = low + width * (static_cast<double>(bits >> 11) * 0x1p-53);
      return value < high ? value : std::nextafter(high, low);
    });
  } else {
    const auto first = static_cast<float>(low), end = static_cast<float>(high);
    const float below = std::nextafter(end, first);
    fill_floats(y, [=](const PhiloxStream& from, float* values, std::int64_t blocks) {
      random_kernels().uniform(from, first, end, below, values, blocks);
    });
  }
  return y;
}

Tensor normal(const Shape& shape, double mean, double stddev, DType dtype, SourceLocation at) {
  require_spread("normal", mean, stddev, at);
  require_floating("normal", dtype, at);
  if (traced::on(current_device()))
    return traced::normal(draw(words_for(shape, dtype)), shape, mean, stddev, dtype);
  if (!current_device().is_host())
    return drawn_on_host([&] { return normal(shape, mean, stddev, dtype, at); });
  Tensor y = make_result(current_device(), dtype, shape);
  if (dtype == DType::f64) {
    // Pairs share radius and angle: an element needs its neighbour's bits.
    double radius = 0, angle = 0;
    std::int64_t next = 0;
    const std::int64_t n = y.num_elements();
    double* const to = write<double>(y);
    in_chunks<std::uint32_t>(
        draw(2 * n), n, 2, words_of,
        [&](const std::uint32_t* words, std::int64_t i, std::int64_t count) {
          for (std::int64_t k = 0; k < count; ++k, ++next) {
            if (next % 2 == 0) {
              radius = std::sqrt(-2 * std::log(open_unit(wide_word(words, k))));
              angle = 2 * std::numbers::pi * open_unit(wide_word(words, k + 1));
            }
            to[i + k] =
                mean + stddev * radius * (next % 2 == 0 ? std::cos(angle) : std::sin(angle));
          }
        });
  } else {
    fill_floats(y, [=](const PhiloxStream& from, float* values, std::int64_t blocks) {
      random_kernels().normal(from, static_cast<float>(mean), static_cast<float>(stddev), values,
                              blocks);
    });
  }
  return y;
}

Tensor truncated_normal(const Shape& shape, double mean, double stddev, DType dtype,
                        SourceLocation at) {
  require_spread("truncated_normal", mean, stddev, at);
  require_floating("truncated_normal", dtype, at);
  if (traced::on(current_device()))
    return traced::truncated_normal(draw(words_for(shape, dtype)), shape, mean, stddev, dtype);
  if (!current_device().is_host())
    return drawn_on_host([&] { return truncated_normal(shape, mean, stddev, dtype, at); });
  Tensor y = make_result(current_device(), dtype, shape);
  if (dtype == DType::f64) {
    const double width = std::erf(std::numbers::sqrt2);
    fill_doubles(y, [=](std::uint64_t bits) {
      return mean + stddev * quantile(0.5 + (open_unit(bits) - 0.5) * width);
    });
  } else {
    fill_floats(y, [=](const PhiloxStream& from, float* values, std::int64_t blocks) {
      random_kernels().truncated_normal(from, static_cast<float>(mean), static_cast<float>(stddev),
                                        values, blocks);
    });
  }
  return y;
}

Tensor bernoulli(const Shape& shape, double p, DType dtype, SourceLocation at) {
  require(p >= 0 && p <= 1, at, "bernoulli", "expected a probability in [0, 1], got ", p);
  require(dtype == DType::boolean || is_floating(dtype), at, "bernoulli",
          "expected dtype bool or a floating dtype, got ", name_of(dtype));
  const std::int64_t n = shape.num_elements();
  const auto threshold = static_cast<std::int64_t>(p * 0x1p32);  // words below it are true
  if (traced::on(current_device()))
    return cast(traced::bernoulli(draw(n), shape, static_cast<std::uint64_t>(threshold)), dtype,
                at);
  if (!current_device().is_host())
    return drawn_on_host([&] { return bernoulli(shape, p, dtype, at); });
  Tensor flags = make_result(current_device(), DType::boolean, shape);
  auto* const to = write<std::uint8_t>(flags);
  in_chunks<std::uint8_t>(
      draw(n), n, 4,
      [&](const PhiloxStream& from, std::uint8_t* values, std::int64_t blocks) {
        if (threshold == 0)
          std::memset(values, 0, static_cast<std::size_t>(4 * blocks));
        else
          random_kernels().bernoulli(from, static_cast<std::uint32_t>(threshold - 1), values,
                                     blocks);
      },
      [&](const std::uint8_t* values, std::int64_t i, std::int64_t count) {
        std::memcpy(to + i, values, static_cast<std::size_t>(count));
      });
  return cast(flags, dtype, at);
}

}  // namespace lockstep
