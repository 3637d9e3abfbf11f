// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn/dropout.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <limits>

namespace lockstep::nn {
namespace {

TEST(Dropout, LeavesItsInputUnlessTraining) {
  const Tensor x = ones({100});
  EXPECT_EQ(Dropout(0.5)(x).raw_data(), x.raw_data());
  EXPECT_EQ(Dropout(0)(x, {.training = true}).raw_data(), x.raw_data());
}

TEST(Dropout, DropsAtItsRateAndKeepsTheMean) {
  RandomState state{.seed = 3};
  const RandomScope scope(state);
  constexpr int kElements = 100000;
  const Tensor y = Dropout(0.2)(ones({kElements}), {.training = true});
  double dropped = 0;
  for (const float value : y.data<float>()) {
    ASSERT_TRUE(value == 0 || value == 1.25f) << value;
    dropped += value == 0;
  }
  // The binomial's standard deviation is 126; five of them.
  EXPECT_NEAR(dropped, 0.2 * kElements, 650);
}

TEST(Dropout, DrawsAnotherMaskEachTimeAndTheSameAgainFromTheSameState) {
  const Dropout layer(0.5);
  const Tensor x = ones({1000});
  const auto two_masks = [&] {
    RandomState state{.seed = 7};
    const RandomScope scope(state);
    const auto first = layer(x, {.training = true}).to_vector<float>();
    return std::pair(first, layer(x, {.training = true}).to_vector<float>());
  };
  const auto [first, second] = two_masks();
  EXPECT_NE(first, second);
  EXPECT_EQ(two_masks(), std::pair(first, second));
}

TEST(Dropout, PassesTheGradientOfWhatItKept) {
  RandomState state{.seed = 7};
  const RandomScope scope(state);
  const Tensor x = full({64}, 3);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = Dropout(0.5)(x, {.training = true});
  const auto gradient = tape.gradient(y, {x})[0].to_vector<float>();
  for (std::size_t i = 0; i < gradient.size(); ++i)
    EXPECT_EQ(gradient[i], y.data<float>()[i] == 0 ? 0 : 2);
}

TEST(Dropout, DropsInfinitiesToo) {
  RandomState state{.seed = 7};
  const RandomScope scope(state);
  const Tensor y =
      Dropout(0.5)(full({64}, std::numeric_limits<double>::infinity()), {.training = true});
  for (const float value : y.data<float>()) EXPECT_FALSE(std::isnan(value));
}

TEST(Dropout, RefusesRatesAndDTypesThatCannotBe) {
  EXPECT_THROW(Dropout(1), InvalidArgument);
  EXPECT_THROW(Dropout(-0.1), InvalidArgument);
  EXPECT_THROW(Dropout(std::nan("")), InvalidArgument);
  EXPECT_THROW(Dropout(0.5)(lockstep::zeros({2}, DType::i32)), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::nn
