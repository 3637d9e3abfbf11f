// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/gather.h>

#include "support/by_index.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

TEST(Gather, TakesRowsInTheOrderOfTheIndices) {
  const Tensor x(Shape{3, 2}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  const Tensor y = gather(x, vec<std::int64_t>({2, 0, 2}));
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(y, holds<float>({5, 6, 1, 2, 5, 6}));
}

TEST(Gather, KeepsTheShapeOfTheIndices) {
  const Tensor x(Shape{3, 1, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor y = gather(x, Tensor(Shape{2, 2}, {0, 1, 2, 1}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 1, 2}));
  EXPECT_THAT(y, holds<int>({1, 2, 3, 4, 5, 6, 3, 4}));
  EXPECT_EQ(gather(x, Tensor(std::int64_t{1})).shape(), (Shape{1, 2}));
  EXPECT_EQ(gather(x, zeros({0}, DType::i32)).shape(), (Shape{0, 1, 2}));
}

TEST(Gather, NamesIndicesOutOfRange) {
  const Tensor x = vec<float>({1, 2});
  EXPECT_THAT(
      [&] {
        gather(x, vec<std::int32_t>({0, 2}));
      },
      throws<InvalidArgument>("[gather]", "index 2", "place 1", "2 rows"));
  EXPECT_THAT([&] { gather(x, vec<std::int32_t>({-1})); }, throws<InvalidArgument>("index -1"));
  EXPECT_THAT([&] { gather(x, vec<float>({0})); }, throws<InvalidArgument>("f32", "i64"));
  EXPECT_THAT([&] { gather(Tensor(1.0f), vec<std::int32_t>({0})); },
              throws<InvalidArgument>("scalar"));
}

TEST(Gather, GradientAddsUpRowsThatWereTakenTwice) {
  const Tensor indices = vec<std::int64_t>({1, 3, 1, 0});
  const Tensor x = Noise(2).tensor<double>({4, 3});
  expect_gradients([&](const std::vector<Tensor>& xs) { return gather(xs[0], indices); }, {x});
  expect_second_gradients(
      [&](const std::vector<Tensor>& xs) { return square(gather(xs[0], indices)); }, {x});
}

TEST(Gather, AlongEveryAxisAndOfEveryDType) {
  const Tensor x = counted({2, 3, 4});
  const Tensor indices(Shape{3, 1}, {1, 0, 1});
  for (int axis = 0; axis < 3; ++axis) {
    const auto along = static_cast<std::size_t>(axis);
    std::vector<std::int64_t> extents{2, 3, 4};
    extents[along] = 1;
    extents.insert(extents.begin() + axis, 3);
    const auto expected = by_index(Shape(extents), [&](Place place) {
      const auto index = static_cast<std::size_t>(place[along]);
      place.erase(place.begin() + axis);
      place[along] = indices.data<int>()[index];
      return element_at(x, place);
    });
    for (const DType dtype : kAllDTypes) {
      const Tensor y = gather(minimum(x, 1), indices, axis - 3);
      EXPECT_EQ(y.shape(), Shape(extents));
      const Tensor own = gather(cast(x, dtype), indices, axis);
      if (dtype == DType::boolean)
        EXPECT_THAT(cast(own, DType::f64), holds<double>(y.to_vector<double>()));
      else
        EXPECT_THAT(cast(own, DType::f64), holds<double>(expected)) << name_of(dtype);
    }
    expect_gradients([&](const auto& xs) { return gather(xs[0], indices, axis); }, {x});
    expect_second_gradients([&](const auto& xs) { return square(gather(xs[0], indices, axis)); },
                            {Noise(1).tensor<double>({2, 3, 4})});
  }
  EXPECT_THAT([&] { gather(x, indices, 3); }, throws<InvalidArgument>("[gather]", "axis 3"));
  EXPECT_THAT([&] { gather(x, indices + 3, 2); }, throws<InvalidArgument>("index 4", "4 rows"));
}

TEST(Gather, RowsOfEveryLength) {
  for (const std::int64_t width : {1, 2, 3, 4, 5, 8, 16, 33, 1000})
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
      const Tensor x = cast(floor(Noise(1).tensor<double>({7, width}, 100)) + 100, dtype);
      const Tensor y = gather(x, vec<std::int64_t>({6, 0, 3, 3}));
      for (const auto& [to, from] : {std::pair{0, 6}, {1, 0}, {2, 3}, {3, 3}})
        EXPECT_THAT(
            cast(slice(y, {to, 0}, {1, width}), DType::f64),
            holds<double>(cast(slice(x, {from, 0}, {1, width}), DType::f64).to_vector<double>()))
            << width;
    }
}

TEST(EmbeddingLookup, IsGatherOfRows) {
  const Tensor table = counted({4, 3});
  const Tensor ids(Shape{2, 2}, {3, 0, 1, 3});
  EXPECT_THAT(embedding_lookup(table, ids), holds<double>(gather(table, ids).to_vector<double>()));
  expect_gradients([&](const auto& xs) { return embedding_lookup(xs[0], ids); }, {table});
  EXPECT_THAT([&] { embedding_lookup(table, ids + 1); },
              throws<InvalidArgument>("[embedding_lookup]", "index 4", "place 0", "4 rows"));
}

TEST(GatherNd, ReadsElementsAndBlocks) {
  const Tensor x = counted({3, 4, 2});
  const Tensor points(Shape{2, 3}, {2, 3, 1, 0, 1, 0});
  EXPECT_THAT(gather_nd(x, points), holds<double>({23, 2}));
  const Tensor rows(Shape{2, 1, 2}, {2, 0, 1, 3});
  EXPECT_EQ(gather_nd(x, rows).shape(), (Shape{2, 1, 2}));
  EXPECT_THAT(gather_nd(x, rows), holds<double>({16, 17, 14, 15}));
  EXPECT_THAT(gather_nd(x, vec<std::int64_t>({1, 2})), holds<double>({12, 13}));
  EXPECT_EQ(gather_nd(x, zeros({5, 0}, DType::i32)).shape(), (Shape{5, 3, 4, 2}));
  EXPECT_EQ(gather_nd(x, zeros({0, 2}, DType::i32)).shape(), (Shape{0, 2}));
  for (const DType dtype : kAllDTypes)
    EXPECT_THAT(cast(gather_nd(cast(minimum(x, 1), dtype), rows), DType::f64),
                holds<double>({1, 1, 1, 1}));
  for (const Tensor& indices : {points, rows}) {
    expect_gradients([&](const auto& xs) { return gather_nd(xs[0], indices); }, {x});
    expect_second_gradients([&](const auto& xs) { return square(gather_nd(xs[0], indices)); },
                            {Noise(1).tensor<double>({3, 4, 2})});
  }
  EXPECT_THAT(
      [&] { gather_nd(x, points + 1); },
      throws<InvalidArgument>("[gather_nd]", "index 3", "place 0", "coordinate 0", "axis 0"));
  EXPECT_THAT(
      [&] {
        gather_nd(x, Tensor(Shape{1, 4}, {0, 0, 0, 0}));
      },
      throws<InvalidArgument>("at most the 3", "[3, 4, 2]", "[1, 4]"));
  EXPECT_THAT([&] { gather_nd(x, cast(points, DType::u8)); }, throws<InvalidArgument>("u8", "i32"));
}

TEST(TakeAlongAxis, ReadsWithinRows) {
  const Tensor x = counted({2, 3, 2});
  for (int axis = 0; axis < 3; ++axis) {
    const Shape shape = x.shape().with_dim(axis, 4);
    const Tensor indices = cast(floor(Noise(2).tensor<double>(shape, 1)) + 1, DType::i32);
    const auto along = static_cast<std::size_t>(axis);
    EXPECT_THAT(take_along_axis(x, indices, axis), holds<double>(by_index(shape, [&](Place place) {
                  place[along] = indices.data<int>()[number_of(shape, place)];
                  return element_at(x, place);
                })));
    expect_gradients([&](const auto& xs) { return take_along_axis(xs[0], indices, axis); }, {x});
    expect_second_gradients(
        [&](const auto& xs) { return square(take_along_axis(xs[0], indices, axis)); }, {x});
  }
  const Tensor indices = zeros({2, 3, 1}, DType::i64);
  EXPECT_THAT([&] { take_along_axis(x, indices, 1); },
              throws<InvalidArgument>("[take_along_axis]", "[2, 3, 1]", "[2, 3, 2]"));
  EXPECT_THAT([&] { take_along_axis(x, indices + 2); },
              throws<InvalidArgument>("[take_along_axis]", "index 2", "place 0", "2"));
}

TEST(Where, GivesTheCoordinatesOfWhatIsTrue) {
  const Tensor condition(Shape{2, 3}, {true, false, true, false, false, true});
  const Tensor places = where(condition);
  EXPECT_EQ(places.shape(), (Shape{3, 2}));
  EXPECT_THAT(places, holds<std::int64_t>({0, 0, 0, 2, 1, 2}));
  EXPECT_EQ(where(zeros({2, 3}, DType::boolean)).shape(), (Shape{0, 2}));
  EXPECT_EQ(where(zeros({0, 3}, DType::boolean)).shape(), (Shape{0, 2}));
  EXPECT_EQ(where(Tensor(true)).shape(), (Shape{1, 0}));
  EXPECT_EQ(where(Tensor(false)).shape(), (Shape{0, 0}));
  const Tensor x = Noise(3).tensor<double>({4, 5, 3, 7});
  std::vector<std::int64_t> expected;
  for_each_place(x.shape(), [&](const Place& place) {
    if (element_at(x, place) > 0.3) expected.insert(expected.end(), place.begin(), place.end());
  });
  EXPECT_THAT(where(greater(x, 0.3)), holds<std::int64_t>(expected));
  EXPECT_THAT([&] { where(x); }, throws<InvalidArgument>("[where]", "bool", "f64"));
}

TEST(OneHot, MarksTheIndex) {
  const Tensor y = one_hot(vec<std::int32_t>({2, 0, 5, -1}), 3);
  EXPECT_EQ(y.shape(), (Shape{4, 3}));
  EXPECT_THAT(y, holds<float>({0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_THAT(one_hot(Tensor(std::int64_t{1}), 2, DType::boolean), holds<bool>({false, true}));
  EXPECT_THAT(cast(one_hot(Tensor(std::int64_t{1}), 2, DType::f16), DType::f32),
              holds<float>({0, 1}));
  EXPECT_EQ(one_hot(vec<std::int32_t>({2}), 0).shape(), (Shape{1, 0}));
  EXPECT_THAT([] { one_hot(vec<float>({1}), 3); }, throws<InvalidArgument>("[one_hot]", "f32"));
  EXPECT_THAT([] { one_hot(vec<int>({1}), -3); }, throws<InvalidArgument>("-3"));
}

}  // namespace
}  // namespace lockstep
