// SPDX-License-Identifier: Apache-2.0
// Zeros of both signs, infinities, NaN and numbers at the ends of their range, on every device: the
// results are those of NumPy and TensorFlow, by formulas in double.
#include <gmock/gmock.h>
#include <lockstep/ops.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ops/every_isa.h"
#include "support/elementwise_rows.h"
#include "support/traced.h"

namespace lockstep {
namespace {

using testing::BinaryRow;
using testing::Tensors;
using testing::UnaryRow;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMost = 3e38;  // near the largest float

using Numbers = std::vector<double>;

Tensor tensor(const Shape& shape, const Numbers& numbers, DType dtype = DType::f32) {
  return cast(Tensor(shape, std::span<const double>(numbers)), dtype);
}

// As a dtype has it.
Numbers rounded(const Numbers& numbers, DType dtype) {
  const Shape shape{std::ssize(numbers)};
  return cast(tensor(shape, numbers, dtype), DType::f64).to_vector<double>();
}

// Expects `got` to be `expected`, rounded to its dtype, within so many units in the last place.
void expect_numbers(const Tensor& got, const Numbers& expected, double ulps) {
  const Numbers a = cast(got, DType::f64).to_vector<double>();
  const Numbers b = rounded(expected, got.dtype());
  const double ulp = got.dtype() == DType::bf16  ? 0x1p-8
                     : got.dtype() == DType::f16 ? 0x1p-11
                                                 : 0x1p-23;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    // What is below the least normal number may become zero.
    if (std::abs(a[i] - b[i]) <= ulps * ulp * std::abs(b[i]) + 0x1p-126) continue;
    ADD_FAILURE() << "element " << i << " is " << a[i] << ", expected " << b[i];
  }
}

using Function = std::function<Tensors(const Tensors& x)>;

// Runs f on a device and expects its result.
struct OnEachIsa {
  static constexpr bool kSubnormals = true;
  void operator()(const Tensors& inputs, const Function& f, const Numbers& expected) const {
    testing::under_each_isa([&] { expect_numbers(f(inputs)[0], expected, 8); });
  }
};
// TPUs, and XLA on CPUs, take operands below the least normal number for zeros, and have fewer digits
// where formulas cancel.
struct ByXla {
  static constexpr bool kSubnormals = false;
  void operator()(const Tensors& inputs, const Function& f, const Numbers& expected) const {
    expect_numbers(testing::run_traced(inputs, f)[0], expected, 32);
  }
};

// ---- element by element: more elements than a vector has, and a rest

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

Numbers unary_points(DType dtype, bool subnormals) {
  Numbers points;
  while (points.size() < 67)
    for (const double special :
         {0.0, -0.0, kInf, -kInf, kNan, -1.0, 1e-40, -1e-40, kMost, -kMost, 1e7, 0.5, -2.5})
      if (subnormals || std::abs(special) != 1e-40) points.push_back(special);
  return rounded(points, dtype);
}

void check_unary(const auto& run) {
  for (const UnaryRow& row : testing::kUnaryRows)
    for (const DType dtype : kFloats) {
      SCOPED_TRACE(row.name + (" of " + std::string(name_of(dtype))));
      const Numbers points = unary_points(dtype, run.kSubnormals);
      Numbers expected;
      for (const double x : points) expected.push_back(row.reference(x));
      run(
          {tensor({std::ssize(points)}, points, dtype)},
          [&](const Tensors& x) { return Tensors{row.op(x[0], SourceLocation{})}; }, expected);
    }
}

void check_binary(const auto& run) {
  const double values[] = {0.0, -0.0, 1,     -1,   0.5,   -0.5,   2,   -2,
                           3,   kInf, -kInf, kNan, kMost, -kMost, 2e7, 16777217};
  for (const BinaryRow& row : testing::kBinaryRows)
    for (const DType dtype : kFloats) {
      SCOPED_TRACE(row.name + (" of " + std::string(name_of(dtype))));
      Numbers left, right, expected;
      for (const double a : values)
        for (const double b : values) {
          left.push_back(a);
          right.push_back(b);
        }
      left = rounded(left, dtype);
      right = rounded(right, dtype);
      for (std::size_t i = 0; i < left.size(); ++i)
        expected.push_back(row.reference(left[i], right[i]));
      const Shape shape{std::ssize(left)};
      run(
          {tensor(shape, left, dtype), tensor(shape, right, dtype)},
          [&](const Tensors& x) { return Tensors{row.op(x[0], x[1])}; }, expected);
    }
}

TEST(Special, ValuesOfOneOperandUnderEachIsa) { check_unary(OnEachIsa{}); }
TEST(Special, ValuesOfTwoOperandsUnderEachIsa) { check_binary(OnEachIsa{}); }
TEST(SpecialXla, ValuesOfOneOperand) {
  LOCKSTEP_REQUIRE_PLUGIN();
  check_unary(ByXla{});
}
TEST(SpecialXla, ValuesOfTwoOperands) {
  LOCKSTEP_REQUIRE_PLUGIN();
  check_binary(ByXla{});
}

// ---- rows

// An op along the rows of x [rows, 5], and what it makes of a row.
struct RowCase {
  const char* name;
  Tensor (*op)(const Tensor& x);
  Numbers (*reference)(const Numbers& row);
};

double sum_of(const Numbers& row) {
  double sum = 0;
  for (const double x : row) sum += x;
  return sum;
}
// Sums of floats overflow where floats do.
double mean_of(const Numbers& row) {
  return static_cast<double>(static_cast<float>(sum_of(row))) / static_cast<double>(row.size());
}
double largest(const Numbers& row) {
  double result = -kInf;
  for (const double x : row)
    if (std::isnan(x) || x > result) result = x;
  return result;
}
Numbers each(const Numbers& row, const std::function<double(double)>& f) {
  Numbers result;
  for (const double x : row) result.push_back(f(x));
  return result;
}
double log_sum_exp(const Numbers& row) {
  const double top = largest(row);
  if (std::isinf(top) || std::isnan(top)) return top;
  return top + std::log(sum_of(each(row, [=](double x) { return std::exp(x - top); })));
}
// exp(x - max) / sum(exp(x - max)): NaN with an infinity at the top, as NumPy's and TensorFlow's.
Numbers softmax_of(const Numbers& row) {
  const double top = largest(row);
  const Numbers exps = each(row, [=](double x) { return std::exp(x - top); });
  const double total = sum_of(exps);
  return each(exps, [=](double x) { return x / total; });
}
Numbers log_softmax_of(const Numbers& row) {
  const double top = largest(row);
  const double total = std::log(sum_of(each(row, [=](double x) { return std::exp(x - top); })));
  return each(row, [=](double x) { return x - top - total; });
}
double variance_of(const Numbers& row) {
  const double mean = mean_of(row);
  return mean_of(each(row, [=](double x) { return (x - mean) * (x - mean); }));
}
Numbers cumulated(const Numbers& row) {
  double sum = 0;
  return each(row, [&](double x) { return sum += x; });
}
// NaN is the largest.
bool before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }
Numbers in_order(const Numbers& row) {
  Numbers sorted = row;
  std::stable_sort(sorted.begin(), sorted.end(), before);
  return sorted;
}
// Of neighbours; NaN is larger than all.
Numbers pooled(const Numbers& row, bool max) {
  Numbers result;
  for (std::size_t i = 0; i + 1 < row.size(); ++i)
    result.push_back(max ? std::isnan(row[i + 1]) || row[i + 1] > row[i] ? row[i + 1] : row[i]
                         : mean_of({row[i], row[i + 1]}));
  return result;
}

Tensor lines(const Tensor& x) { return reshape(x, {x.shape()[0], 5, 1}); }

const RowCase kRowCases[] = {
    {"sum", [](const Tensor& x) { return sum(x, {.axes = {1}}); },
     [](const Numbers& r) { return Numbers{sum_of(r)}; }},
    {"mean", [](const Tensor& x) { return mean(x, {.axes = {1}}); },
     [](const Numbers& r) { return Numbers{mean_of(r)}; }},
    {"prod", [](const Tensor& x) { return prod(x, {.axes = {1}}); },
     [](const Numbers& r) {
       double product = 1;
       for (const double x : r) product *= x;
       return Numbers{product};
     }},
    {"max", [](const Tensor& x) { return max(x, {.axes = {1}}); },
     [](const Numbers& r) { return Numbers{largest(r)}; }},
    {"min", [](const Tensor& x) { return min(x, {.axes = {1}}); },
     [](const Numbers& r) { return Numbers{-largest(each(r, [](double x) { return -x; }))}; }},
    {"variance", [](const Tensor& x) { return variance(x, {.axes = {1}}); },
     [](const Numbers& r) { return Numbers{variance_of(r)}; }},
    {"stddev", [](const Tensor& x) { return stddev(x, {.axes = {1}}); },
     [](const Numbers& r) { return Numbers{std::sqrt(variance_of(r))}; }},
    {"logsumexp", [](const Tensor& x) { return logsumexp(x, {.axes = {1}}); },
     [](const Numbers& r) { return Numbers{log_sum_exp(r)}; }},
    {"argmax", [](const Tensor& x) { return argmax(x, 1); },
     [](const Numbers& r) {
       return Numbers{
           static_cast<double>(std::max_element(r.begin(), r.end(), before) - r.begin())};
     }},
    {"cumsum", [](const Tensor& x) { return cumsum(x, {.axis = 1}); }, cumulated},
    {"softmax", [](const Tensor& x) { return softmax(x); }, softmax_of},
    {"log_softmax", [](const Tensor& x) { return log_softmax(x); }, log_softmax_of},
    {"sort", [](const Tensor& x) { return sort(x); }, in_order},
    {"top_k", [](const Tensor& x) { return top_k(x, 2).values; },
     [](const Numbers& r) {
       const Numbers sorted = in_order(r);
       return Numbers{sorted[4], sorted[3]};
     }},
    {"matmul with ones",
     [](const Tensor& x) {
       return matmul(x, ones({5, 1}, x.dtype()));
     },
     [](const Numbers& r) { return Numbers{sum_of(r)}; }},
    {"conv1d of pairs",
     [](const Tensor& x) {
       return conv1d(lines(x), ones({2, 1, 1}, x.dtype()), Tensor());
     },
     [](const Numbers& r) { return each(pooled(r, false), [](double x) { return 2 * x; }); }},
    {"max_pool1d", [](const Tensor& x) { return max_pool1d(lines(x), {.strides = 1}); },
     [](const Numbers& r) { return pooled(r, true); }},
    {"avg_pool1d", [](const Tensor& x) { return avg_pool1d(lines(x), {.strides = 1}); },
     [](const Numbers& r) { return pooled(r, false); }},
    {"clamp", [](const Tensor& x) { return clamp(x, -2, 2); },
     [](const Numbers& r) {
       return each(r, [](double x) { return std::isnan(x) ? x : std::clamp(x, -2.0, 2.0); });
     }},
    {"select of what is not NaN", [](const Tensor& x) { return select(is_nan(x), 7, x); },
     [](const Numbers& r) { return each(r, [](double x) { return std::isnan(x) ? 7 : x; }); }},
    {"sigmoid_cross_entropy with 0",
     [](const Tensor& x) {
       return sigmoid_cross_entropy(zeros({x.shape()[0], 5}, x.dtype()), x);
     },
     [](const Numbers& r) {
       return each(r, [](double x) { return testing::softplus_of(x) - 0 * x; });
     }},
    {"is_finite_all", [](const Tensor& x) { return reshape(is_finite_all(std::span(&x, 1)), {1}); },
     nullptr},
};

const Numbers kRows[] = {
    {1, 2, kNan, 3, 4},
    {kNan, 1, 2, 3, 4},
    {kInf, 1, 2, 3, -4},
    {1, -kInf, 2, 3, 4},
    {kInf, -kInf, 0, 1, 2},
    {kInf, kNan, 1, -kInf, 2},
    {kMost, 1, -1, 0, 0.5},
    {kMost, kMost, 1, 2, 3},
    {-kMost, 1, 2, 3, 4},
    {0, -0.0, 0, -0.0, 0},
    {-kInf, -kInf, -kInf, -kInf, -kInf},
    {kNan, kNan, kNan, kNan, kNan},
    {1e5, -1e5, 1, 2, 3},
    {1e-30, 1e-30, 2e-30, 0, 1},
    {88, 89, -104, -200, 0},
    {kInf, kInf, 1, 2, 3},
};

void check_rows(const auto& run) {
  Numbers all;
  for (const Numbers& row : kRows) all.insert(all.end(), row.begin(), row.end());
  all = rounded(all, DType::f32);
  const std::int64_t rows = std::ssize(kRows);
  for (const RowCase& c : kRowCases) {
    SCOPED_TRACE(c.name);
    Numbers expected;
    for (auto row = all.begin(); c.reference && row != all.end(); row += 5)
      std::ranges::copy(c.reference(Numbers(row, row + 5)), std::back_inserter(expected));
    if (!c.reference) expected = {0};
    run(
        {tensor({rows, 5}, all)}, [&](const Tensors& x) { return Tensors{c.op(x[0])}; }, expected);
  }
}

TEST(Special, ValuesOfRowsUnderEachIsa) { check_rows(OnEachIsa{}); }
TEST(SpecialXla, ValuesOfRows) {
  LOCKSTEP_REQUIRE_PLUGIN();
  check_rows(ByXla{});
}

}  // namespace
}  // namespace lockstep
