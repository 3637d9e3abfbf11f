// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/elementwise.h>

#include <algorithm>
#include <cmath>
#include <ostream>

// The elementwise ops: a row each, from which their tests on every instruction set, dtype and device
// are made (tests/ops/elementwise_test.cc, elementwise_xla_test.cc, isa_test.cc, undefined_test.cc).
namespace lockstep::testing {

enum class Smooth { no, once, twice };  // has a gradient, and one of the gradient

struct UnaryRow {
  const char* name;
  Tensor (*op)(const Tensor&, SourceLocation);
  double (*reference)(double);  // in double, of every argument
  double low, high;             // where arguments are drawn from
  double ulps;                  // what float may be off by there
  Smooth smooth = Smooth::twice;
};

inline void PrintTo(const UnaryRow& row, std::ostream* out) { *out << row.name; }

inline double gelu_tanh_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
inline double softplus_of(double x) {
  return std::isnan(x) ? x : std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

// clang-format off
inline const UnaryRow kUnaryRows[] = {
    {"neg", neg, [](double x) { return -x; }, -5, 5, 0.5, Smooth::once},
    {"abs", lockstep::abs, [](double x) { return std::abs(x); }, -5, 5, 0.5, Smooth::once},
    {"sign", sign, [](double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); }, -5, 5, 0.5, Smooth::no},
    {"relu", relu, [](double x) { return std::isnan(x) ? x : std::max(x, 0.0); }, -5, 5, 0.5, Smooth::once},
    {"square", square, [](double x) { return x * x; }, -5, 5, 0.5001},
    {"sqrt", lockstep::sqrt, [](double x) { return std::sqrt(x); }, 0.01, 50, 0.5001},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.01, 50, 1.6},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.1, 50, 0.5001},
    {"exp", lockstep::exp, [](double x) { return std::exp(x); }, -80, 80, 1.5},
    {"expm1", lockstep::expm1, [](double x) { return std::expm1(x); }, -3, 5, 2},
    {"log", lockstep::log, [](double x) { return std::log(x); }, 0.01, 50, 1.5},
    {"log1p", lockstep::log1p, [](double x) { return std::log1p(x); }, -0.9, 50, 2},
    {"sin", lockstep::sin, [](double x) { return std::sin(x); }, -100, 100, 2},
    {"cos", lockstep::cos, [](double x) { return std::cos(x); }, -100, 100, 2},
    {"tan", lockstep::tan, [](double x) { return std::tan(x); }, -1.4, 1.4, 4},
    {"atan", lockstep::atan, [](double x) { return std::atan(x); }, -8, 8, 2.5},
    {"tanh", lockstep::tanh, [](double x) { return std::tanh(x); }, -10, 10, 3},
    {"erf", lockstep::erf, [](double x) { return std::erf(x); }, -4, 4, 3},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 20, 3},
    {"gelu", gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }, -1, 10, 8},
    {"gelu_tanh", gelu_tanh, gelu_tanh_of, -1, 10, 8},
    {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, -80, 20, 4},
    {"softplus", softplus, softplus_of, -80, 20, 4},
    {"elu", elu, [](double x) { return x > 0 ? x : std::expm1(x); }, -20, 5, 2},
    {"floor", lockstep::floor, [](double x) { return std::floor(x); }, -5, 5, 0.5, Smooth::no},
    {"ceil", lockstep::ceil, [](double x) { return std::ceil(x); }, -5, 5, 0.5, Smooth::no},
    {"round", lockstep::round, [](double x) { return std::nearbyint(x); }, -5, 5, 0.5, Smooth::no},
};
// clang-format on

struct BinaryRow {
  const char* name;
  Tensor (*op)(const Operand&, const Operand&);
  double (*reference)(double, double);  // in double, of all arguments
  double ulps = 1;                      // what float may be off by
  bool integers = false;                // offered for them
};

inline void PrintTo(const BinaryRow& row, std::ostream* out) { *out << row.name; }

inline double mod_of(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// clang-format off
inline const BinaryRow kBinaryRows[] = {
    {"add", add, [](double a, double b) { return a + b; }, 0.5001, true},
    {"sub", sub, [](double a, double b) { return a - b; }, 0.5001, true},
    {"mul", mul, [](double a, double b) { return a * b; }, 0.5001, true},
    {"div", lockstep::div, [](double a, double b) { return a / b; }, 0.5001},
    {"pow", lockstep::pow, [](double a, double b) { return std::pow(a, b); }, 0.6},
    {"maximum", maximum, [](double a, double b) { return std::isnan(a) || a > b ? a : b; }, 0.5, true},
    {"minimum", minimum, [](double a, double b) { return std::isnan(a) || a < b ? a : b; }, 0.5, true},
    {"mod", mod, mod_of, 0.5001, true},
    {"squared_difference", squared_difference, [](double a, double b) { return (a - b) * (a - b); }, 2.6, true},
    {"leaky_relu", leaky_relu, [](double a, double b) { return a > 0 ? a : a * b; }, 0.5001},
    {"atan2", lockstep::atan2, [](double a, double b) { return std::atan2(a, b); }, 4},
};
// clang-format on

// Units in the last place of a float near `expected`.
inline double ulps_off(float actual, double expected) {
  const float nearest = std::abs(static_cast<float>(expected));
  const double ulp =
      static_cast<double>(std::nextafter(nearest, INFINITY)) - static_cast<double>(nearest);
  return std::abs(static_cast<double>(actual) - expected) / ulp;
}

}  // namespace lockstep::testing
