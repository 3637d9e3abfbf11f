// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn/dense.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "nn/central_difference.h"

namespace lockstep::nn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Initializer values(std::vector<float> numbers) {
  return [numbers](const Shape& shape, DType) {
    return Tensor(shape, std::span<const float>(numbers));
  };
}

TEST(Dense, MultipliesAddsAndActivates) {
  const Dense layer(2, 3,
                    {.activation = relu,
                     .kernel_initializer = values({1, 2, 3, 4, 5, 6}),
                     .bias_initializer = values({0.5f, -20, 1})});
  const Tensor y = layer(Tensor({2, 2}, {1.0f, 2.0f, -1.0f, 0.0f}));
  // [1 2] W = [9 12 15], [-1 0] W = [-1 -2 -3].
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(9.5f, 0, 16, 0, 0, 0));
}

TEST(Dense, WorksOnTheLastAxisAndOnNoRows) {
  const Dense layer(2, 1, {.use_bias = false, .kernel_initializer = values({1, 10})});
  const Tensor y = layer(Tensor({2, 1, 2}, {1.0f, 2.0f, 3.0f, 4.0f}));
  EXPECT_EQ(y.shape(), Shape({2, 1, 1}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(21, 43));
  EXPECT_EQ(layer(lockstep::zeros({0, 2})).shape(), Shape({0, 1}));
}

TEST(Dense, MakesItsVariablesAtOnce) {
  const Dense layer(3, 2, {.name = "head"});
  ASSERT_EQ(layer.variables().size(), 2u);
  EXPECT_EQ(layer.variables()[0].name(), "head/kernel");
  EXPECT_EQ(layer.variables()[0].shape(), Shape({3, 2}));
  EXPECT_EQ(layer.variables()[1].name(), "head/bias");
  EXPECT_EQ(layer.variables()[1].shape(), Shape({2}));
  EXPECT_EQ(layer.trainable_variables(), layer.variables());
  EXPECT_THAT(layer.bias()->read().to_vector<float>(), ElementsAre(0, 0));
  EXPECT_EQ(Dense(3, 2, {.use_bias = false}).variables().size(), 1u);
}

TEST(Dense, SharesItsVariablesWithCopies) {
  const Dense layer(1, 1, {.use_bias = false});
  const Dense copy = layer;
  Variable kernel = layer.kernel();
  kernel.assign(Tensor({1, 1}, {3.0f}));
  EXPECT_EQ(copy(Tensor({1, 1}, {2.0f})).item<float>(), 6);
}

TEST(Dense, HasTheGradientsOfCentralDifferences) {
  for (const Activation activation :
       {linear, relu, tanh, sigmoid, gelu, gelu_tanh, silu, elu, softplus}) {
    const Dense layer(
        3, 4,
        {.activation = activation,
         .kernel_initializer = [](const Shape& shape, DType) { return scattered(shape); },
         .bias_initializer = [](const Shape& shape, DType) { return scattered(shape, 1); },
         .dtype = DType::f64});
    Variable x(scattered({5, 3}, 2), {.name = "x"});
    SCOPED_TRACE(activation.name());
    expect_central_differences({layer.kernel(), *layer.bias(), x}, [&] {
      return sum(square(layer(x)) * scattered({5, 4}, 3));
    });
  }
}

TEST(Dense, NamesItselfAndBothSizesWhenTheInputDoesNotFit) {
  const Dense layer(64, 10, {.name = "head"});
  const auto refused = [&](const Tensor& x) -> std::string {
    try {
      layer(x);
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.location().file, HasSubstr("dense_test.cc"));
      return error.message();
    }
    return "accepted";
  };
  EXPECT_THAT(refused(lockstep::zeros({2, 100})),
              AllOf(HasSubstr("[head]"), HasSubstr("64"), HasSubstr("f32[2, 100]")));
  EXPECT_THAT(refused(lockstep::zeros({64})),
              AllOf(HasSubstr("rank 2 or more"), HasSubstr("f32[64]")));
  EXPECT_THAT(refused(lockstep::zeros({2, 64}, DType::f64)),
              AllOf(HasSubstr("f32"), HasSubstr("f64")));
  EXPECT_THAT(refused(Tensor()), HasSubstr("undefined"));
}

TEST(Dense, RefusesSizesDTypesAndInitializersThatCannotBe) {
  EXPECT_THROW(Dense(0, 3), InvalidArgument);
  EXPECT_THROW(Dense(3, -1), InvalidArgument);
  EXPECT_THROW(Dense(3, 1, {.dtype = DType::i32}), InvalidArgument);
  try {
    Dense(std::int64_t{1} << 40, std::int64_t{1} << 40);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.location().line, __LINE__ - 3);
    EXPECT_THAT(error.message(), HasSubstr("[Dense] shape [1099511627776, 1099511627776]"));
  }
  const auto transposed = [](const Shape& shape, DType dtype) {
    return lockstep::zeros({shape.dim(-1), shape.dim(0)}, dtype);
  };
  try {
    Dense(3, 1, {.kernel_initializer = transposed});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("f32[3, 1]"), HasSubstr("f32[1, 3]")));
  }
}

}  // namespace
}  // namespace lockstep::nn
