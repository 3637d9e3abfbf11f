// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"

namespace lockstep::nn {
namespace {

Sequential small_network() {
  return Sequential{
      Conv2D(1, 8, {.kernel_size = 3}), BatchNorm(8), relu, MaxPool2D(), Flatten(), Dropout(0.5),
      Dense(1352, 10, {.name = "head"})};
}

TEST(Summary, TellsShapesAndParameters) {
  // 3 * 3 * 8 + 8, four times 8, 1352 * 10 + 10.
  EXPECT_EQ(small_network().summary({.input_shape = Shape{28, 28, 1}}),
            "sequential\n"
            "layer       result          parameters\n"
            "--------------------------------------\n"
            "conv2d      [?, 26, 26, 8]          80\n"
            "batch_norm  [?, 26, 26, 8]          32\n"
            "relu        [?, 26, 26, 8]           0\n"
            "max_pool2d  [?, 13, 13, 8]           0\n"
            "flatten     [?, 1352]                0\n"
            "dropout     [?, 1352]                0\n"
            "head        [?, 10]             13,530\n"
            "--------------------------------------\n"
            "parameters: 13,642\n"
            "  trainable: 13,626\n"
            "  not trainable: 16\n");
}

TEST(Summary, ShowsLastAxesWithoutAnInputShape) {
  EXPECT_EQ(small_network().summary(),
            "sequential\n"
            "layer       result    parameters\n"
            "--------------------------------\n"
            "conv2d      [.., 8]           80\n"
            "batch_norm  [.., 8]           32\n"
            "relu        [.., 8]            0\n"
            "max_pool2d  [.., 8]            0\n"
            "flatten     ?                  0\n"
            "dropout     ?                  0\n"
            "head        [.., 10]      13,530\n"
            "--------------------------------\n"
            "parameters: 13,642\n"
            "  trainable: 13,626\n"
            "  not trainable: 16\n");
}

TEST(Summary, CountsSharedParametersOnceAndTakesIds) {
  const Dense shared(4, 4);
  const Sequential model(Embedding(1000, 4), shared, relu, shared, GlobalAveragePool());
  const std::string text = model.summary({.input_shape = Shape{7}, .input_dtype = DType::i32});
  EXPECT_THAT(text, ::testing::HasSubstr("embedding            [?, 7, 4]       4,000\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("global_average_pool  [?, 4]              0\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("parameters: 4,020\n"));
}

TEST(Summary, ChangesNothingAndPassesErrorsOn) {
  const Sequential model = small_network();
  const auto before = model.variables()[4].read().to_vector<float>();
  GradientTape tape;
  (void)model.summary({.input_shape = Shape{28, 28, 1}});
  EXPECT_EQ(model.variables()[4].read().to_vector<float>(), before);
  EXPECT_THAT(
      [&] {
        (void)model.summary({.input_shape = Shape{14, 14, 1}});
      },
      lockstep::testing::throws<InvalidArgument>("[head]", "1352"));
}

}  // namespace
}  // namespace lockstep::nn
