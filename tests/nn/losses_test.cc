// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn/losses.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <concepts>
#include <limits>

namespace lockstep::nn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const Tensor kOneToFive({5}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f});

TEST(ComputeAverageLoss, LOS_01_DividesByTheRows) {
  EXPECT_NEAR(compute_average_loss(Tensor({3}, {2.5f, 6.2f, 5.0f})).item<float>(), 4.566667, 1e-6);
}

TEST(ComputeAverageLoss, LOS_03_TakesAnExplicitGlobalBatchSize) {
  EXPECT_EQ(compute_average_loss(kOneToFive, {.global_batch_size = 5}).item<float>(), 3);
  EXPECT_EQ(compute_average_loss(kOneToFive, {.global_batch_size = 10}).item<float>(), 1.5f);
  EXPECT_EQ(compute_average_loss(kOneToFive, {.global_batch_size = 0}).item<float>(), 0);
  try {
    compute_average_loss(kOneToFive, {.global_batch_size = -1});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("[compute_average_loss]"), HasSubstr("-1")));
    EXPECT_THAT(error.location().file, HasSubstr("losses_test.cc"));
  }
}

TEST(ComputeAverageLoss, AnExplicitCountIsUsedAsItIs) {
  EXPECT_EQ(compute_average_loss(kOneToFive, {.count = Tensor(0.5f)}).item<float>(), 30);
  EXPECT_EQ(compute_average_loss(kOneToFive, {.count = Tensor(-3.0f)}).item<float>(), -5);
  EXPECT_EQ(compute_average_loss(kOneToFive, {.count = Tensor(std::int64_t{0})}).item<float>(), 0);
}

// LOS-03: TensorFlow's TypeError for 10.0 and ValueError for [10] do not compile here.
static_assert(std::constructible_from<ExampleCount, std::size_t>);
static_assert(!std::constructible_from<ExampleCount, double>);
static_assert(!std::constructible_from<ExampleCount, bool>);
static_assert(!std::constructible_from<ExampleCount, Tensor>);
static_assert(!std::constructible_from<ExampleCount, std::vector<int>>);

TEST(ComputeAverageLoss, LOS_04_IsZeroForNoRowsAndRefusesAScalar) {
  EXPECT_EQ(compute_average_loss(lockstep::zeros({0})).item<float>(), 0);
  EXPECT_EQ(compute_average_loss(lockstep::zeros({0, 7})).item<float>(), 0);
  EXPECT_THROW(compute_average_loss(Tensor(1.0f)), InvalidArgument);
  EXPECT_THROW(compute_average_loss(Tensor()), InvalidArgument);
  EXPECT_THROW(compute_average_loss(Tensor({2}, {1, 2})), InvalidArgument) << "integers";
}

TEST(ComputeAverageLoss, SumsAllAxesAndDividesByRowsOnly) {
  EXPECT_EQ(compute_average_loss(lockstep::ones({2, 3, 4})).item<float>(), 12);
}

TEST(ComputeAverageLoss, TakesACountAsATensor) {
  for (const Tensor& count : {Tensor(std::int64_t{10}), Tensor(10), Tensor(10.0f)})
    EXPECT_EQ(compute_average_loss(kOneToFive, {.count = count}).item<float>(), 1.5f)
        << count.to_string();
  EXPECT_THROW(compute_average_loss(kOneToFive, {.count = kOneToFive}), InvalidArgument);
  EXPECT_THROW(compute_average_loss(kOneToFive, {.global_batch_size = 5, .count = Tensor(5)}),
               InvalidArgument);
}

TEST(ComputeAverageLoss, HasTheGradientOneOverTheCount) {
  const auto gradient_with = [](const AverageLossOptions& options) {
    GradientTape tape;
    tape.watch(kOneToFive);
    return tape.gradient(compute_average_loss(kOneToFive, options), {kOneToFive})[0]
        .to_vector<float>();
  };
  EXPECT_THAT(gradient_with({}), testing::Each(0.2f));
  EXPECT_THAT(gradient_with({.global_batch_size = 10}), testing::Each(0.1f));
  EXPECT_THAT(gradient_with({.count = Tensor(10)}), testing::Each(0.1f));
  EXPECT_THAT(gradient_with({.global_batch_size = 0}), testing::Each(0.0f));
  EXPECT_THAT(gradient_with({.count = Tensor(0)}), testing::Each(0.0f));
  EXPECT_THAT(gradient_with({.sample_weight = Tensor({5}, {1.0f, 0.0f, 2.0f, 0.0f, 5.0f})}),
              ElementsAre(0.2f, 0, 0.4f, 0, 1));
}

TEST(ComputeAverageLoss, ADivisorOfZeroGivesZeroWhateverTheLosses) {
  const Tensor losses({2}, {std::numeric_limits<float>::infinity(), std::nanf("")});
  EXPECT_EQ(compute_average_loss(losses, {.global_batch_size = 0}).item<float>(), 0);
  EXPECT_EQ(compute_average_loss(losses, {.count = Tensor(0)}).item<float>(), 0);
}

TEST(ComputeAverageLoss, WeightsAlignTheirRank) {
  const Tensor losses({2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  const auto weighted = [&](const Tensor& loss, const Tensor& weight) {
    return compute_average_loss(loss, {.sample_weight = weight}).item<float>();
  };
  EXPECT_EQ(weighted(losses, Tensor(2.0f)), 21);
  EXPECT_EQ(weighted(losses, Tensor({2}, {1.0f, 10.0f})), (6 + 150) / 2.0f);
  EXPECT_EQ(weighted(losses, Tensor({2, 1}, {1.0f, 10.0f})), (6 + 150) / 2.0f);
  EXPECT_EQ(weighted(losses, losses), 91 / 2.0f);
  // [5] against [5, 1] is five products, not twenty-five.
  EXPECT_EQ(weighted(kOneToFive, lockstep::ones({5, 1})), 3);
  EXPECT_EQ(weighted(kOneToFive, Tensor({5}, {0, 1, 0, 0, 0})), 0.4f) << "integer weights";
  EXPECT_THROW(weighted(kOneToFive, lockstep::ones({4})), InvalidArgument);
  EXPECT_THROW(weighted(Tensor({1}, {1.0f}), lockstep::ones({5})), InvalidArgument) << "would grow";
}

TEST(ComputeAverageLoss, KeepsTheDTypeAndSumsHalfInFloat) {
  // 4096 times 32 is more than f16 holds; the mean is not.
  const Tensor result = compute_average_loss(full({4096}, 32, DType::f16));
  EXPECT_EQ(result.dtype(), DType::f16);
  EXPECT_EQ(result.item<float>(), 32);
  EXPECT_EQ(compute_average_loss(full({3}, 0.1, DType::f64)).dtype(), DType::f64);
}

TEST(ScaleRegularizationLoss, LOS_06_IsTheSumWithOneReplica) {
  EXPECT_NEAR(scale_regularization_loss(Tensor({3}, {2.5f, 6.2f, 5.0f})).item<float>(), 13.7, 1e-5);
}

TEST(MeanSquaredError, IsTheMeanOverTheLastAxis) {
  const Tensor targets({2, 2}, {0.0f, 1.0f, 2.0f, 3.0f});
  const Tensor predictions({2, 2}, {1.0f, 1.0f, 0.0f, 6.0f});
  EXPECT_THAT(mean_squared_error(targets, predictions).to_vector<float>(), ElementsAre(0.5f, 6.5f));
  EXPECT_THROW(mean_squared_error(targets, kOneToFive), InvalidArgument);
  EXPECT_THROW(mean_squared_error(Tensor(1.0f), Tensor(1.0f)), InvalidArgument);
  EXPECT_EQ(mean_squared_error(lockstep::zeros({0, 3}), lockstep::zeros({0, 3})).shape(),
            Shape({0}));
}

TEST(MeanSquaredError, NamesWhatIsUndefined) {
  const Tensor x = lockstep::ones({2, 2});
  try {
    mean_squared_error(x, Tensor());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.location().line, __LINE__ - 3);
    EXPECT_EQ(error.message().find("[mean_squared_error] predictions are undefined"), 0u);
  }
  EXPECT_THROW(mean_squared_error(Tensor(), x), InvalidArgument);
}

TEST(SparseSoftmaxCrossEntropy, TakesLabelsFirst) {
  const Tensor loss =
      sparse_softmax_cross_entropy(Tensor({1}, {1}), Tensor({1, 2}, {0.0f, std::log(3.0f)}));
  EXPECT_NEAR(loss.item<float>(), -std::log(0.75), 1e-6);
}

}  // namespace
}  // namespace lockstep::nn
