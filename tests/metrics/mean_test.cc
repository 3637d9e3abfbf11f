// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/metrics.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

namespace lockstep::metrics {
namespace {

TEST(Mean, IsOverAllValuesSeen) {
  Mean mean;
  EXPECT_EQ(mean.result().item<double>(), 0);
  mean.update_state(Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f}));
  mean.update_state(Tensor(10.0f));
  EXPECT_EQ(mean.result().item<double>(), 4);
  mean.update_state(zeros({0}));
  EXPECT_EQ(mean.result().item<double>(), 4);
  mean.reset_state();
  EXPECT_EQ(mean.result().item<double>(), 0);
}

TEST(Mean, WeighsValues) {
  Mean mean;
  mean.update_state(Tensor({3}, {1.0f, 2.0f, 4.0f}), Tensor({3}, {1.0f, 0.0f, 3.0f}));
  EXPECT_EQ(mean.result().item<double>(), 13.0 / 4);
  mean.reset_state();
  // A weight per row counts for each of the row's values.
  mean.update_state(Tensor({2, 2}, {1, 2, 3, 5}), Tensor({2, 1}, {3, 1}));
  EXPECT_EQ(mean.result().item<double>(), (3 * 3 + 8) / 8.0);
  EXPECT_THROW(mean.update_state(Tensor({2}, {1, 2}), zeros({3})), InvalidArgument);
  EXPECT_THROW(mean.update_state(Tensor({1}, {1}), zeros({2})), InvalidArgument);
}

TEST(Mean, CountsExactlyBeyondFloat) {
  Mean mean;
  mean.update_state(ones({1}), Tensor(1 << 24));
  mean.update_state(Tensor({3}, {1.0f, 1.0f, 0.0f}));
  EXPECT_EQ(mean.result().item<double>(), ((1 << 24) + 2.0) / ((1 << 24) + 3.0));
}

TEST(Mean, IsOfNoConcernToATape) {
  Variable w(Tensor(3.0f));
  Mean mean;
  GradientTape tape;
  const Tensor loss = square(w);
  mean.update_state(loss);
  EXPECT_EQ(tape.gradient(mean.result(), {w})[0].defined(), false);
  EXPECT_EQ(mean.result().item<double>(), 9);
}

TEST(SparseCategoricalAccuracy, ComparesTheLargestPrediction) {
  SparseCategoricalAccuracy accuracy;
  const Tensor predictions({3, 3}, {0.1f, 0.7f, 0.2f, 5.0f, -1.0f, 2.0f, 0.0f, 0.0f, 1.0f});
  accuracy.update_state(Tensor({3}, {1, 0, 1}), predictions);
  EXPECT_EQ(accuracy.result().item<double>(), 2.0 / 3);
  accuracy.update_state(range(0, 3), predictions, Tensor({3}, {0.0f, 0.0f, 3.0f}));
  EXPECT_EQ(accuracy.result().item<double>(), 5.0 / 6);
  accuracy.update_state(Tensor({0}, std::initializer_list<int>{}), zeros({0, 3}));
  EXPECT_EQ(accuracy.result().item<double>(), 5.0 / 6);
  accuracy.reset_state();
  EXPECT_EQ(accuracy.result().item<double>(), 0);
}

TEST(SparseCategoricalAccuracy, RefusesShapesThatDoNotFit) {
  SparseCategoricalAccuracy accuracy;
  try {
    accuracy.update_state(Tensor({2}, {1, 0}), zeros({3, 4}));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.message(),
                ::testing::AllOf(::testing::HasSubstr("[SparseCategoricalAccuracy::update_state]"),
                                 ::testing::HasSubstr("[2]"), ::testing::HasSubstr("[3, 4]")));
  }
  EXPECT_THROW(accuracy.update_state(zeros({3}), zeros({3, 4})), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::metrics
