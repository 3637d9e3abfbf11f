// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>

#include <limits>

#include "support/elementwise_rows.h"
#include "support/errors.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

Tensor drawn(const UnaryRow& row, DType dtype) {
  const double low = std::max(row.low, -20.0), high = std::min(row.high, 20.0);
  const Tensor unit = Noise(7).tensor<double>({3, 17});
  return cast(low + (high - low) * (0.5 * (unit + 1)), dtype);
}

TEST(UnaryXla, EqualsCpuInEveryFloatingDtype) {
  LOCKSTEP_REQUIRE_PLUGIN();
  for (const UnaryRow& row : kUnaryRows) {
    SCOPED_TRACE(row.name);
    const auto f = [&](const Tensors& x) { return Tensors{row.op(x[0], SourceLocation{})}; };
    expect_same_traced({drawn(row, DType::f32)}, f, {.tolerance = 2e-5});
    expect_same_traced({drawn(row, DType::f64)}, f, {.tolerance = 1e-11});
    // A last bit of difference in f32 may round another way.
    expect_same_traced({drawn(row, DType::f16)}, f, {.tolerance = 1e-3, .gradients = false});
    expect_same_traced({drawn(row, DType::bf16)}, f, {.tolerance = 8e-3, .gradients = false});
  }
}

TEST(UnaryXla, KeepsSpecialValuesAndEmptyTensors) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor x = vec({0, -0.0f, 1, -1, inf, -inf, nan, 0.5f, 1.5f, 2.5f, -0.5f});
  const Tensor empty(Shape{0, 3}, std::initializer_list<float>{});
  for (const UnaryRow& row : kUnaryRows) {
    SCOPED_TRACE(row.name);
    const auto f = [&](const Tensors& xs) {
      return Tensors{row.op(xs[0], SourceLocation{}), row.op(xs[1], SourceLocation{})};
    };
    if (row.op == &gelu) continue;  // -inf: 0 times infinity
    expect_same_traced({x, empty}, f, {.tolerance = 2e-6, .gradients = false});
  }
}

TEST(UnaryXla, TakesIntegersAsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const Tensor x(Shape{5}, std::initializer_list<std::int32_t>{
                               -3, 0, 7, std::numeric_limits<std::int32_t>::min(), 2});
  expect_same_traced({x, cast(x, DType::i64), cast(x, DType::u8)}, [](const Tensors& xs) {
    return Tensors{neg(xs[0]),    lockstep::abs(xs[0]), sign(xs[0]),          relu(xs[0]),
                   square(xs[0]), neg(xs[1]),           lockstep::abs(xs[1]), sign(xs[1]),
                   relu(xs[1]),   square(xs[1]),        square(xs[2])};
  });
}

using BinaryFunction = Tensor (*)(const Operand&, const Operand&);
constexpr BinaryFunction kCompare[] = {equal, not_equal, less, less_equal, greater, greater_equal};

TEST(BinaryXla, BroadcastsAndHasGradientsAsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(3);
  const Tensor a = noise.tensor<float>({2, 1, 3}, 0.9) + 1.0, b = noise.tensor<float>({4, 1}) + 1.5;
  for (const auto& [name, op, reference, ulps, integers] : kBinaryRows) {
    SCOPED_TRACE(name);
    const auto f = [&, op = op](const Tensors& x) {
      return Tensors{op(x[0], x[1]), op(x[1], x[0]), op(x[0], 0.75), op(2.0, x[1])};
    };
    expect_same_traced({a, b}, f, {.tolerance = 5e-5});
    expect_same_traced({cast(a, DType::f64), cast(b, DType::f64)}, f, {.tolerance = 1e-11});
    expect_same_traced({cast(a, DType::bf16), cast(b, DType::bf16)}, f,
                       {.tolerance = 8e-3, .gradients = false});
  }
}

TEST(BinaryXla, TakesIntegersAsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const Tensor a(Shape{4}, std::initializer_list<std::int32_t>{-3, 0, 2000000000, 5}),
      b(Shape{4}, std::initializer_list<std::int32_t>{9, -1, 2000000000, 5});
  for (const DType dtype : {DType::i32, DType::i64, DType::u8})
    for (const auto& [name, op, reference, ulps, integers] : kBinaryRows)
      if (integers)
        expect_same_traced({cast(a, dtype), cast(b, dtype)}, [&, op = op](const Tensors& x) {
          return Tensors{op(x[0], x[1]), op(x[1], x[0]), op(x[0], 2)};
        });
}

TEST(CompareXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const float nan = std::nanf("");
  const Tensor a = vec({1, 2, nan, -1}), b = vec({1, 1, nan, 3});
  for (const BinaryFunction op : kCompare)
    expect_same_traced({a, b}, [&](const Tensors& x) {
      return Tensors{op(x[0], x[1]), op(x[0], 1), op(less(x[0], 2), less(x[1], 2))};
    });
  const Tensor n(Shape{3}, std::initializer_list<std::int32_t>{-3, 2, 7});
  for (const DType dtype : {DType::i32, DType::i64, DType::u8})
    for (const BinaryFunction op : kCompare)
      expect_same_traced({cast(n, dtype)}, [&](const Tensors& x) { return Tensors{op(x[0], 2)}; });
  expect_same_traced({a, b}, [](const Tensors& x) {
    const Tensor p = less(x[0], 2), q = less(x[1], 2);
    return Tensors{logical_and(p, q),
                   logical_or(p, q),
                   logical_xor(p, q),
                   logical_not(p),
                   is_finite(x[0]),
                   is_nan(x[0]),
                   is_inf(x[0] / 0),
                   is_finite(x[0] * 1e38f * 2),  // overflows: XLA is not to drop the factors
                   is_inf(x[0] * 1e38f * 2),
                   is_inf(cast(q, DType::i32)),
                   is_nan(cast(q, DType::u8)),
                   is_finite(cast(q, DType::i32)),
                   clamp(x[0], -0.5, 1.5)};
  });
}

TEST(SelectXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(4);
  expect_same_traced(
      {noise.tensor<float>({2, 3}), noise.tensor<float>({3}), noise.tensor<float>({})},
      [](const Tensors& x) {
        const Tensor condition = greater(x[0], 0);
        return Tensors{select(condition, x[0], x[1]), select(condition, x[2], x[0]),
                       select(condition, x[1] * x[1], 0), select(condition, 1, x[1])};
      });
}

TEST(CastXla, EqualsCpuBetweenAllDtypes) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor x =
      vec({0, 1, -1, 2.7f, -2.7f, 300, -300, 3e9f, -3e9f, 1e20f, -1e20f, inf, -inf, nan});
  const Tensor n(Shape{6},
                 std::initializer_list<std::int64_t>{0, 1, -1, 300, 5000000000, -5000000000});
  const DType all[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                       DType::i32, DType::i64, DType::u8,  DType::boolean};
  for (const DType from : all)
    for (const DType to : all)
      expect_same_traced({is_floating(from) ? cast(x, from) : cast(n, from)},
                         [&](const Tensors& xs) { return Tensors{cast(xs[0], to)}; },
                         {.tolerance = 0, .gradients = is_floating(from) && is_floating(to)});
}

TEST(TracedStep, RefusesToReadValues) {
  LOCKSTEP_REQUIRE_PLUGIN();
  expect_same_traced({vec({1, 2})}, [](const Tensors& x) {
    const Tensor y = x[0] * 2;
    if (!y.device().is_host()) {
      EXPECT_THAT([&] { static_cast<void>(y.data<float>()); },
                  throws<FailedPrecondition>("[Tensor::data]", "being traced", "after run"));
      EXPECT_THAT([&] { static_cast<void>(sum(y).item<float>()); },
                  throws<FailedPrecondition>("[Tensor::item]", "select"));
      EXPECT_EQ(y.to_string(), "f32[2]");
    }
    return Tensors{y};
  });
}

TEST(TracedStep, IsWhereTpuTensorsAreComputedWith) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const Tensor x = copy_to(vec({1, 2}), xla::device_at(plugin_client(), 0));
  EXPECT_THAT([&] { x * 2; }, throws<FailedPrecondition>("step function", "copy_to"));
  EXPECT_THAT([&] { static_cast<void>(x.data<float>()); },
              throws<Unavailable>("[Tensor::data]", "TPU:0"));
  EXPECT_EQ(copy_to(Tensor(2.5), x.device()).item<double>(), 2.5);
}

}  // namespace
}  // namespace lockstep
