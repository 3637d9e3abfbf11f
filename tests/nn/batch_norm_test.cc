// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "nn/central_difference.h"
#include "support/errors.h"
#include "support/values.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::holds;
using lockstep::testing::Noise;
using lockstep::testing::throws;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr CallOptions kTraining{.training = true};

std::vector<std::string> names_of(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

TEST(BatchNorm, NormalisesByTheBatchInTrainingAndMovesItsAverages) {
  const BatchNorm layer(1, {.momentum = 0.9});
  const Tensor x({4, 1}, {1.0f, 3.0f, 5.0f, 7.0f});
  // Mean 4, variance 5, of which a tenth moves.
  EXPECT_THAT(layer(x, kTraining).to_vector<float>(),
              Pointwise(FloatNear(1e-5f), {-1.34151f, -0.44717f, 0.44717f, 1.34151f}));
  EXPECT_FLOAT_EQ(layer.moving_mean().read().item<float>(), 0.4f);
  EXPECT_FLOAT_EQ(layer.moving_variance().read().item<float>(), 1.4f);
}

TEST(BatchNorm, NormalisesByItsAveragesOtherwise) {
  const BatchNorm layer(2, {.epsilon = 0.5,
                            .beta_initializer = constant(1),
                            .gamma_initializer = constant(3),
                            .moving_mean_initializer = constant(2),
                            .moving_variance_initializer = constant(3.5)});
  EXPECT_THAT(layer(Tensor({1, 2}, {2.0f, 6.0f})).to_vector<float>(), ElementsAre(1, 7));
  EXPECT_THAT(layer.moving_mean().read(), holds({2, 2}));
}

TEST(BatchNorm, TakesEachChannelOverAllOtherAxes) {
  const BatchNorm layer(3, {.momentum = 0, .dtype = DType::f64});
  const Tensor x = Noise(1).tensor<double>({2, 3, 4, 3}, 5);
  layer(x, kTraining);
  for (int c = 0; c < 3; ++c) {
    double mean = 0, square = 0;
    for (int i = 0; i < 24; ++i) mean += x.data<double>()[static_cast<std::size_t>(3 * i + c)] / 24;
    for (int i = 0; i < 24; ++i)
      square += std::pow(x.data<double>()[static_cast<std::size_t>(3 * i + c)] - mean, 2) / 24;
    EXPECT_NEAR(layer.moving_mean().read().data<double>()[static_cast<std::size_t>(c)], mean,
                1e-12);
    EXPECT_NEAR(layer.moving_variance().read().data<double>()[static_cast<std::size_t>(c)], square,
                1e-11);
  }
}

TEST(BatchNorm, ListsItsVariables) {
  const BatchNorm layer(3, {.name = "bn"});
  EXPECT_THAT(names_of(layer.variables()),
              ElementsAre("bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance"));
  EXPECT_THAT(names_of(layer.trainable_variables()), ElementsAre("bn/gamma", "bn/beta"));
  EXPECT_THAT(names_of(BatchNorm(3, {.center = false, .scale = false}).variables()),
              ElementsAre("batch_norm/moving_mean", "batch_norm/moving_variance"));
  EXPECT_THAT(names_of(Sequential(Dense(2, 3), BatchNorm(3)).trainable_variables()),
              ElementsAre("dense/kernel", "dense/bias", "batch_norm/gamma", "batch_norm/beta"));
}

TEST(BatchNorm, HasTheGradientsOfCentralDifferences) {
  const auto of = [](double phase) -> Initializer {
    return [phase](const Shape& shape, DType) { return scattered(shape, phase); };
  };
  for (const bool synchronized : {false, true})
    for (const bool training : {false, true}) {
      const BatchNorm layer(2, {.synchronized = synchronized,
                                .beta_initializer = of(1),
                                .gamma_initializer = of(2),
                                .dtype = DType::f64});
      Variable x(scattered({3, 2, 2}, 3), {.name = "x"});
      expect_central_differences({*layer.gamma(), *layer.beta(), x}, [&] {
        return sum(square(layer(x, {.training = training})) * scattered({3, 2, 2}, 4));
      });
    }
}

TEST(BatchNorm, SynchronizedIsTheSameWithOneReplica) {
  const BatchNorm local(4, {.momentum = 0.5}),
      synchronized(4, {.momentum = 0.5, .synchronized = true});
  const Tensor x = Noise(2).tensor<float>({8, 3, 4}, 3);
  EXPECT_THAT(synchronized(x, kTraining).to_vector<float>(),
              Pointwise(FloatNear(1e-5f), local(x, kTraining).to_vector<float>()));
  EXPECT_THAT(synchronized.moving_variance().read().to_vector<float>(),
              Pointwise(FloatNear(1e-5f), local.moving_variance().read().to_vector<float>()));
}

TEST(BatchNorm, LosesNoDigitsFarFromZero) {
  for (const bool synchronized : {false, true}) {
    const BatchNorm layer(1, {.momentum = 0, .synchronized = synchronized});
    layer(Tensor({4, 1}, {10001.0f, 10003.0f, 10005.0f, 10007.0f}), kTraining);
    EXPECT_FLOAT_EQ(layer.moving_variance().read().item<float>(), 5);
  }
}

TEST(BatchNorm, KeepsStatisticsInF32Beside16Bits) {
  const BatchNorm layer(1, {.momentum = 0, .dtype = DType::f16});
  EXPECT_EQ(layer.moving_variance().dtype(), DType::f32);
  // Squares of 300 do not fit into f16.
  const Tensor y = layer(Tensor({2, 1}, {half(300.0f), half(-300.0f)}), kTraining);
  EXPECT_EQ(y.dtype(), DType::f16);
  EXPECT_THAT(cast(y, DType::f32).to_vector<float>(), Pointwise(FloatNear(1e-3f), {1.0f, -1.0f}));
  EXPECT_FLOAT_EQ(layer.moving_variance().read().item<float>(), 90000);
}

TEST(BatchNorm, RefusesWhatCannotBe) {
  EXPECT_THAT([] { BatchNorm(0); }, throws<InvalidArgument>("[BatchNorm]", "got 0"));
  EXPECT_THAT([] { BatchNorm(1, {.momentum = 1.5}); },
              throws<InvalidArgument>("[BatchNorm]", "momentum", "1.5"));
  EXPECT_THAT([] { BatchNorm(1, {.epsilon = -1}); }, throws<InvalidArgument>("epsilon"));
  EXPECT_THAT([] { BatchNorm(1, {.dtype = DType::i32}); }, throws<InvalidArgument>("floating"));
  EXPECT_THAT(
      [] {
        BatchNorm(3)(lockstep::zeros({2, 4}));
      },
      throws<InvalidArgument>("[batch_norm]", "3 values", "[2, 4]"));
  EXPECT_THAT([] { BatchNorm(3)(lockstep::zeros({3})); },
              throws<InvalidArgument>("[batch_norm]", "rank 2"));
}

}  // namespace
}  // namespace lockstep::nn
