// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/softmax.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include <limits>

#include "ops/every_isa.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using testing::expect_gradients;
using testing::expect_second_gradients;
using testing::Noise;
using testing::throws;
using testing::under_each_isa;

std::vector<double> doubles(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = doubles(found);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

// log(exp(x) / sum(exp(x))) along an axis, by the definition in double.
std::vector<double> log_softmax_reference(const Tensor& x, int axis) {
  const std::vector<double> values = doubles(x);
  const std::int64_t n = x.dim(axis);
  std::int64_t inner = 1;
  for (int i = (axis + x.rank()) % x.rank() + 1; i < x.rank(); ++i) inner *= x.dim(i);
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t first = at - at / inner % n * inner;
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k)
      sum += std::exp(values[static_cast<std::size_t>(first + k * inner)] - values[i]);
    result[i] = -std::log(sum);
  }
  return result;
}

std::vector<double> exponentials(std::vector<double> x) {
  for (double& value : x) value = std::exp(value);
  return x;
}

struct Case {
  Shape shape;
  int axis;
};
// Extents around the widths of registers, and axes with something behind them.
const Case kCases[] = {{{1}, 0},          {{3, 10}, 1},   {{2, 64}, -1}, {{5, 65}, -1},
                       {{2, 1000}, -1},   {{4, 7, 3}, 1}, {{33, 5}, 0},  {{2, 3, 600}, 1},
                       {{2, 3, 4, 5}, 0}, {{3, 1, 6}, 1}};

TEST(Softmax, EqualsTheDefinition) {
  under_each_isa([] {
    for (const Case& c : kCases) {
      SCOPED_TRACE(c.shape.to_string());
      const Tensor x = Noise(1).tensor<double>(c.shape, 4);
      const std::vector<double> expected = log_softmax_reference(x, c.axis);
      expect_near(softmax(x, c.axis), exponentials(expected), 1e-14);
      expect_near(log_softmax(x, c.axis), expected, 1e-14);
      const Tensor narrow = cast(x, DType::f32);
      expect_near(softmax(narrow, c.axis), exponentials(expected), 1e-6);
      expect_near(log_softmax(narrow, c.axis), expected, 1e-6);
      expect_near(softmax(cast(x, DType::bf16), c.axis), exponentials(expected), 0.02);
    }
  });
}

TEST(Softmax, IsStableForLargeNumbers) {
  under_each_isa([] {
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_THAT(softmax(testing::vec({1000.0F, 1000.0F})), testing::holds({0.5F, 0.5F}));
    EXPECT_THAT(softmax(testing::vec({-3e38F, 3e38F})), testing::holds({0.0F, 1.0F}));
    EXPECT_THAT(softmax(testing::vec({-infinity, 2.0F})), testing::holds({0.0F, 1.0F}));
    EXPECT_THAT(log_softmax(testing::vec({-1000.0F, 1000.0F})), testing::holds({-2000.0F, 0.0F}));
    // All the way down to where exp leaves the normal numbers.
    std::vector<float> falling(200);
    for (std::size_t i = 0; i < falling.size(); ++i) falling[i] = -static_cast<float>(i);
    const Tensor x(Shape{200}, std::span<const float>(falling));
    const std::vector<double> expected = exponentials(log_softmax_reference(x, 0));
    const Tensor y = softmax(x);
    for (std::size_t i = 0; i < 86; ++i)
      EXPECT_NEAR(y.data<float>()[i] / expected[i], 1, 5e-7) << i;
    for (std::size_t i = 88; i < 200; ++i) EXPECT_LE(y.data<float>()[i], 1e-38F) << i;
  });
}

TEST(Softmax, KeepsNaN) {
  std::vector<float> values(100, 1);
  values[77] = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = softmax(Tensor(Shape{100}, std::span<const float>(values)));
  for (const float element : y.data<float>()) EXPECT_TRUE(std::isnan(element));
}

TEST(Softmax, TakesNothing) {
  EXPECT_EQ(softmax(zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(log_softmax(zeros({3, 0})).shape(), (Shape{3, 0}));
}

TEST(Softmax, GradientsEqualDifferences) {
  for (const Case& c : {Case{{3, 5}, -1}, Case{{2, 4, 3}, 1}, Case{{4, 2}, 0}, Case{{1, 1}, 0}}) {
    SCOPED_TRACE(c.shape.to_string());
    const Tensor x = Noise(1).tensor<double>(c.shape, 2);
    const auto y = [&](const auto& inputs) { return softmax(inputs[0], c.axis); };
    const auto log_y = [&](const auto& inputs) { return log_softmax(inputs[0], c.axis); };
    expect_gradients(y, {x});
    expect_gradients(log_y, {x});
    expect_second_gradients(y, {x});
    expect_second_gradients(log_y, {x});
  }
}

// float's vectorised kernels against double's.
TEST(Softmax, FloatGradientsFollowDouble) {
  under_each_isa([] {
    for (const Case& c : kCases)
      for (const auto f : {softmax, log_softmax}) {
        SCOPED_TRACE(c.shape.to_string());
        const Tensor x = Noise(1).tensor<double>(c.shape, 2), dy = Noise(2).tensor<double>(c.shape);
        const auto gradient = [&](DType dtype) {
          GradientTape tape;
          const Tensor input = cast(x, dtype);
          tape.watch(input);
          return tape.gradient(f(input, c.axis, {}), {input},
                               {.target_gradient = cast(dy, dtype)})[0];
        };
        const std::vector<double> expected = doubles(gradient(DType::f64));
        expect_near(gradient(DType::f32), expected, 2e-6);
        expect_near(gradient(DType::f16), expected, 0.02);
      }
  });
}

TEST(Softmax, NamesWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        softmax(zeros({2, 3}), 2);
      },
      throws<InvalidArgument>("[softmax]", "2", "[2, 3]"));
  EXPECT_THAT([] { softmax(zeros({})); }, throws<InvalidArgument>("[softmax]", "scalar"));
  EXPECT_THAT([] { log_softmax(zeros({2}, DType::i32)); },
              throws<InvalidArgument>("[log_softmax]", "i32[2]"));
}

// ---- cross entropy

Tensor labels_for(std::int64_t rows, std::int64_t classes, DType dtype) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row)
    labels[static_cast<std::size_t>(row)] = row * 7 % classes;
  return cast(Tensor(Shape{rows}, std::span<const std::int64_t>(labels)), dtype);
}

TEST(SparseSoftmaxCrossEntropy, EqualsTheDefinition) {
  under_each_isa([] {
    for (const auto& [rows, classes] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 10}, {3, 1000}}) {
      const Tensor logits = Noise(1).tensor<double>({rows, classes}, 5);
      const std::vector<double> log_y = log_softmax_reference(logits, -1);
      std::vector<double> expected;
      for (std::int64_t row = 0; row < rows; ++row)
        expected.push_back(-log_y[static_cast<std::size_t>(row * classes + row * 7 % classes)]);
      for (const DType dtype : {DType::i32, DType::i64}) {
        const Tensor labels = labels_for(rows, classes, dtype);
        const Tensor loss = sparse_softmax_cross_entropy(labels, logits);
        EXPECT_EQ(loss.shape(), Shape{rows});
        expect_near(loss, expected, 1e-14);
        expect_near(sparse_softmax_cross_entropy(labels, cast(logits, DType::f32)), expected, 2e-6);
        expect_near(sparse_softmax_cross_entropy(labels, cast(logits, DType::bf16)), expected,
                    0.02);
      }
    }
  });
}

TEST(SparseSoftmaxCrossEntropy, IsExactForSureLogits) {
  const Tensor logits(Shape{2, 2}, {1000.0F, -1000.0F, 1000.0F, -1000.0F});
  const Tensor labels(Shape{2}, {0, 1});
  EXPECT_THAT(sparse_softmax_cross_entropy(labels, logits), testing::holds({0.0F, 2000.0F}));
}

TEST(SparseSoftmaxCrossEntropy, TakesLeadingAxesAndNoRows) {
  const Tensor logits = Noise(1).tensor<float>({2, 3, 4});
  const Tensor labels = labels_for(6, 4, DType::i64);
  const Tensor loss = sparse_softmax_cross_entropy(labels.with_shape({2, 3}), logits);
  EXPECT_EQ(loss.shape(), (Shape{2, 3}));
  EXPECT_EQ(loss.to_vector<float>(),
            sparse_softmax_cross_entropy(labels, logits.with_shape({6, 4})).to_vector<float>());

  const Tensor none = zeros({0, 4});
  GradientTape tape;
  tape.watch(none);
  const Tensor no_loss = sparse_softmax_cross_entropy(zeros({0}, DType::i64), none);
  EXPECT_EQ(no_loss.shape(), Shape{0});
  EXPECT_EQ(tape.gradient(no_loss, {none})[0].shape(), (Shape{0, 4}));
}

TEST(SparseSoftmaxCrossEntropy, GradientsEqualDifferences) {
  const Tensor labels = labels_for(4, 5, DType::i32);
  const auto f = [&](const auto& x) { return sparse_softmax_cross_entropy(labels, x[0]); };
  expect_gradients(f, {Noise(1).tensor<double>({4, 5}, 3)});
  expect_second_gradients(f, {Noise(1).tensor<double>({4, 5}, 3)});
}

TEST(SparseSoftmaxCrossEntropy, FloatGradientsFollowDouble) {
  under_each_isa([] {
    for (const std::int64_t classes : {3, 70, 1000}) {
      const Tensor x = Noise(1).tensor<double>({5, classes}, 3), d = Noise(2).tensor<double>({5});
      const Tensor labels = labels_for(5, classes, DType::i64);
      const auto gradient = [&](DType dtype) {
        GradientTape tape;
        const Tensor logits = cast(x, dtype);
        tape.watch(logits);
        return tape.gradient(sparse_softmax_cross_entropy(labels, logits), {logits},
                             {.target_gradient = cast(d, dtype)})[0];
      };
      const std::vector<double> expected = doubles(gradient(DType::f64));
      expect_near(gradient(DType::f32), expected, 1e-6);
      expect_near(gradient(DType::bf16), expected, 0.01);
    }
  });
}

TEST(SparseSoftmaxCrossEntropy, NamesALabelOutOfRange) {
  const Tensor logits = zeros({3, 4});
  EXPECT_THAT(
      [&] {
        sparse_softmax_cross_entropy(Tensor(Shape{3}, {0, 4, 1}), logits);
      },
      throws<InvalidArgument>("[sparse_softmax_cross_entropy]", "label 4", "row 1", "4"));
  EXPECT_THAT(
      [&] {
        sparse_softmax_cross_entropy(Tensor(Shape{3}, {0, 1, -1}), logits);
      },
      throws<InvalidArgument>("label -1", "row 2"));
}

TEST(SparseSoftmaxCrossEntropy, NamesWhatDoesNotFit) {
  const Tensor logits = zeros({3, 4});
  EXPECT_THAT([&] { sparse_softmax_cross_entropy(zeros({2}, DType::i32), logits); },
              throws<InvalidArgument>("[2]", "[3, 4]"));
  EXPECT_THAT([&] { sparse_softmax_cross_entropy(zeros({3}), logits); },
              throws<InvalidArgument>("f32[3]", "i32 or i64"));
  EXPECT_THAT(
      [&] {
        sparse_softmax_cross_entropy(zeros({3}, DType::i32), zeros({3, 0}));
      },
      throws<InvalidArgument>("[3, 0]", "1 class"));
}

TEST(SoftmaxCrossEntropy, EqualsTheDefinition) {
  under_each_isa([] {
    const Tensor labels = Noise(2).tensor<double>({3, 70}),
                 logits = Noise(1).tensor<double>({3, 70}, 5);
    const std::vector<double> log_y = log_softmax_reference(logits, -1);
    std::vector<double> expected(3, 0.0);
    for (std::size_t i = 0; i < log_y.size(); ++i)
      expected[i / 70] -= labels.data<double>()[i] * log_y[i];
    expect_near(softmax_cross_entropy(labels, logits), expected, 1e-14);
    expect_near(softmax_cross_entropy(cast(labels, DType::f32), cast(logits, DType::f32)), expected,
                2e-6);
    expect_near(softmax_cross_entropy(cast(labels, DType::bf16), cast(logits, DType::bf16)),
                expected, 0.05);
  });
}

TEST(SoftmaxCrossEntropy, PassesOverClassesOfNoWeight) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor labels(Shape{1, 2}, {0.0F, 1.0F}), logits(Shape{1, 2}, {-infinity, 3.0F});
  EXPECT_THAT(softmax_cross_entropy(labels, logits), testing::holds({0.0F}));
}

TEST(SoftmaxCrossEntropy, GradientsEqualDifferences) {
  const auto f = [](const auto& x) { return softmax_cross_entropy(x[0], x[1]); };
  const std::vector<Tensor> x{Noise(1).tensor<double>({3, 4}), Noise(2).tensor<double>({3, 4}, 3)};
  expect_gradients(f, x);
  expect_second_gradients([&](const auto& inputs) { return square(f(inputs)); }, x);
}

TEST(SigmoidCrossEntropy, EqualsTheDefinition) {
  under_each_isa([] {
    const Tensor labels = Noise(2).tensor<double>({3, 70}) * 0.5 + 0.5,
                 logits = Noise(1).tensor<double>({3, 70}, 6);
    std::vector<double> expected;
    for (std::size_t i = 0; i < 210; ++i) {
      const double p = labels.data<double>()[i], x = logits.data<double>()[i];
      expected.push_back(p * std::log1p(std::exp(-x)) + (1 - p) * std::log1p(std::exp(x)));
    }
    expect_near(sigmoid_cross_entropy(labels, logits), expected, 1e-14);
    expect_near(sigmoid_cross_entropy(cast(labels, DType::f32), cast(logits, DType::f32)), expected,
                2e-6);
    expect_near(sigmoid_cross_entropy(cast(labels, DType::bf16), cast(logits, DType::bf16)),
                expected, 0.05);
  });
}

TEST(SigmoidCrossEntropy, IsStableForSureLogits) {
  const Tensor logits = testing::vec({1000.0F, -1000.0F, 1000.0F, -1000.0F, 30.0F});
  const Tensor labels = testing::vec({1.0F, 0.0F, 0.0F, 1.0F, 1.0F});
  const std::vector<float> y = sigmoid_cross_entropy(labels, logits).to_vector<float>();
  EXPECT_THAT(std::vector<float>(y.begin(), y.begin() + 4),
              ::testing::ElementsAre(0.0F, 0.0F, 1000.0F, 1000.0F));
  EXPECT_FLOAT_EQ(y[4], static_cast<float>(std::exp(-30.0)));  // small, but not 0
}

TEST(SigmoidCrossEntropy, GradientsEqualDifferences) {
  const auto f = [](const auto& x) { return sigmoid_cross_entropy(x[0], x[1]); };
  const std::vector<Tensor> x{Noise(1).tensor<double>({3, 4}), Noise(2).tensor<double>({3, 4}, 3)};
  expect_gradients(f, x);
  expect_second_gradients([&](const auto& inputs) { return square(f(inputs)); }, x);
}

TEST(SigmoidCrossEntropy, NamesWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        sigmoid_cross_entropy(zeros({3}), zeros({3, 1}));
      },
      throws<InvalidArgument>("[sigmoid_cross_entropy]", "[3]", "[3, 1]"));
  EXPECT_THAT([] { sigmoid_cross_entropy(zeros({3}, DType::f64), zeros({3})); },
              throws<InvalidArgument>("f64[3]", "f32[3]"));
  EXPECT_THAT([] { sigmoid_cross_entropy(zeros({3}, DType::i32), zeros({3}, DType::i32)); },
              throws<InvalidArgument>("[sigmoid_cross_entropy]", "i32[3]"));
  EXPECT_EQ(sigmoid_cross_entropy(zeros({0, 2}), zeros({0, 2})).shape(), (Shape{0, 2}));
}

TEST(SoftmaxCrossEntropy, NamesWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        softmax_cross_entropy(zeros({3, 5}), zeros({3, 4}));
      },
      throws<InvalidArgument>("[softmax_cross_entropy]", "[3, 5]", "[3, 4]"));
  EXPECT_THAT(
      [] {
        softmax_cross_entropy(zeros({3, 4}, DType::f64), zeros({3, 4}));
      },
      throws<InvalidArgument>("f64[3, 4]", "f32[3, 4]"));
}

}  // namespace
}  // namespace lockstep
