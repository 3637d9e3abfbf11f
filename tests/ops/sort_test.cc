// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/sort.h>

#include <lockstep/ops/gather.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "device/fake/devices.h"
#include "support/by_index.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

constexpr auto kAscending = SortDirection::ascending, kDescending = SortDirection::descending;

// a comes before b; NaN is the largest.
bool before(double a, double b, SortDirection direction) {
  if (direction == kDescending) std::swap(a, b);
  return a < b || (std::isnan(b) && !std::isnan(a));
}

// The places of a list in order.
std::vector<int> ordered(const std::vector<double>& values, SortDirection direction) {
  std::vector<int> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) {
    return before(values[static_cast<std::size_t>(a)], values[static_cast<std::size_t>(b)],
                  direction);
  });
  return places;
}

// argsort along an axis of f64.
std::vector<int> ordered_along(const Tensor& x, int axis, SortDirection direction) {
  std::vector<int> places(static_cast<std::size_t>(x.num_elements()));
  for_each_place(x.shape(), [&](const Place& place) {
    if (place[static_cast<std::size_t>(axis)] != 0) return;
    std::vector<double> row;
    Place at = place;
    auto& i = at[static_cast<std::size_t>(axis)];
    for (i = 0; i < x.dim(axis); ++i) row.push_back(element_at(x, at));
    const auto order = ordered(row, direction);
    for (i = 0; i < x.dim(axis); ++i)
      places[number_of(x.shape(), at)] = order[static_cast<std::size_t>(i)];
  });
  return places;
}

// Small whole numbers, many of them equal.
Tensor ties(const Shape& shape) {
  Noise noise(11);
  return floor(noise.tensor<double>(shape, 4)) + 4;
}

TEST(Sort, EveryAxisDirectionAndDType) {
  for (const Shape& shape : {Shape{5, 3, 7}, Shape{1}, Shape{64, 33}, Shape{2, 1, 300}})
    for (const DType dtype : kAllDTypes) {
      const Tensor own = cast(ties(shape), dtype);
      const Tensor x = cast(own, DType::f64);
      for (int axis = 0; axis < shape.rank(); ++axis)
        for (const SortDirection direction : {kAscending, kDescending}) {
          const SortOptions options{.axis = axis - shape.rank(), .direction = direction};
          const auto places = ordered_along(x, axis, direction);
          const Tensor expected =
              take_along_axis(x, Tensor(shape, std::span<const int>(places)), axis);
          EXPECT_THAT(argsort(own, options), holds<int>(places)) << name_of(dtype);
          EXPECT_THAT(cast(sort(own, options), DType::f64),
                      holds<double>(expected.to_vector<double>()))
              << name_of(dtype);
          EXPECT_EQ(sort(own, options).dtype(), dtype);
        }
    }
}

TEST(Sort, NumbersOfAnySizeAndSign) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor x = vec<double>({3, -infinity, nan, -0.0, 0.0, 1e-310, infinity, -nan, -1e300, 5});
  EXPECT_THAT(argsort(x), holds<int>({1, 8, 3, 4, 5, 0, 9, 6, 2, 7}));
  EXPECT_THAT(argsort(x, {.direction = kDescending}), holds<int>({2, 7, 6, 9, 0, 5, 3, 4, 8, 1}));
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Tensor small = cast(vec<double>({2, nan, -infinity, -2, -0.0, infinity, 0}), dtype);
    EXPECT_THAT(argsort(small), holds<int>({2, 3, 4, 6, 0, 5, 1})) << name_of(dtype);
  }
  EXPECT_THAT(sort(vec<std::int64_t>({5, INT64_MIN, INT64_MAX, -1})),
              holds<std::int64_t>({INT64_MIN, -1, 5, INT64_MAX}));
  EXPECT_THAT(sort(vec<std::int32_t>({5, INT32_MIN, INT32_MAX, -1}), {.direction = kDescending}),
              holds<std::int32_t>({INT32_MAX, 5, -1, INT32_MIN}));
}

TEST(Sort, LongRows) {
  const Tensor noise = Noise(8).tensor<double>({3001}, 1e6);
  for (const Tensor& x : {noise, floor(noise / 1e5)})
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32})
      for (const SortDirection direction : {kAscending, kDescending}) {
        const Tensor own = stack({cast(x, dtype), cast(-x, dtype)});
        const Tensor wide = cast(own, DType::f64);
        const auto places = ordered_along(wide, 1, direction);
        EXPECT_THAT(argsort(own, {.direction = direction}), holds<int>(places)) << name_of(dtype);
        const Tensor expected =
            take_along_axis(wide, Tensor(own.shape(), std::span<const int>(places)));
        EXPECT_THAT(cast(sort(own, {.direction = direction}), DType::f64),
                    holds<double>(expected.to_vector<double>()));
      }
}

TEST(TopK, LargestFirstAndOfEqualOnesTheFirst) {
  const auto [values, indices] = top_k(vec<float>({1, 4, 2, 4, 3, 4}), 4);
  EXPECT_THAT(values, holds<float>({4, 4, 4, 3}));
  EXPECT_THAT(indices, holds<int>({1, 3, 5, 4}));
  for (const DType dtype : kAllDTypes) {
    const Tensor own = cast(ties({3, 41}), dtype);
    const Tensor x = cast(own, DType::f64);
    const auto places = ordered_along(x, 1, kDescending);
    for (const std::int64_t k : {0, 1, 5, 40, 41}) {
      const auto [largest, where_from] = top_k(own, k);
      ASSERT_EQ(largest.shape(), (Shape{3, k}));
      const auto kept = [&](const Place& p) {
        return static_cast<double>(places[number_of(x.shape(), p)]);
      };
      EXPECT_THAT(cast(where_from, DType::f64), holds<double>(by_index(Shape{3, k}, kept)));
      EXPECT_THAT(cast(largest, DType::f64),
                  holds<double>(by_index(Shape{3, k}, [&](const Place& p) {
                    return element_at(x, {p[0], static_cast<std::int64_t>(kept(p))});
                  })));
    }
  }
}

TEST(Sort, EmptyOnes) {
  EXPECT_EQ(sort(zeros({0})).shape(), (Shape{0}));
  EXPECT_EQ(sort(zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(argsort(zeros({3, 0}), {.axis = 0}).shape(), (Shape{3, 0}));
  EXPECT_EQ(top_k(zeros({2, 0}), 0).indices.shape(), (Shape{2, 0}));
}

TEST(Sort, GradientsGoWhereTheValuesCameFrom) {
  const Tensor x = Noise(5).tensor<double>({3, 4, 5});
  for (const int axis : {0, 1, 2})
    for (const SortDirection direction : {kAscending, kDescending}) {
      const SortOptions options{.axis = axis, .direction = direction};
      expect_gradients([&](const auto& xs) { return sort(xs[0], options); }, {x});
      expect_second_gradients([&](const auto& xs) { return square(sort(xs[0], options)); }, {x});
    }
  expect_gradients([](const auto& xs) { return top_k(xs[0], 3).values; }, {x});
  expect_second_gradients([](const auto& xs) { return square(top_k(xs[0], 3).values); }, {x});
  expect_gradients(
      [](const auto& xs) { return take_along_axis(xs[0], argsort(xs[0], {.axis = 1}), 1); }, {x});
}

TEST(Sort, ChecksItsArguments) {
  EXPECT_THAT([] { sort(Tensor(1.0f)); }, throws<InvalidArgument>("[sort]", "has no axes"));
  EXPECT_THAT([] { argsort(zeros({2}), {.axis = 1}); },
              throws<InvalidArgument>("[argsort]", "axis 1", "[2]"));
  EXPECT_THAT(
      [] {
        top_k(zeros({2, 3}), 4);
      },
      throws<InvalidArgument>("[top_k]", "0 to 3", "[2, 3]", "4"));
  EXPECT_THAT([] { top_k(zeros({2, 3}), -1); }, throws<InvalidArgument>("-1"));
  EXPECT_THAT([] { top_k(Tensor(2.0f), 1); }, throws<InvalidArgument>("[top_k]", "has no axes"));
}

TEST(Sort, HasTheBitsOfTheCpuOnADeviceThatRunsLate) {
  const Tensor x = Noise(6).tensor<float>({6, 50});
  const auto expected = top_k(x, 7);
  const fake::Devices devices({.devices = 1, .seed = 4});
  const Device fake{DeviceKind::fake, 0};
  const auto got = top_k(copy_to(x, fake), 7);
  EXPECT_EQ(got.values.device(), fake);
  EXPECT_THAT(got.values, holds<float>(expected.values.to_vector<float>()));
  EXPECT_THAT(got.indices, holds<int>(expected.indices.to_vector<int>()));
  EXPECT_THAT(sort(copy_to(x, fake), {.axis = 0}),
              holds<float>(sort(x, {.axis = 0}).to_vector<float>()));
}

}  // namespace
}  // namespace lockstep
