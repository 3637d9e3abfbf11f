// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

struct CompareCase {
  const char* name;
  Tensor (*op)(const Operand&, const Operand&);
  bool less, same, more, nan;  // of 1 and 2, 2 and 2, 3 and 2, NaN and 2
};

const CompareCase kCases[] = {
    {"equal", equal, false, true, false, false},
    {"not_equal", not_equal, true, false, true, true},
    {"less", less, true, false, false, false},
    {"less_equal", less_equal, true, true, false, false},
    {"greater", greater, false, false, true, false},
    {"greater_equal", greater_equal, false, true, true, false},
};

TEST(Compare, OrdersNumbersOfEveryDtype) {
  for (const CompareCase& row : kCases)
    for (const DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
      const Tensor x = cast(vec<double>({1, 2, 3}), dtype);
      EXPECT_THAT(row.op(x, 2), holds<bool>({row.less, row.same, row.more}))
          << row.name << name_of(dtype);
      EXPECT_THAT(row.op(x, cast(vec<double>({2, 2, 2}), dtype)),
                  holds<bool>({row.less, row.same, row.more}));
      EXPECT_THAT(row.op(2, x), holds<bool>({row.more, row.same, row.less}));
    }
}

TEST(Compare, OnlyNotEqualHoldsOfNaN) {
  for (const CompareCase& row : kCases)
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      EXPECT_EQ(row.op(cast(vec<double>({NAN}), dtype), 2).item<bool>(), row.nan) << row.name;
}

TEST(Compare, BroadcastsAndTakesBooleans) {
  const Tensor x(Shape{2, 1}, {1.0f, 3.0f});
  EXPECT_THAT(less(x, vec<float>({1, 2, 4})), holds<bool>({false, true, true, false, false, true}));
  EXPECT_THAT(equal(vec<bool>({true, false}), vec<bool>({true, true})), holds<bool>({true, false}));
  EXPECT_EQ(equal(zeros({0, 3}), 1).shape(), (Shape{0, 3}));
  EXPECT_THAT([] { equal(vec<float>({1}), vec<std::int32_t>({1})); },
              throws<InvalidArgument>("[equal]", "f32", "i32"));
}

TEST(Compare, LogicTakesBooleansOnly) {
  const Tensor a = vec<bool>({false, false, true, true}), b = vec<bool>({false, true, false, true});
  EXPECT_THAT(logical_and(a, b), holds<bool>({false, false, false, true}));
  EXPECT_THAT(logical_or(a, b), holds<bool>({false, true, true, true}));
  EXPECT_THAT(logical_xor(a, b), holds<bool>({false, true, true, false}));
  EXPECT_THAT(logical_xor(a, true), holds<bool>({true, true, false, false}));
  EXPECT_THAT([] { logical_xor(vec<float>({1}), vec<float>({1})); },
              throws<InvalidArgument>("[logical_xor]", "f32"));
  EXPECT_THAT(logical_not(b), holds<bool>({true, false, true, false}));
  EXPECT_THAT(logical_and(a, true), holds<bool>({false, false, true, true}));
  EXPECT_THAT([] { logical_and(vec<float>({1}), vec<float>({1})); },
              throws<InvalidArgument>("[logical_and]", "f32"));
  EXPECT_THAT([] { logical_not(vec<float>({1})); },
              throws<InvalidArgument>("[logical_not]", "f32"));
}

TEST(Compare, FiniteIsNeitherInfiniteNorNaN) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    EXPECT_THAT(is_finite(cast(vec<double>({0, -INFINITY, NAN, 6e4, INFINITY}), dtype)),
                holds<bool>({true, false, false, true, false}))
        << name_of(dtype);
  EXPECT_THAT(is_finite(vec<std::int32_t>({1})), holds<bool>({true}));
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor x = cast(vec<double>({0, -INFINITY, NAN, 6e4, INFINITY}), dtype);
    EXPECT_THAT(is_nan(x), holds<bool>({false, false, true, false, false})) << name_of(dtype);
    EXPECT_THAT(is_inf(x), holds<bool>({false, true, false, false, true})) << name_of(dtype);
  }
  EXPECT_THAT(is_nan(vec<std::int64_t>({1})), holds<bool>({false}));
  EXPECT_THAT(is_inf(vec<std::uint8_t>({255})), holds<bool>({false}));
  EXPECT_EQ(is_nan(zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_THAT([] { is_inf(vec<bool>({true})); }, throws<InvalidArgument>("[is_inf]", "bool"));
  EXPECT_THAT([] { is_finite(vec<bool>({true})); }, throws<InvalidArgument>("[is_finite]", "bool"));
}

TEST(Select, PicksOfEveryDtype) {
  const Tensor condition = vec<bool>({true, false, true});
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    const Tensor a = cast(vec<double>({1, 2, 3}), dtype), b = cast(vec<double>({7, 8, 9}), dtype);
    EXPECT_THAT(cast(select(condition, a, b), DType::f64), holds<double>({1, 8, 3}))
        << name_of(dtype);
    EXPECT_THAT(cast(select(condition, a, 5), DType::f64), holds<double>({1, 5, 3}));
    EXPECT_THAT(cast(select(condition, 5, b), DType::f64), holds<double>({5, 8, 5}));
  }
  EXPECT_THAT(select(condition, vec<bool>({true, true, true}), false),
              holds<bool>({true, false, true}));
}

TEST(Select, AllThreeBroadcast) {
  const Tensor rows(Shape{2, 1}, {true, false});
  const Tensor a = vec<float>({1, 2, 3});
  EXPECT_THAT(select(rows, a, -1), holds<float>({1, 2, 3, -1, -1, -1}));
  EXPECT_THAT(select(Tensor(true), a, Tensor(Shape{2, 1}, {8.0f, 9.0f})),
              holds<float>({1, 2, 3, 1, 2, 3}));
  EXPECT_THAT(select(rows, Tensor(Shape{2, 1}, {8.0f, 9.0f}), a), holds<float>({8, 8, 8, 1, 2, 3}));
  EXPECT_THAT([&] { select(rows, vec<float>({1, 2}), a); }, throws<InvalidArgument>("[2] and [3]"));
  EXPECT_THAT([&] { select(a, a, a); }, throws<InvalidArgument>("condition", "f32"));
  EXPECT_THAT([&] { select(rows, a, vec<double>({1})); }, throws<InvalidArgument>("f32", "f64"));
}

TEST(Select, WhatIsNotSelectedDoesNotMatter) {
  const Tensor x = vec<double>({-1, 4});
  GradientTape tape;
  tape.watch(x);
  // sqrt of -1 is NaN; its row is not selected, and its gradient stays out of x's.
  const Tensor safe = select(greater(x, 0), x, 1);
  const Tensor y = select(greater(x, 0), lockstep::sqrt(safe), 0);
  EXPECT_THAT(y, holds<double>({0, 2}));
  EXPECT_THAT(tape.gradient(y, {x})[0], holds<double>({0, 0.25}));
  EXPECT_THAT(select(vec<bool>({false}), vec<float>({NAN}), vec<float>({3})), holds<float>({3}));
}

TEST(Select, GradientsGoWhereTheValueCameFrom) {
  const Tensor condition(Shape{2, 3}, {true, false, true, false, false, true});
  Noise noise(1);
  expect_gradients([&](const std::vector<Tensor>& xs) { return select(condition, xs[0], xs[1]); },
                   {noise.tensor<double>({2, 3}), noise.tensor<double>({3})});
  expect_gradients([&](const std::vector<Tensor>& xs) { return select(condition, 1, xs[0]); },
                   {noise.tensor<double>({2, 1})});
  expect_second_gradients(
      [&](const std::vector<Tensor>& xs) { return square(select(condition, xs[0], xs[1])); },
      {noise.tensor<double>({2, 3}), noise.tensor<double>({3})});
}

TEST(Clamp, HoldsValuesBetweenBounds) {
  const Tensor x = vec<float>({-2, -1, 0, 1, 2});
  EXPECT_THAT(clamp(x, -1, 1), holds<float>({-1, -1, 0, 1, 1}));
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(clamp(x, -1, 1), {x})[0], holds<float>({0, 1, 1, 1, 0}));
  EXPECT_TRUE(std::isnan(clamp(vec<float>({NAN}), 0, 1).item<float>()));
}

TEST(Clamp, TakesNumbersAndTensorsOfEveryDtype) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    const Tensor x = cast(range(0, 3000), dtype);
    const Tensor expected = minimum(maximum(x, 20), 90);
    for (const Tensor& y : {clamp(x, 20, 90), clamp(x, cast(Tensor(20), dtype), 90)}) {
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_THAT(cast(y, DType::f64),
                  holds<double>(cast(expected, DType::f64).to_vector<double>()))
          << name_of(dtype);
    }
  }
  EXPECT_THAT([] { clamp(vec<std::uint8_t>({1}), -1, 3); }, throws<InvalidArgument>("-1", "u8"));
  EXPECT_THAT([] { clamp(vec<bool>({true}), 0, 1); }, throws<InvalidArgument>("bool"));
  expect_second_gradients([](const std::vector<Tensor>& xs) { return square(clamp(xs[0], -1, 1)); },
                          {vec<double>({-2, -0.5, 0.25, 3})});
}

}  // namespace
}  // namespace lockstep
