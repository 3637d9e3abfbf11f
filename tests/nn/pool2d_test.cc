// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn/flatten.h>
#include <lockstep/nn/pool.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "nn/central_difference.h"

namespace lockstep::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Tensor kImage({1, 2, 4, 1}, {1.0f, 2.0f, 3.0f, 4.0f, 8.0f, 7.0f, 6.0f, 5.0f});

TEST(Pool2D, TakesMaximumAndMeanOfWindows) {
  EXPECT_THAT(MaxPool2D()(kImage).to_vector<float>(), ElementsAre(8, 6));
  EXPECT_THAT(AveragePool2D()(kImage).to_vector<float>(), ElementsAre(4.5f, 4.5f));
}

TEST(Pool2D, StridesAreThePoolSizeUnlessGiven) {
  EXPECT_THAT(MaxPool2D({.pool_size = {1, 3}})(kImage).to_vector<float>(), ElementsAre(3, 8));
  EXPECT_THAT(MaxPool2D({.pool_size = {1, 3}, .strides = 1})(kImage).to_vector<float>(),
              ElementsAre(3, 4, 8, 7));
  EXPECT_EQ(AveragePool2D({.pool_size = 3, .padding = Padding::same})(kImage).shape(),
            Shape({1, 1, 2, 1}));
}

TEST(Pool2D, HasTheGradientsOfCentralDifferences) {
  Variable x(scattered({2, 4, 4, 2}), {.name = "x"});
  const Tensor weight = scattered({2, 2, 2, 2}, 1);
  const MaxPool2D maximum;
  const AveragePool2D mean;
  expect_central_differences({x}, [&] { return sum(square(maximum(x)) * weight); });
  expect_central_differences({x}, [&] { return sum(square(mean(x)) * weight); });
}

TEST(Pool2D, NamesItselfWhenTheInputIsNoImage) {
  const auto message_of = [](const auto& layer) -> std::string {
    try {
      layer(lockstep::zeros({4, 4}));
    } catch (const InvalidArgument& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_THAT(message_of(MaxPool2D()), HasSubstr("[max_pool2d] expected an input of rank 4"));
  EXPECT_THAT(message_of(AveragePool2D({.name = "p"})),
              HasSubstr("[p] expected an input of rank 4"));
}

TEST(Flatten, KeepsTheRows) {
  const Flatten layer;
  const Tensor y = layer(kImage);
  EXPECT_EQ(y.shape(), Shape({1, 8}));
  EXPECT_EQ(y.to_vector<float>(), kImage.to_vector<float>());
  EXPECT_EQ(layer(lockstep::zeros({3})).shape(), Shape({3, 1}));
  EXPECT_EQ(layer(lockstep::zeros({0, 2, 2})).shape(), Shape({0, 4}));
  EXPECT_THROW(layer(Tensor(1.0f)), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::nn
