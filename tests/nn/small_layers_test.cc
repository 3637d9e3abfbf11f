// SPDX-License-Identifier: Apache-2.0
// Embedding, layers that rearrange their input, regularizers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::holds;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::ElementsAre;

const Tensor kIds({2, 2}, {1, 0, 1, 2});

TEST(Embedding, LooksUpRowsOfItsTable) {
  const Embedding layer(3, 2, {.embeddings_initializer = [](const Shape& shape, DType) {
                          return Tensor(shape, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
                        }});
  EXPECT_EQ(layer.embeddings().name(), "embedding/embeddings");
  EXPECT_EQ(layer.output_size(kAnySize), 2);
  const Tensor y = layer(kIds);
  EXPECT_EQ(y.shape(), Shape({2, 2, 2}));
  EXPECT_THAT(y, holds({3, 4, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(layer(lockstep::zeros({0, 5}, DType::i64)).shape(), Shape({0, 5, 2}));
  for (const float value : Embedding(50, 4).embeddings().read().to_vector<float>())
    EXPECT_LE(std::abs(value), 0.05f);
}

TEST(Embedding, HasAGradientOfTheRowsThatWereRead) {
  for (const PrecisionPolicy policy : {float32, mixed_bfloat16}) {
    const Embedding layer(1000, 2, {.dtype = policy});
    GradientTape tape;
    const Tensor y = layer(kIds);
    EXPECT_EQ(y.dtype(), policy.compute_dtype());
    IndexedSlices slices;
    const auto dense = tape.gradient(
        y, {layer.embeddings().read()},
        {.on_slices = [&](std::size_t, const IndexedSlices& given) { slices = given; }});
    EXPECT_FALSE(dense[0].defined());
    ASSERT_TRUE(slices.defined());
    EXPECT_EQ(slices.shape, Shape({1000, 2}));
    EXPECT_EQ(slices.values.dtype(), DType::f32);
    EXPECT_THAT(cast(slices.indices, DType::f32), holds({1, 0, 1, 2}));
    EXPECT_THAT(slices.values.to_vector<float>(), ::testing::Each(1));
  }
}

TEST(Embedding, RefusesWhatIsNoId) {
  const Embedding layer(3, 2);
  EXPECT_THAT([&] { layer(vec({1, 2})); }, throws<InvalidArgument>("[embedding]", "f32[2]"));
  EXPECT_THAT([&] { layer(vec<std::int32_t>({1, 3})); }, throws<InvalidArgument>("3"));
  EXPECT_THAT([] { Embedding(0, 2); }, throws<InvalidArgument>("[Embedding]", "0 and 2"));
}

TEST(Reshape, KeepsTheRows) {
  const Tensor x = lockstep::zeros({5, 4, 6});
  EXPECT_EQ(Reshape({2, 12})(x).shape(), Shape({5, 2, 12}));
  EXPECT_EQ(Reshape({-1, 8})(x).shape(), Shape({5, 3, 8}));
  EXPECT_EQ(Reshape({-1, 8})(lockstep::zeros({0, 4, 6})).shape(), Shape({0, 3, 8}));
  EXPECT_EQ(Reshape({})(lockstep::zeros({5, 1})).shape(), Shape({5}));
  EXPECT_EQ(Reshape({2, 12}).output_size(6), 12);
  EXPECT_EQ(Reshape({2, -1}).output_size(6), kAnySize);
  EXPECT_THAT(
      [&] {
        Reshape({5, 5})(x);
      },
      throws<InvalidArgument>("[reshape]", "[5, 5]", "[5, 4, 6]"));
  EXPECT_THAT([&] { Reshape({-1, 7})(x); }, throws<InvalidArgument>("[reshape]"));
  EXPECT_THAT([] { Reshape({-1, -1}); }, throws<InvalidArgument>("[Reshape]", "[-1, -1]"));
  EXPECT_THAT([] { Reshape({0, 2}); }, throws<InvalidArgument>("[Reshape]"));
}

TEST(ZeroPadding, SurroundsWithZeros) {
  EXPECT_THAT(ZeroPadding({1, 2})(Tensor({1, 2, 1}, {3.0f, 4.0f})), holds({0, 3, 4, 0, 0}));
  EXPECT_EQ(ZeroPadding({1, 0, 2, 3})(lockstep::ones({2, 4, 4, 3})).shape(), Shape({2, 5, 9, 3}));
  EXPECT_EQ(ZeroPadding({0, 1, 2, 3, 4, 5})(lockstep::ones({0, 1, 1, 1, 2})).shape(),
            Shape({0, 2, 6, 10, 2}));
  EXPECT_THAT(
      [] {
        ZeroPadding({1, 1})(lockstep::ones({2, 4, 4, 3}));
      },
      throws<InvalidArgument>("[zero_padding]", "rank 3"));
  EXPECT_THAT([] { ZeroPadding{Padding::same}; }, throws<InvalidArgument>("[ZeroPadding]"));
  EXPECT_THAT([] { ZeroPadding({-1, 1}); }, throws<InvalidArgument>("[ZeroPadding]"));
}

TEST(UpSampling, RepeatsEachPlace) {
  EXPECT_THAT(UpSampling1D(3)(Tensor({1, 2, 1}, {1.0f, 2.0f})), holds({1, 1, 1, 2, 2, 2}));
  const Tensor image({1, 1, 2, 2}, {1.0f, 2.0f, 3.0f, 4.0f});
  EXPECT_THAT(UpSampling2D({2, 1})(image), holds({1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(UpSampling3D()(lockstep::ones({0, 1, 2, 3, 4})).shape(), Shape({0, 2, 4, 6, 4}));
  EXPECT_THAT([&] { UpSampling1D()(image); }, throws<InvalidArgument>("[up_sampling1d]", "rank 3"));
  EXPECT_THAT([] { UpSampling2D({2, 0}); }, throws<InvalidArgument>("[up_sampling2d]", "got 0"));
}

TEST(Regularizers, PenaliseSizes) {
  const Variable w(vec({1, -2, 3}));
  EXPECT_FLOAT_EQ(l1(0.5)(w).item<float>(), 3);
  EXPECT_FLOAT_EQ(l2(0.5)(w).item<float>(), 7);
  EXPECT_FLOAT_EQ(l1_l2({.l1 = 1, .l2 = 0.5})(w).item<float>(), 13);
  GradientTape tape;
  EXPECT_THAT(tape.gradient(l1_l2({.l1 = 1, .l2 = 0.5})(w), {w.read()})[0], holds({2, -3, 4}));
  EXPECT_THAT([] { l2(-1); }, throws<InvalidArgument>("[l2]", "-1"));
  EXPECT_THAT([] { l1_l2({.l1 = -1}); }, throws<InvalidArgument>("[l1]"));
}

TEST(AssignMovingAverage, MovesByTheDecay) {
  Variable average(vec({10, 20}));
  assign_moving_average(average, vec({2, 4}), 0.75);
  EXPECT_THAT(average.read(), holds({8, 16}));
  EXPECT_THAT([&] { assign_moving_average(average, vec({1}), 0.5); },
              throws<InvalidArgument>("[assign_moving_average]", "f32[2]", "f32[1]"));
  EXPECT_THAT(
      [&] {
        assign_moving_average(average, vec({1, 1}), 1.5);
      },
      throws<InvalidArgument>("decay", "1.5"));
}

}  // namespace
}  // namespace lockstep::nn
