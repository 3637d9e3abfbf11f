// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn/conv.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "nn/central_difference.h"

namespace lockstep::nn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Conv2D, SlidesItsKernelOverTheImage) {
  const Conv2D layer(1, 1,
                     {.kernel_size = 2,
                      .activation = relu,
                      .kernel_initializer =
                          [](const Shape& shape, DType) {
                            return Tensor(shape, {1.0f, 2.0f, 3.0f, 4.0f});
                          },
                      .bias_initializer = constant(-40)});
  EXPECT_EQ(layer.variables()[0].name(), "conv2d/kernel");
  EXPECT_EQ(layer.variables()[0].shape(), Shape({2, 2, 1, 1}));
  const Tensor x({1, 3, 3, 1}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f});
  // 1 + 2*2 + 3*4 + 4*5 = 37; each pixel further adds 10, each row 30.
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), Shape({1, 2, 2, 1}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 7, 27, 37));
}

TEST(Conv2D, PadsStridesAndGroups) {
  const Conv2D layer(4, 6,
                     {.strides = 2, .padding = Padding::same, .groups = 2, .use_bias = false});
  EXPECT_EQ(layer.kernel().shape(), Shape({3, 3, 2, 6}));
  EXPECT_EQ(layer(lockstep::zeros({2, 5, 8, 4})).shape(), Shape({2, 3, 4, 6}));
  EXPECT_EQ(layer(lockstep::zeros({0, 5, 8, 4})).shape(), Shape({0, 3, 4, 6}));
}

TEST(Conv2D, HasTheGradientsOfCentralDifferences) {
  const Conv2D layer(
      2, 3,
      {.kernel_size = {2, 3},
       .padding = Padding::same,
       .activation = tanh,
       .kernel_initializer = [](const Shape& shape, DType) { return scattered(shape); },
       .bias_initializer = [](const Shape& shape, DType) { return scattered(shape, 1); },
       .dtype = DType::f64});
  Variable x(scattered({2, 3, 4, 2}, 2), {.name = "x"});
  expect_central_differences({layer.kernel(), *layer.bias(), x}, [&] {
    return sum(layer(x) * scattered({2, 3, 4, 3}, 3));
  });
}

TEST(Conv2D, NamesItselfWhenTheInputDoesNotFit) {
  const Conv2D layer(3, 8, {.name = "stem"});
  const auto refused = [&](const Tensor& x) -> std::string {
    try {
      layer(x);
    } catch (const InvalidArgument& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_THAT(refused(lockstep::zeros({1, 8, 8, 4})),
              AllOf(HasSubstr("[stem]"), HasSubstr("3 values"), HasSubstr("[1, 8, 8, 4]")));
  EXPECT_THAT(refused(lockstep::zeros({8, 8, 3})),
              AllOf(HasSubstr("rank 4"), HasSubstr("[8, 8, 3]")));
}

TEST(Conv2D, RefusesSizesThatCannotBe) {
  EXPECT_THROW(Conv2D(0, 8), InvalidArgument);
  EXPECT_THROW(Conv2D(3, 8, {.kernel_size = 0}), InvalidArgument);
  EXPECT_THROW(Conv2D(3, 8, {.strides = {1, 0}}), InvalidArgument);
  EXPECT_THROW(Conv2D(3, 8, {.groups = 2}), InvalidArgument);
  EXPECT_THROW(Conv2D(3, 8, {.dtype = DType::u8}), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::nn
