// SPDX-License-Identifier: Apache-2.0
// Every op on every device that can execute: values and gradients are those of double precision, and
// gradients of double precision are differences.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "ops/every_isa.h"
#include "support/gradient_check.h"
#include "support/op_cases.h"
#include "support/traced.h"

namespace lockstep {
namespace {

using testing::OpCase;
using testing::OpInputs;
using testing::Tensors;

struct Extents {
  std::int64_t rows, columns;
};
constexpr Extents kNothing{0, 6}, kOne{1, 1}, kOdd{7, 5}, kLarge{130, 257};

struct Precision {
  DType dtype;
  double tolerance;  // relative to the largest element, and to 0.1
};
constexpr Precision kPrecisions[] = {
    {DType::f64, 1e-10}, {DType::f32, 1e-5}, {DType::f16, 2e-3}, {DType::bf16, 1e-2}};

std::string describe(const Extents& extents, DType dtype) {
  return std::to_string(extents.rows) + " x " + std::to_string(extents.columns) + ", " +
         std::string(name_of(dtype));
}

std::vector<OpCase> cases_of(const Extents& extents, bool traced = false) {
  std::vector<OpCase> cases = testing::op_cases();
  std::erase_if(cases, [&](const OpCase& c) {
    return (extents.rows == 0 && !c.takes_no_rows) || (traced && !c.traces);
  });
  return cases;
}

std::vector<double> doubles(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

// 16-bit results from which gradients are computed are rounded themselves, of which sums over many
// tell.
double tolerance_at(const Extents& extents, const Precision& precision) {
  const bool half = precision.dtype == DType::f16 || precision.dtype == DType::bf16;
  return half && extents.rows > 100 ? 2 * precision.tolerance : precision.tolerance;
}

// Expects `got` to be `expected` but for the precision of its dtype.
void expect_near(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(got.shape(), expected.shape());
  const std::vector<double> a = doubles(got), b = doubles(expected);
  if (!is_floating(expected.dtype())) tolerance = 0;
  double largest = 0.1;
  for (const double element : b)
    if (std::isfinite(element)) largest = std::max(largest, std::abs(element));
  int reported = 0;
  for (std::size_t i = 0; i < a.size() && reported < 3; ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (std::abs(a[i] - b[i]) <= tolerance * largest) continue;
    ++reported;
    ADD_FAILURE() << "element " << i << " of " << expected.shape().to_string() << " is " << a[i]
                  << ", expected " << b[i] << "; the largest is " << largest;
  }
}

void expect_near(const Tensors& got, const Tensors& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i ? "gradient " + std::to_string(i) : "value");
    expect_near(got[i], expected[i], tolerance);
  }
}

// The case in double precision by the simplest kernels.
Tensors reference(const OpCase& c, const Extents& extents) {
  const testing::IsaGuard guard;
  set_isa(testing::runnable_isas().front());
  return c.value_and_gradients(OpInputs::on_host(DType::f64, extents.rows, extents.columns));
}

TEST(Ops, GradientsAreCentralDifferences) {
  // Of numbers that no two of are alike.
  const auto point = [](std::uint64_t seed, double offset) {
    return testing::Noise(seed).tensor<double>({3, 4}) + offset;
  };
  OpInputs in = OpInputs::on_host(DType::f64, 3, 4);
  in.row = testing::Noise(13).tensor<double>({4});
  in.weights = testing::Noise(14).tensor<double>({4, 4});
  in.images = testing::Noise(15).tensor<double>({3, 5, 4, 2});
  in.kernel = testing::Noise(16).tensor<double>({2, 2, 2, 2});
  Tensor OpInputs::*const members[] = {&OpInputs::x,       &OpInputs::y,      &OpInputs::row,
                                       &OpInputs::weights, &OpInputs::images, &OpInputs::kernel};
  in.x = point(11, 0);
  in.y = point(12, 2);
  in.condition = greater(in.x, 0);
  for (const OpCase& c : cases_of(kOdd)) {
    SCOPED_TRACE(c.name);
    for (Tensor OpInputs::*const member : members) {
      GradientTape tape;
      tape.watch(in.*member);
      const Tensor value = c.op(in);
      if (value.dtype() != DType::f64 || !tape.gradient(value, {in.*member})[0].defined()) continue;
      if (std::string(c.name).find("stop_gradient") != std::string::npos) continue;
      testing::expect_gradients(
          [&](const Tensors& xs) {
            OpInputs moved = in;
            moved.*member = xs[0];
            return c.op(moved);
          },
          {in.*member});
    }
  }
}

TEST(Ops, AreWhatDoublePrecisionSaysUnderEachIsa) {
  for (const Extents& extents : {kNothing, kOne, kOdd, kLarge})
    for (const OpCase& c : cases_of(extents)) {
      const Tensors expected = reference(c, extents);
      for (const Precision& precision : kPrecisions) {
        SCOPED_TRACE(c.name + (", " + describe(extents, precision.dtype)));
        const OpInputs in = OpInputs::on_host(precision.dtype, extents.rows, extents.columns);
        testing::under_each_isa([&] {
          expect_near(c.value_and_gradients(in), expected, tolerance_at(extents, precision));
        });
      }
    }
}

struct Program {
  Extents extents;
  Precision precision;
};
void PrintTo(const Program& program, std::ostream* out) {
  *out << describe(program.extents, program.precision.dtype);
}
constexpr Program kPrograms[] = {{kNothing, kPrecisions[1]}, {kOne, kPrecisions[1]},
                                 {kOdd, kPrecisions[1]},     {kLarge, kPrecisions[1]},
                                 {kOdd, kPrecisions[0]},     {kOdd, kPrecisions[2]},
                                 {kOdd, kPrecisions[3]},     {kNothing, kPrecisions[3]}};

class OpsXla : public ::testing::TestWithParam<Program> {};
INSTANTIATE_TEST_SUITE_P(Sizes, OpsXla, ::testing::ValuesIn(kPrograms), [](const auto& info) {
  const Extents& extents = info.param.extents;
  return std::to_string(extents.rows) + "x" + std::to_string(extents.columns) +
         std::string(name_of(info.param.precision.dtype));
});

TEST_P(OpsXla, AreWhatDoublePrecisionSays) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const auto& [extents, precision] = GetParam();
  const OpInputs host = OpInputs::on_host(precision.dtype, extents.rows, extents.columns);
  const std::vector<OpCase> cases = cases_of(extents, true);
  constexpr std::size_t kAtOnce = 10;  // in one program
  for (std::size_t first = 0; first < cases.size(); first += kAtOnce) {
    const auto some = std::span(cases).subspan(first, std::min(kAtOnce, cases.size() - first));
    std::vector<std::size_t> counts;
    Tensors inputs;
    host.of([&](const Tensor& each) {
      inputs.push_back(each);
      return each;
    });
    const Tensors all = testing::run_traced(inputs, [&](const Tensors& x) {
      const OpInputs in{x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8]};
      Tensors results;
      for (const OpCase& c : some) {
        const Tensors own = c.value_and_gradients(in);
        counts.push_back(own.size());
        results.insert(results.end(), own.begin(), own.end());
      }
      return results;
    });
    auto next = all.begin();
    for (std::size_t i = 0; i < some.size(); ++i) {
      SCOPED_TRACE(some[i].name + (", " + describe(extents, precision.dtype)));
      const auto end = next + static_cast<std::ptrdiff_t>(counts[i]);
      expect_near(Tensors(next, end), reference(some[i], extents),
                  tolerance_at(extents, precision));
      next = end;
    }
  }
}

}  // namespace
}  // namespace lockstep
