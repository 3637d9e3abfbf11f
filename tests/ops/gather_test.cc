// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/tensor/factory.h>

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
}

TEST(ScatterAdd, ChecksShapesAndIndices) {
  const Tensor updates = zeros({3, 2});
  EXPECT_THAT(
      [&] {
        scatter_add(vec<std::int32_t>({0, 1}), updates, 3);
      },
      throws<InvalidArgument>("[2]", "[3, 2]"));
  EXPECT_THAT(
      [&] {
        scatter_add(vec<std::int32_t>({0, 1, 3}), updates, 3);
      },
      throws<InvalidArgument>("index 3"));
  EXPECT_THAT(
      [&] {
        scatter_add(vec<std::int32_t>({0, 1, 2}), updates, -1);
      },
      throws<InvalidArgument>("-1"));
}

TEST(ScatterAdd, GradientGathers) {
  const Tensor indices = vec<std::int64_t>({1, 3, 1});
  expect_gradients([&](const std::vector<Tensor>& xs) { return scatter_add(indices, xs[0], 4); },
                   {Noise(3).tensor<double>({3, 2})});
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
