// SPDX-License-Identifier: Apache-2.0
// Pooling layers besides those of images. What they compute is compared in golden_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::throws;
using ::testing::ElementsAre;

const Tensor kLine({1, 5, 1}, {1.0f, 5.0f, 2.0f, 4.0f, 3.0f});

TEST(Pool1D, TakesMaximumAndMeanOfWindows) {
  EXPECT_THAT(MaxPool1D()(kLine).to_vector<float>(), ElementsAre(5, 4));
  EXPECT_THAT(AveragePool1D({.pool_size = 3, .strides = 1})(kLine).to_vector<float>(),
              ElementsAre(8 / 3.0f, 11 / 3.0f, 3));
  // What padding adds takes no part.
  EXPECT_THAT(AveragePool1D({.padding = Padding::same})(kLine).to_vector<float>(),
              ElementsAre(3, 3, 3));
}

TEST(Pool3D, StridesAreThePoolSizeUnlessGiven) {
  const Tensor x = lockstep::ones({2, 4, 6, 4, 3});
  EXPECT_EQ(MaxPool3D()(x).shape(), Shape({2, 2, 3, 2, 3}));
  EXPECT_EQ(AveragePool3D({.pool_size = {1, 3, 2}, .strides = 2})(x).shape(),
            Shape({2, 2, 2, 2, 3}));
  EXPECT_EQ(MaxPool3D()(lockstep::ones({0, 4, 6, 4, 3})).shape(), Shape({0, 2, 3, 2, 3}));
}

TEST(GlobalPool, TakesMaximumAndMeanOfAllPlaces) {
  EXPECT_THAT(GlobalMaxPool()(kLine).to_vector<float>(), ElementsAre(5));
  EXPECT_THAT(GlobalAveragePool()(kLine).to_vector<float>(), ElementsAre(3));
  EXPECT_EQ(GlobalMaxPool({.keep_dims = true})(lockstep::ones({2, 3, 4, 5})).shape(),
            Shape({2, 1, 1, 5}));
  EXPECT_EQ(GlobalAveragePool()(lockstep::ones({0, 3, 4, 5})).shape(), Shape({0, 5}));
}

TEST(PoolLayers, NameThemselvesWhenTheInputDoesNotFit) {
  const Tensor x = lockstep::ones({2, 3});
  EXPECT_THAT([&] { MaxPool1D()(x); }, throws<InvalidArgument>("[max_pool1d]", "rank 3"));
  EXPECT_THAT([&] { AveragePool3D({.name = "p"})(x); }, throws<InvalidArgument>("[p]", "rank 5"));
  EXPECT_THAT([&] { GlobalMaxPool()(x); }, throws<InvalidArgument>("[global_max_pool]", "rank 3"));
  EXPECT_THAT([&] { GlobalAveragePool()(x); },
              throws<InvalidArgument>("[global_average_pool]", "[2, 3]"));
}

}  // namespace
}  // namespace lockstep::nn
