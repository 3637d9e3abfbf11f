// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/optim/clip.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <limits>

namespace lockstep::optim {
namespace {

using testing::ElementsAre;

TEST(ClipByGlobalNorm, ScalesAllAlikeAndOnlyDown) {
  const std::vector<Tensor> tensors{Tensor({1}, {3.0f}), Tensor(), Tensor({1}, {4.0f})};
  const auto clipped = clip_by_global_norm(tensors, 1);
  EXPECT_NEAR(clipped[0].item<float>(), 0.6, 1e-7);
  EXPECT_FALSE(clipped[1].defined());
  EXPECT_NEAR(clipped[2].item<float>(), 0.8, 1e-7);
  const auto untouched = clip_by_global_norm(tensors, 5);
  EXPECT_EQ(untouched[0].item<float>(), 3);
  EXPECT_EQ(untouched[2].item<float>(), 4);
  EXPECT_THROW(clip_by_global_norm(tensors, 0), InvalidArgument);
}

TEST(ClipByGlobalNorm, MakesAllNaNWhenTheNormIsNotFinite) {
  const std::vector<Tensor> tensors{Tensor({1}, {std::numeric_limits<float>::infinity()}),
                                    Tensor({2}, {1.0f, 2.0f})};
  for (const Tensor& clipped : clip_by_global_norm(tensors, 1))
    for (const float x : clipped.data<float>()) EXPECT_TRUE(std::isnan(x));
}

TEST(ClipByGlobalNorm, KeepsDTypes) {
  const std::vector<Tensor> tensors{Tensor({1}, {3.0}), full({1}, 4, DType::bf16)};
  const auto clipped = clip_by_global_norm(tensors, 2.5);
  EXPECT_EQ(clipped[0].item<double>(), 1.5);
  EXPECT_EQ(clipped[1].dtype(), DType::bf16);
  EXPECT_EQ(clipped[1].item<float>(), 2);
}

}  // namespace
}  // namespace lockstep::optim
