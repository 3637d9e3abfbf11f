// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "nn/central_difference.h"
#include "support/errors.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::throws;

// Half a unit in the last place of 1, and a little for sums.
double rounding_of(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : 0x1p-11; }

// x as the layer sees it, in double.
std::vector<double> rounded(const Tensor& x, DType dtype) {
  return cast(cast(x, dtype), DType::f64).to_vector<double>();
}

TEST(PrecisionPolicy, HasKerassNames) {
  EXPECT_EQ(PrecisionPolicy("mixed_bfloat16"), mixed_bfloat16);
  EXPECT_EQ(PrecisionPolicy("mixed_bfloat16").compute_dtype(), DType::bf16);
  EXPECT_EQ(PrecisionPolicy("mixed_bfloat16").variable_dtype(), DType::f32);
  EXPECT_EQ(PrecisionPolicy(std::string("float64")), PrecisionPolicy(DType::f64));
  EXPECT_EQ(PrecisionPolicy(DType::bf16).name(), "bfloat16");
  EXPECT_EQ(mixed_float16.name(), "mixed_float16");
  EXPECT_EQ(PrecisionPolicy(DType::f16, DType::f64).name(), "f16 with variables of f64");
  EXPECT_THAT([] { PrecisionPolicy("half"); },
              throws<InvalidArgument>("[PrecisionPolicy]", "'half'", "mixed_float16"));
}

TEST(PrecisionPolicy, IsTheScopesElseTheProcesss) {
  EXPECT_EQ(global_policy(), float32);
  set_global_policy("mixed_float16");
  EXPECT_EQ(Dense(2, 2).policy(), mixed_float16);
  {
    const PolicyScope scope(mixed_bfloat16);
    EXPECT_EQ(Dense(2, 2).policy(), mixed_bfloat16);
    std::thread([] { EXPECT_EQ(global_policy(), mixed_float16); }).join();
    const PolicyScope inner(DType::f64);
    EXPECT_EQ(Conv2D(1, 1).policy(), PrecisionPolicy(DType::f64));
    EXPECT_EQ(Conv2D(1, 1, {.dtype = DType::f32}).policy(), float32);
  }
  const Dense made_before(2, 2);
  set_global_policy(float32);
  EXPECT_EQ(made_before.policy(), mixed_float16) << "a layer keeps its own";
  EXPECT_EQ(Dense(2, 2).policy(), float32);
  EXPECT_THAT([] { set_global_policy(DType::i32); },
              throws<InvalidArgument>("[set_global_policy]", "i32"));
  EXPECT_THAT([] { PolicyScope scope(DType::u8); }, throws<InvalidArgument>("[PolicyScope]", "u8"));
}

TEST(MixedPrecision, ComputesIn16BitsFromVariablesOf32) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    SCOPED_TRACE(name_of(dtype));
    const Dense layer(
        3, 2,
        {.kernel_initializer = [](const Shape& shape,
                                  DType kept) { return cast(scattered(shape), kept); },
         .bias_initializer = [](const Shape& shape,
                                DType kept) { return cast(scattered(shape, 1), kept); },
         .dtype = PrecisionPolicy(dtype, DType::f32)});
    EXPECT_EQ(layer.kernel().dtype(), DType::f32);
    EXPECT_EQ(layer.bias()->dtype(), DType::f32);
    const Tensor x = cast(scattered({4, 3}, 2), DType::f32);
    const Tensor y = layer(x);
    ASSERT_EQ(y.dtype(), dtype);
    const auto a = rounded(x, dtype), w = rounded(layer.kernel(), dtype),
               b = rounded(*layer.bias(), dtype), got = rounded(y, dtype);
    for (std::size_t row = 0; row < 4; ++row)
      for (std::size_t out = 0; out < 2; ++out) {
        double expected = b[out], size = std::abs(b[out]);
        for (std::size_t in = 0; in < 3; ++in) {
          expected += a[row * 3 + in] * w[in * 2 + out];
          size += std::abs(a[row * 3 + in] * w[in * 2 + out]);
        }
        EXPECT_NEAR(got[row * 2 + out], expected, rounding_of(dtype) * size);
      }
  }
}

TEST(MixedPrecision, GivesGradientsOf32Bits) {
  const Dense layer(2, 1,
                    {.kernel_initializer = constant(0.5), .dtype = PrecisionPolicy(mixed_float16)});
  Variable x(Tensor({2, 2}, {1.0f, 2.0f, 3.0f, 4.0f}));
  GradientTape tape;
  const Tensor loss = sum(cast(layer(x), DType::f32));
  const auto gradients = tape.gradient(loss, std::vector{layer.kernel(), *layer.bias(), x});
  for (const Tensor& gradient : gradients) EXPECT_EQ(gradient.dtype(), DType::f32);
  EXPECT_EQ(gradients[0].to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(gradients[1].to_vector<float>(), (std::vector<float>{2}));
  EXPECT_EQ(gradients[2].to_vector<float>(), (std::vector<float>(4, 0.5f)));
}

TEST(MixedPrecision, LayersWithoutVariablesFollowTheirInput) {
  const PolicyScope scope(mixed_bfloat16);
  const Sequential model(Conv2D(1, 2), MaxPool2D(), Flatten(), Dropout(0.5),
                         Dense(8, 4, {.activation = relu}), Dense(4, 3, {.dtype = DType::f32}));
  const Tensor images = lockstep::ones({2, 6, 6, 1});
  EXPECT_EQ(model(images, {.training = true}).dtype(), DType::f32);
  EXPECT_EQ(Sequential(Conv2D(1, 2), MaxPool2D(), Flatten())(images).dtype(), DType::bf16);
  EXPECT_EQ(Sequential(MaxPool2D(), Flatten())(images).dtype(), DType::f32);
  for (const Variable& variable : model.variables()) EXPECT_EQ(variable.dtype(), DType::f32);
}

TEST(MixedPrecision, RefusesInputsThatWouldLoseBits) {
  const PolicyScope scope(mixed_bfloat16);
  const Dense layer(2, 2, {.name = "head"});
  EXPECT_THAT(
      [&] {
        layer(lockstep::zeros({1, 2}, DType::f64));
      },
      throws<InvalidArgument>("[head]", "bf16", "f64", "cast"));
  EXPECT_THAT(
      [&] {
        layer(lockstep::zeros({1, 2}, DType::u8));
      },
      throws<InvalidArgument>("[head]", "u8"));
  EXPECT_EQ(Dense(2, 2, {.dtype = DType::f64})(lockstep::zeros({1, 2}, DType::f16)).dtype(),
            DType::f64);
}

}  // namespace
}  // namespace lockstep::nn
