// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/scatter.h>

#include <cmath>

#include "support/by_index.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

constexpr DType kAddable[] = {DType::f32,  DType::f64, DType::f16,
                              DType::bf16, DType::i32, DType::i64};

TEST(ScatterAdd, AddsRowsInOrder) {
  const Tensor updates(Shape{3, 2}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  EXPECT_THAT(scatter_add(vec<std::int32_t>({1, 0, 1}), updates, 3),
              holds<float>({3, 4, 6, 8, 0, 0}));
  EXPECT_THAT(scatter_add(vec<std::int32_t>({1, 1}), vec<std::int64_t>({5, 6}), 2),
              holds<std::int64_t>({0, 11}));
  EXPECT_THAT(
      cast(scatter_add(vec<std::int32_t>({0, 0}), cast(vec<float>({1.5f, 2}), DType::bf16), 1),
           DType::f32),
      holds<float>({3.5f}));
  EXPECT_EQ(scatter_add(zeros({0}, DType::i32), zeros({0, 4}), 2).shape(), (Shape{2, 4}));
  // (1e8 + 1) - 1e8 is 0 in f32, 1 in another order.
  EXPECT_THAT(scatter_add(vec<std::int32_t>({0, 0, 0}), vec<float>({1e8f, 1, -1e8f}), 1),
              holds<float>({0}));
}

TEST(ScatterAdd, AlongEveryAxisAndOfEveryDType) {
  const Tensor indices(Shape{2, 2}, {3, 0, 1, 3});
  for (const int axis : {0, 1, 2, -1}) {
    const auto along = static_cast<std::size_t>(axis < 0 ? 2 : axis);
    std::vector<std::int64_t> extents{2, 3}, rows{2, 3};
    extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(along), {2, 2});
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(along), 5);
    const Tensor updates = counted(Shape(extents)) + 1;
    std::vector<double> expected(static_cast<std::size_t>(Shape(rows).num_elements()));
    for_each_place(updates.shape(), [&](const Place& place) {
      Place to = place;
      to.erase(to.begin() + static_cast<std::ptrdiff_t>(along));
      to[along] = indices.data<int>()[number_of(indices.shape(), {place[along], place[along + 1]})];
      expected[number_of(Shape(rows), to)] += element_at(updates, place);
    });
    for (const DType dtype : kAddable) {
      const Tensor y = scatter_add(indices, cast(updates, dtype), 5, axis);
      EXPECT_EQ(y.shape(), Shape(rows));
      EXPECT_THAT(cast(y, DType::f64), holds<double>(expected)) << name_of(dtype);
    }
    expect_gradients([&](const auto& xs) { return scatter_add(indices, xs[0], 5, axis); },
                     {updates});
    expect_second_gradients(
        [&](const auto& xs) { return square(scatter_add(indices, xs[0], 5, axis)); }, {updates});
  }
}

TEST(ScatterAdd, ChecksShapesAndIndices) {
  const Tensor updates = zeros({3, 2});
  const auto two = vec<std::int32_t>({0, 1}), three = vec<std::int32_t>({0, 1, 3});
  EXPECT_THAT([&] { scatter_add(two, updates, 3); }, throws<InvalidArgument>("[2]", "[3, 2]"));
  EXPECT_THAT([&] { scatter_add(three, updates, 3, 1); },
              throws<InvalidArgument>("[3]", "axis 1", "[3, 2]"));
  EXPECT_THAT([&] { scatter_add(three, updates, 3, 2); }, throws<InvalidArgument>("axis 2"));
  EXPECT_THAT([&] { scatter_add(three, updates, 3); },
              throws<InvalidArgument>("[scatter_add]", "index 3", "place 2", "3 rows"));
  EXPECT_THAT([&] { scatter_add(three, updates, -1); }, throws<InvalidArgument>("-1"));
  EXPECT_THAT([&] { scatter_add(three, cast(updates, DType::u8), 4); },
              throws<InvalidArgument>("u8", "i64"));
}

// Adds updates at coordinates, one element after the other.
std::vector<double> added(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  std::vector<double> y = x.to_vector<double>();
  const std::int64_t coordinates = indices.dim(-1);
  const int front = indices.rank() - 1;
  for_each_place(updates.shape(), [&](const Place& place) {
    Place from(place.begin(), place.begin() + front), to;
    from.push_back(0);
    for (; from.back() < coordinates; ++from.back())
      to.push_back(indices.data<std::int64_t>()[number_of(indices.shape(), from)]);
    to.insert(to.end(), place.begin() + front, place.end());
    y[number_of(x.shape(), to)] += element_at(updates, place);
  });
  return y;
}

struct Blocks {
  Shape indices;
  std::vector<std::int64_t> coordinates;
  Shape updates;  // into [3, 4, 2]
};
const Blocks kBlocks[] = {
    {{3, 1}, {2, 0, 2}, {3, 4, 2}},
    {{3, 2}, {2, 3, 0, 0, 2, 3}, {3, 2}},
    {{2, 2, 3}, {0, 0, 0, 2, 3, 1, 0, 0, 0, 1, 1, 1}, {2, 2}},
    {{2, 0}, {}, {2, 3, 4, 2}},
    {{0, 2}, {}, {0, 2}},
    {{2}, {1, 3}, {2}},
};

TEST(ScatterNd, AddsBlocksAtCoordinates) {
  const Tensor x = counted({3, 4, 2});
  for (const Blocks& blocks : kBlocks) {
    SCOPED_TRACE(blocks.indices.to_string());
    const Tensor indices(blocks.indices, std::span<const std::int64_t>(blocks.coordinates));
    const Tensor updates = counted(blocks.updates) + 1;
    const auto from_zero = added(zeros({3, 4, 2}, DType::f64), indices, updates);
    const auto from_x = added(x, indices, updates);
    for (const DType dtype : kAddable) {
      const Tensor own = cast(updates, dtype);
      const Tensor places = dtype == DType::f16 ? cast(indices, DType::i32) : indices;
      EXPECT_THAT(cast(scatter_nd(places, own, {3, 4, 2}), DType::f64), holds<double>(from_zero));
      EXPECT_THAT(cast(tensor_scatter_add(cast(x, dtype), places, own), DType::f64),
                  holds<double>(from_x));
    }
    EXPECT_THAT(x, holds<double>(counted({3, 4, 2}).to_vector<double>())) << "x stays as it was";
    expect_gradients(
        [&](const auto& xs) {
          return scatter_nd(indices, xs[0], {3, 4, 2});
        },
        {updates});
    expect_gradients([&](const auto& xs) { return tensor_scatter_add(xs[0], indices, xs[1]); },
                     {x, updates});
    if (updates.num_elements() == 0) continue;
    expect_second_gradients(
        [&](const auto& xs) { return square(tensor_scatter_add(xs[0], indices, xs[1])); },
        {Noise(1).tensor<double>({3, 4, 2}), Noise(2).tensor<double>(blocks.updates)});
  }
}

TEST(ScatterNd, ChecksShapesDTypesAndCoordinates) {
  const Tensor indices(Shape{2, 2}, {0, 1, 2, 3});
  const Tensor x = zeros({3, 3}), updates = zeros({2});
  EXPECT_THAT(
      [&] {
        scatter_nd(indices, updates, {3, 3});
      },
      throws<InvalidArgument>("[scatter_nd]", "index 3", "place 1", "axis 1", "3"));
  EXPECT_THAT([&] { tensor_scatter_add(x, -indices, updates); },
              throws<InvalidArgument>("[tensor_scatter_add]", "index -1", "place 0", "axis 1"));
  EXPECT_THAT(
      [&] {
        scatter_nd(indices, zeros({2, 3}), {4, 4});
      },
      throws<InvalidArgument>("[2]", "[2, 3]"));
  EXPECT_THAT([&] { scatter_nd(indices, updates, {9}); },
              throws<InvalidArgument>("at most the 1", "[2, 2]"));
  EXPECT_THAT([&] { tensor_scatter_add(x, indices, cast(updates, DType::f64)); },
              throws<InvalidArgument>("f32", "f64"));
  EXPECT_THAT(
      [&] {
        scatter_nd(cast(indices, DType::f32), updates, {3, 3});
      },
      throws<InvalidArgument>("f32", "i64"));
  EXPECT_THAT([&] { scatter_nd(Tensor(1), updates, {3, 3}); }, throws<InvalidArgument>("[]"));
}

TEST(Coalesce, NamesEachRowOnceInOrder) {
  const Tensor values = counted({4, 2});
  for (const DType dtype : kAddable)
    for (const DType index : {DType::i32, DType::i64}) {
      const IndexedSlices once =
          coalesce({cast(values, dtype), cast(vec<std::int64_t>({5, 2, 5, 0}), index), {6, 2}});
      EXPECT_THAT(once.indices, holds<std::int64_t>({0, 2, 5}));
      EXPECT_THAT(cast(once.values, DType::f64), holds<double>({6, 7, 2, 3, 4, 6}));
      EXPECT_EQ(once.values.dtype(), dtype);
      EXPECT_EQ(once.shape, (Shape{6, 2}));
    }
  const IndexedSlices none = coalesce({zeros({0, 2}), zeros({0}, DType::i64), {6, 2}});
  EXPECT_EQ(none.indices.shape(), (Shape{0}));
  EXPECT_EQ(none.values.shape(), (Shape{0, 2}));
  const IndexedSlices kept = coalesce({values, vec<std::int64_t>({0, 1, 3, 5}), {6, 2}});
  EXPECT_EQ(kept.values.raw_data(), values.raw_data()) << "nothing to add up: not copied";
}

TEST(Segments, SumRowsOfOneNumber) {
  const Tensor x = counted({5, 2});
  const std::vector<double> expected{2, 4, 0, 0, 4, 5, 14, 16};
  for (const DType dtype : kAddable) {
    const Tensor own = cast(x, dtype);
    EXPECT_THAT(cast(segment_sum(own, vec<std::int32_t>({0, 0, 2, 3, 3})), DType::f64),
                holds<double>(expected));
    EXPECT_THAT(
        cast(unsorted_segment_sum(roll(own, {2}, {0}), vec<std::int64_t>({3, 3, 0, 0, 2}), 4),
             DType::f64),
        holds<double>(expected));
  }
  EXPECT_THAT(unsorted_segment_sum(x, vec<std::int64_t>({-1, 1, -7, 1, 0}), 2),
              holds<double>({8, 9, 8, 10}));
  EXPECT_THAT(unsorted_segment_sum(counted({2, 2, 1}), Tensor(Shape{2, 2}, {1, 0, 0, 1}), 3),
              holds<double>({3, 3, 0}));
  EXPECT_EQ(segment_sum(zeros({0, 2}), zeros({0}, DType::i64)).shape(), (Shape{0, 2}));
  EXPECT_EQ(unsorted_segment_sum(x, zeros({5}, DType::i32), 1).shape(), (Shape{1, 2}));
  EXPECT_EQ(unsorted_segment_sum(x, full({5}, -1, DType::i32), 0).shape(), (Shape{0, 2}));
}

TEST(Segments, GradientsAreRowsOfTheSums) {
  const Tensor x = Noise(4).tensor<double>({5, 2});
  const Tensor sorted = vec<std::int64_t>({0, 0, 2, 3, 3});
  const Tensor any = vec<std::int64_t>({1, -1, 1, 0, 3});
  expect_gradients([&](const auto& xs) { return segment_sum(xs[0], sorted); }, {x});
  for (const Tensor& ids : {sorted, any})
    expect_gradients([&](const auto& xs) { return unsorted_segment_sum(xs[0], ids, 4); }, {x});
  expect_second_gradients(
      [&](const auto& xs) { return square(unsorted_segment_sum(xs[0], any, 4)); }, {x});
  expect_second_gradients([&](const auto& xs) { return square(segment_sum(xs[0], sorted)); }, {x});
  const Tensor none = full({5}, -1, DType::i32);
  expect_gradients([&](const auto& xs) { return unsorted_segment_sum(xs[0], none, 0); }, {x});
}

TEST(Segments, CheckTheirNumbers) {
  const Tensor x = counted({3, 2});
  EXPECT_THAT(
      [&] {
        segment_sum(x, vec<std::int64_t>({0, 2, 1}));
      },
      throws<InvalidArgument>("[segment_sum]", "1 at place 2", "after 2"));
  EXPECT_THAT(
      [&] {
        segment_sum(x, vec<std::int64_t>({-1, 0, 1}));
      },
      throws<InvalidArgument>("-1 at place 0"));
  EXPECT_THAT(
      [&] {
        segment_sum(x, vec<std::int64_t>({0, 1}));
      },
      throws<InvalidArgument>("[2]", "[3, 2]"));
  EXPECT_THAT(
      [&] {
        unsorted_segment_sum(x, vec<std::int64_t>({0, 1, 5}), 5);
      },
      throws<InvalidArgument>("[unsorted_segment_sum]", "index 5", "place 2"));
  EXPECT_THAT(
      [&] {
        unsorted_segment_sum(x, vec<std::int64_t>({0, 1}), 5);
      },
      throws<InvalidArgument>("[2]", "[3, 2]"));
  EXPECT_THAT(
      [&] {
        unsorted_segment_sum(x, vec<std::int64_t>({0, 1, 2}), -5);
      },
      throws<InvalidArgument>("-5"));
  EXPECT_THAT(
      [&] {
        segment_sum(cast(x, DType::boolean), vec<std::int64_t>({0, 1, 2}));
      },
      throws<InvalidArgument>("bool"));
}

}  // namespace
}  // namespace lockstep
