// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/shape_ops.h>

#include <functional>

#include "support/by_index.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

using Range = SliceRange;

// The places that begin:end:stride walks through, by walking.
std::vector<std::int64_t> walked(const Range& range, std::int64_t size) {
  const auto from_front = [&](std::int64_t place) { return place < 0 ? place + size : place; };
  std::vector<std::int64_t> places;
  if (range.stride > 0) {
    const std::int64_t begin =
        range.begin ? std::max<std::int64_t>(from_front(*range.begin), 0) : 0;
    const std::int64_t end = range.end ? from_front(*range.end) : size;
    for (std::int64_t i = begin; i < size && i < end; i += range.stride) places.push_back(i);
  } else {
    const std::int64_t begin =
        range.begin ? std::min(from_front(*range.begin), size - 1) : size - 1;
    const std::int64_t end = range.end ? from_front(*range.end) : -1;
    for (std::int64_t i = begin; i >= 0 && i > end; i += range.stride) places.push_back(i);
  }
  return places;
}

TEST(StridedSlice, WalksAsNumPy) {
  // list(range(6))[b:e:s]
  const struct {
    Range range;
    std::vector<double> expected;
  } rows[] = {
      {{}, {0, 1, 2, 3, 4, 5}},
      {{.begin = 1, .end = -1}, {1, 2, 3, 4}},
      {{.begin = -2}, {4, 5}},
      {{.end = 100, .stride = 4}, {0, 4}},
      {{.stride = -1}, {5, 4, 3, 2, 1, 0}},
      {{.begin = 4, .end = 0, .stride = -2}, {4, 2}},
      {{.begin = 10, .stride = -3}, {5, 2}},
      {{.end = -5, .stride = -1}, {5, 4, 3, 2}},
      {{.begin = -100, .end = 2}, {0, 1}},
      {{.begin = 3, .end = 3}, {}},
      {{.begin = 4, .end = 2}, {}},
      {{.begin = 2, .stride = INT64_MAX}, {2}},
      {{.begin = 2, .stride = INT64_MIN}, {2}},
      {{.begin = INT64_MIN, .end = INT64_MAX, .stride = 5}, {0, 5}},
  };
  for (const auto& row : rows)
    EXPECT_THAT(strided_slice(counted({6}), {row.range}), holds<double>(row.expected));
}

TEST(StridedSlice, EveryRangeOfSmallAxes) {
  std::vector<std::optional<std::int64_t>> places{std::nullopt};
  for (std::int64_t place = -6; place <= 6; ++place) places.emplace_back(place);
  for (std::int64_t size = 0; size <= 4; ++size)
    for (const auto& begin : places)
      for (const auto& end : places)
        for (const std::int64_t stride : {1, 2, 3, 7, -1, -2, -3, -7}) {
          const Range range{begin, end, stride};
          const auto expected = walked(range, size);
          const Tensor y = strided_slice(counted({size}), {range});
          ASSERT_THAT(y, holds<double>({expected.begin(), expected.end()}))
              << "size " << size << ", " << begin.value_or(99) << ":" << end.value_or(99) << ":"
              << stride;
        }
}

const std::vector<Range> kBoxes[] = {
    {},
    {{.stride = 2}},
    {{}, {.begin = 1, .stride = 3}},
    {{.stride = -1}, {.stride = -1}, {.stride = -1}},
    {{.begin = -1, .end = 0, .stride = -2}, {.end = 4}, {.begin = 1, .stride = 2}},
    {{.begin = 1, .end = 2}, {.stride = -3}},
    {{}, {.begin = 3, .end = 3}},
};

TEST(StridedSlice, BoxesOfEveryDType) {
  const Tensor x = counted({3, 5, 4});
  for (const auto& ranges : kBoxes) {
    std::vector<std::int64_t> along[3];
    std::vector<std::int64_t> extents;
    for (int axis = 0; axis < 3; ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      along[i] = walked(i < ranges.size() ? ranges[i] : Range{}, x.dim(axis));
      extents.push_back(static_cast<std::int64_t>(along[i].size()));
    }
    const Shape shape{extents};
    for (const DType dtype : kAllDTypes) {
      const Tensor y = strided_slice(cast(x, dtype), ranges);
      ASSERT_EQ(y.shape(), shape);
      EXPECT_THAT(cast(y, DType::f64),
                  holds<double>(by_index(shape,
                                         [&](const Place& place) {
                                           const double element = element_at(
                                               x,
                                               {along[0].at(static_cast<std::size_t>(place[0])),
                                                along[1].at(static_cast<std::size_t>(place[1])),
                                                along[2].at(static_cast<std::size_t>(place[2]))});
                                           return dtype == DType::boolean ? element != 0 : element;
                                         })))
          << name_of(dtype);
    }
  }
}

TEST(StridedSlice, GradientPutsElementsBack) {
  const Tensor x = Noise(1).tensor<double>({3, 5, 4});
  for (const auto& ranges : kBoxes) {
    const Tensor dy = strided_slice(counted({3, 5, 4}) + 1, ranges);
    const Tensor dx = strided_slice_gradient(dy, x.shape(), ranges);
    EXPECT_THAT(strided_slice(dx, ranges), holds<double>(dy.to_vector<double>()));
    double sum_dy = 0, sum_dx = 0;
    for (const double value : dy.data<double>()) sum_dy += value;
    for (const double value : dx.data<double>()) sum_dx += value;
    EXPECT_EQ(sum_dx, sum_dy) << "the rest is zero";
    expect_gradients([&](const auto& xs) { return strided_slice(xs[0], ranges); }, {x});
    if (dy.num_elements() == 0) continue;
    expect_second_gradients([&](const auto& xs) { return square(strided_slice(xs[0], ranges)); },
                            {x});
    expect_gradients(
        [&](const auto& xs) { return strided_slice_gradient(xs[0], x.shape(), ranges); }, {dy});
  }
}

TEST(StridedSlice, ChecksItsRanges) {
  const Tensor x = counted({2, 3});
  EXPECT_THAT(
      [&] {
        strided_slice(x, {{}, {.stride = 0}});
      },
      throws<InvalidArgument>("[strided_slice]", "axis 1", "[2, 3]", "is 0"));
  EXPECT_THAT(
      [&] {
        strided_slice(x, {{}, {}, {}});
      },
      throws<InvalidArgument>("[strided_slice]", "3", "[2, 3]"));
  EXPECT_THAT(
      [&] {
        strided_slice_gradient(x, {4, 3}, {{.stride = 4}});
      },
      throws<InvalidArgument>("[strided_slice_gradient]", "[1, 3]", "[4, 3]", "[2, 3]"));
  EXPECT_EQ(strided_slice(Tensor(3.0), {}).item<double>(), 3);
}

TEST(Reverse, EverySetOfAxes) {
  const Tensor x = counted({3, 1, 4});
  for (unsigned set = 0; set < 8; ++set) {
    std::vector<int> axes;
    for (int axis = 0; axis < 3; ++axis)
      if (set >> axis & 1) axes.push_back(axis % 2 ? axis - 3 : axis);
    const auto expected = by_index(x.shape(), [&](Place place) {
      for (int axis = 0; axis < 3; ++axis) {
        auto& index = place[static_cast<std::size_t>(axis)];
        if (set >> axis & 1) index = x.dim(axis) - 1 - index;
      }
      return element_at(x, place);
    });
    EXPECT_THAT(reverse(x, axes), holds<double>(expected));
  }
  EXPECT_THAT([&] { reverse(x, {0, -3}); }, throws<InvalidArgument>("[reverse]", "axis -3", "twice"));
  EXPECT_THAT([&] { reverse(x, {3}); }, throws<InvalidArgument>("[reverse]", "axis 3"));
}

TEST(Roll, MovesAroundTheEnd) {
  EXPECT_THAT(roll(counted({5}), {2}, {0}), holds<double>({3, 4, 0, 1, 2}));
  EXPECT_THAT(roll(counted({5}), {-2}, {0}), holds<double>({2, 3, 4, 0, 1}));
  const Tensor x = counted({3, 4, 2});
  const struct {
    std::vector<std::int64_t> shifts;
    std::vector<int> axes;
    std::int64_t total[3];
  } rows[] = {
      {{}, {}, {0, 0, 0}},
      {{1}, {1}, {0, 1, 0}},
      {{7, -5}, {0, 1}, {7, -5, 0}},
      {{1, 1, 4}, {-1, 0, -1}, {1, 0, 5}},
      {{INT64_MAX, INT64_MIN}, {0, 0}, {-1, 0, 0}},
  };
  for (const auto& row : rows)
    for (const DType dtype : kAllDTypes) {
      const auto expected = by_index(x.shape(), [&](Place place) {
        for (int axis = 0; axis < 3; ++axis) {
          auto& index = place[static_cast<std::size_t>(axis)];
          index = ((index - row.total[axis]) % x.dim(axis) + x.dim(axis)) % x.dim(axis);
        }
        return dtype == DType::boolean ? element_at(x, place) != 0 : element_at(x, place);
      });
      EXPECT_THAT(cast(roll(cast(x, dtype), row.shifts, row.axes), DType::f64),
                  holds<double>(expected));
    }
  EXPECT_EQ(roll(zeros({0, 2}), {1, 1}, {0, 1}).shape(), (Shape{0, 2}));
  EXPECT_THAT([&] { roll(x, {1}, {0, 1}); }, throws<InvalidArgument>("[roll]", "1", "2"));
  EXPECT_THAT([&] { roll(x, {1}, {3}); }, throws<InvalidArgument>("[roll]", "axis 3"));
}

TEST(Tile, RepeatsAlongEveryAxis) {
  const Tensor x = counted({2, 3, 2});
  for (const std::vector<std::int64_t>& times : std::vector<std::vector<std::int64_t>>{
           {1, 1, 1}, {2, 1, 1}, {1, 1, 3}, {2, 3, 2}, {1, 0, 2}, {5, 1, 2}})
    for (const DType dtype : kAllDTypes) {
      const Shape shape{2 * times[0], 3 * times[1], 2 * times[2]};
      const Tensor y = tile(cast(x, dtype), times);
      ASSERT_EQ(y.shape(), shape);
      EXPECT_THAT(cast(y, DType::f64), holds<double>(by_index(shape, [&](const Place& p) {
                    const double element = element_at(x, {p[0] % 2, p[1] % 3, p[2] % 2});
                    return dtype == DType::boolean ? element != 0 : element;
                  })));
    }
  const Tensor deep = counted({1, 2, 1, 2, 1, 1, 2, 1});
  EXPECT_EQ(tile(deep, {2, 1, 2, 1, 2, 1, 1, 2}).shape(), (Shape{2, 2, 2, 2, 2, 1, 2, 2}));
  EXPECT_EQ(tile(Tensor(2.0), {}).item<double>(), 2);
  EXPECT_EQ(tile(zeros({0, 2}), {3, 2}).shape(), (Shape{0, 4}));
  EXPECT_THAT([&] { tile(x, {1, 2}); }, throws<InvalidArgument>("[tile]", "3", "[2, 3, 2]", "2"));
  EXPECT_THAT([&] { tile(x, {1, -1, 1}); }, throws<InvalidArgument>("[tile]", "axis 1", "-1"));
  EXPECT_THAT([&] { tile(x, {1, INT64_MAX, 1}); }, throws<InvalidArgument>("[tile]", "[2, 3, 2]"));
}

TEST(Unstack, UndoesStack) {
  const Tensor x = counted({2, 3});
  const auto columns = unstack(x, -1);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_THAT(columns[1], holds<double>({1, 4}));
  EXPECT_EQ(columns[1].shape(), (Shape{2}));
  EXPECT_THAT(stack(columns, 1), holds<double>(x.to_vector<double>()));
  EXPECT_THAT(unstack(x)[1], holds<double>({3, 4, 5}));
  EXPECT_TRUE(unstack(zeros({0, 3})).empty());
  EXPECT_THAT([&] { unstack(x, 2); }, throws<InvalidArgument>("[unstack]", "axis 2"));
}

// The place that a padded one repeats, -1 where it repeats none.
std::int64_t repeated(std::int64_t place, std::int64_t size, PadMode mode) {
  if (place >= 0 && place < size) return place;
  if (mode == PadMode::constant) return -1;
  const std::int64_t skipped = mode == PadMode::reflect ? 1 : 0;
  return place < 0 ? -1 - place + skipped : 2 * size - 1 - place - skipped;
}

TEST(Pad, EveryModeAndDType) {
  const Tensor x = counted({3, 1, 4}) + 1;
  const struct {
    std::vector<std::int64_t> before, after;
  } rows[] = {{{0, 0, 0}, {0, 0, 0}}, {{2, 0, 1}, {1, 0, 3}}, {{0, 0, 3}, {2, 0, 0}}};
  for (const auto& row : rows)
    for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::symmetric})
      for (const DType dtype : kAllDTypes) {
        const Shape shape{3 + row.before[0] + row.after[0], 1, 4 + row.before[2] + row.after[2]};
        const double value = dtype == DType::boolean ? 1 : 7;
        const auto expected = by_index(shape, [&](Place place) {
          for (const int axis : {0, 2}) {
            const auto i = static_cast<std::size_t>(axis);
            place[i] = repeated(place[i] - row.before[i], x.dim(axis), mode);
            if (place[i] < 0) return value;
          }
          return dtype == DType::boolean ? 1 : element_at(x, place);
        });
        const Tensor y = pad(cast(x, dtype), row.before, row.after, {.mode = mode, .value = value});
        EXPECT_THAT(cast(y, DType::f64), holds<double>(expected)) << name_of(dtype);
      }
}

TEST(Pad, MirrorsNoMoreThanThereIs) {
  const Tensor x = counted({3});
  EXPECT_THAT(pad(x, {3}, {3}, {.mode = PadMode::symmetric}),
              holds<double>({2, 1, 0, 0, 1, 2, 2, 1, 0}));
  EXPECT_THAT([&] { pad(x, {3}, {0}, {.mode = PadMode::reflect}); },
              throws<InvalidArgument>("[pad]", "at most 2", "axis 0", "[3]", "3"));
  EXPECT_THAT([&] { pad(x, {0}, {4}, {.mode = PadMode::symmetric}); },
              throws<InvalidArgument>("[pad]", "at most 3", "4"));
  EXPECT_THAT([&] { pad(zeros({0}), {1}, {0}, {.mode = PadMode::symmetric}); },
              throws<InvalidArgument>("[pad]", "at most 0"));
  EXPECT_EQ(pad(zeros({0}), {0}, {0}, {.mode = PadMode::symmetric}).shape(), (Shape{0}));
  EXPECT_THAT([&] { pad(cast(x, DType::i32), {1}, {0}, {.value = 0.5}); },
              throws<InvalidArgument>("[pad]", "0.5", "i32"));
  EXPECT_THAT(pad(zeros({0, 2}), {1, 0}, {1, 1}, {.value = -1}),
              holds<float>({-1, -1, -1, -1, -1, -1}));
}

TEST(Slices, GradientsAreCentralDifferences) {
  const Tensor x = Noise(1).tensor<double>({3, 4, 2});
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> ops[] = {
      {"reverse",
       [](const Tensor& t) {
         return reverse(t, {0, -1});
       }},
      {"roll",
       [](const Tensor& t) {
         return roll(t, {1, -3}, {0, 1});
       }},
      {"tile",
       [](const Tensor& t) {
         return tile(t, {2, 1, 3});
       }},
      {"empty tile",
       [](const Tensor& t) {
         return concat({tile(t, {0, 1, 1}), t}, 0);
       }},
      {"unstack", [](const Tensor& t) { return unstack(t, 1)[2] * unstack(t, 1)[0]; }},
      {"constant",
       [](const Tensor& t) {
         return pad(t, {1, 0, 2}, {0, 3, 0}, {.value = 2});
       }},
      {"reflect",
       [](const Tensor& t) {
         return pad(t, {2, 1, 1}, {1, 3, 0}, {.mode = PadMode::reflect});
       }},
      {"symmetric",
       [](const Tensor& t) {
         return pad(t, {3, 1, 2}, {1, 4, 0}, {.mode = PadMode::symmetric});
       }},
  };
  for (const auto& [name, op] : ops) {
    SCOPED_TRACE(name);
    expect_gradients([&](const std::vector<Tensor>& xs) { return op(xs[0]); }, {x});
    expect_second_gradients([&](const std::vector<Tensor>& xs) { return square(op(xs[0])); }, {x});
  }
}

TEST(Slices, LargeAndOddSizes) {
  const Tensor x = counted({257, 1031});
  const Tensor y = strided_slice(x, {{.stride = -2}, {.begin = 3, .stride = 5}});
  EXPECT_EQ(y.shape(), (Shape{129, 206}));
  EXPECT_THAT(y, holds<double>(by_index(y.shape(), [&](const Place& p) {
                return element_at(x, {256 - 2 * p[0], 3 + 5 * p[1]});
              })));
  EXPECT_THAT(reverse(x, {1}), holds<double>(by_index(x.shape(), [&](const Place& p) {
                return element_at(x, {p[0], 1030 - p[1]});
              })));
  EXPECT_THAT(reverse(x, {0}), holds<double>(by_index(x.shape(), [&](const Place& p) {
                return element_at(x, {256 - p[0], p[1]});
              })));
}

}  // namespace
}  // namespace lockstep
