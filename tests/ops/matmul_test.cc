// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/matmul.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

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

// A tensor of f64 read by indices from the end; axes of extent 1 are read at 0.
class Reader {
 public:
  explicit Reader(const Tensor& x)
      : shape_(x.shape()), values_(cast(x, DType::f64).to_vector<double>()) {}
  double at(const std::vector<std::int64_t>& index) const {
    std::int64_t offset = 0;
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      const std::size_t from_end = static_cast<std::size_t>(shape_.rank() - axis);
      offset = offset * shape_[axis] + (shape_[axis] == 1 ? 0 : index[index.size() - from_end]);
    }
    return values_[static_cast<std::size_t>(offset)];
  }

 private:
  Shape shape_;
  std::vector<double> values_;
};

// The definition: one sum per element of a result of `shape`.
std::vector<double> reference(const Tensor& a, const Tensor& b, MatmulOptions options,
                              const Shape& shape) {
  const Reader from_a(a), from_b(b);
  const std::int64_t k = a.dim(options.transpose_a ? -2 : -1);
  const auto rank = static_cast<std::size_t>(shape.rank());
  std::vector<std::int64_t> index(rank, 0);
  std::vector<double> result;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    double sum = 0;
    for (std::int64_t t = 0; t < k; ++t) {
      std::vector<std::int64_t> in_a = index, in_b = index;
      in_a[rank - (options.transpose_a ? 1 : 2)] = index[rank - 2];
      in_a[rank - (options.transpose_a ? 2 : 1)] = t;
      in_b[rank - (options.transpose_b ? 2 : 1)] = index[rank - 1];
      in_b[rank - (options.transpose_b ? 1 : 2)] = t;
      sum += from_a.at(in_a) * from_b.at(in_b);
    }
    result.push_back(sum);
    for (std::size_t axis = rank; axis-- > 0 && ++index[axis] == shape[static_cast<int>(axis)];)
      index[axis] = 0;
  }
  return result;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = cast(found, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

struct Case {
  Shape a, b;
  MatmulOptions options;
  Shape result;
};

const Case kCases[] = {
    {{2, 3}, {3, 4}, {}, {2, 4}},
    {{1, 1}, {1, 1}, {}, {1, 1}},
    {{3, 2}, {3, 4}, {.transpose_a = true}, {2, 4}},
    {{2, 3}, {4, 3}, {.transpose_b = true}, {2, 4}},
    {{3, 2}, {4, 3}, {.transpose_a = true, .transpose_b = true}, {2, 4}},
    {{5, 2, 3}, {5, 3, 4}, {}, {5, 2, 4}},
    {{5, 2, 3}, {3, 4}, {}, {5, 2, 4}},
    {{5, 3, 2}, {3, 4}, {.transpose_a = true}, {5, 2, 4}},
    {{5, 2, 3}, {4, 3}, {.transpose_b = true}, {5, 2, 4}},
    {{2, 3}, {5, 3, 4}, {}, {5, 2, 4}},
    {{2, 3}, {1, 3, 4}, {}, {1, 2, 4}},
    {{6, 5, 2, 3}, {6, 5, 4, 3}, {.transpose_b = true}, {6, 5, 2, 4}},
    {{3, 1, 2, 3}, {4, 3, 2}, {}, {3, 4, 2, 2}},
    {{3, 1, 3, 2}, {1, 4, 3, 2}, {.transpose_a = true}, {3, 4, 2, 2}},
    {{2, 1, 3, 2, 3}, {2, 4, 1, 3, 2}, {}, {2, 4, 3, 2, 2}},
    {{2, 5, 2, 3}, {1, 1, 3, 4}, {}, {2, 5, 2, 4}},
    {{2, 5, 2, 3}, {1, 4, 3}, {.transpose_b = true}, {2, 5, 2, 4}},
};

TEST(Matmul, EqualsTheDefinition) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.a.to_string() + " " + c.b.to_string());
    const Tensor a = Noise(1).tensor<double>(c.a), b = Noise(2).tensor<double>(c.b);
    const std::vector<double> expected = reference(a, b, c.options, c.result);
    const Tensor y = matmul(a, b, c.options);
    ASSERT_EQ(y.shape(), c.result);
    expect_near(y, expected, 1e-13);
    expect_near(matmul(cast(a, DType::f32), cast(b, DType::f32), c.options), expected, 1e-6);
    const Tensor half_a = cast(a, DType::bf16), half_b = cast(b, DType::bf16);
    expect_near(matmul(half_a, half_b, c.options), reference(half_a, half_b, c.options, c.result),
                1.01 / 256);
  }
}

// Off the widths of registers, and batches of which one side has a single matrix.
TEST(Matmul, EqualsTheDefinitionForLargerMatrices) {
  const Case cases[] = {
      {{3, 67, 129}, {129, 65}, {}, {3, 67, 65}},
      {{2, 129, 31}, {2, 129, 33}, {.transpose_a = true}, {2, 31, 33}},
      {{5, 1, 1, 97}, {7, 97, 1}, {}, {5, 7, 1, 1}},
      {{33, 257}, {4, 19, 257}, {.transpose_b = true}, {4, 33, 19}},
  };
  testing::under_each_isa([&] {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.a.to_string() + " " + c.b.to_string());
      const Tensor a = Noise(1).tensor<double>(c.a), b = Noise(2).tensor<double>(c.b);
      const std::vector<double> expected = reference(a, b, c.options, c.result);
      expect_near(matmul(a, b, c.options), expected, 1e-12);
      expect_near(matmul(cast(a, DType::f32), cast(b, DType::f32), c.options), expected, 1e-5);
    }
  });
}

TEST(Matmul, GradientOfAWeightOfBatchOneIsWrittenInPlace) {
  const Tensor x = Noise(1).tensor<float>({2, 4, 3}), w = Noise(2).tensor<float>({1, 3, 5});
  const Buffer place = Buffer::allocate(Device{}, 15 * sizeof(float));
  GradientTape tape;
  tape.watch(w);
  const Tensor dw =
      tape.gradient(matmul(x, w), {w}, {.place = [&](std::size_t) { return place; }})[0];
  EXPECT_EQ(dw.shape(), w.shape());
  EXPECT_EQ(dw.raw_data(), place.data());
}

TEST(Matmul, RoundsSixteenBitTypesOnce) {
  const Tensor a = Noise(1).tensor<double>({9, 40}), b = Noise(2).tensor<double>({40, 5});
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor rounded_a = cast(a, dtype), rounded_b = cast(b, dtype);
    const Tensor y = matmul(rounded_a, rounded_b);
    EXPECT_EQ(y.dtype(), dtype);
    const double unit = dtype == DType::f16 ? 1.0 / 2048 : 1.0 / 256;
    expect_near(y, reference(rounded_a, rounded_b, {}, {9, 5}), 1.01 * unit);
  }
}

TEST(Matmul, MultipliesIntegers) {
  const Tensor a(Shape{2, 2}, {1, -2, 3, 4});
  EXPECT_THAT(matmul(a, a), testing::holds<std::int32_t>({-5, -10, 15, 10}));
  const Tensor wide(Shape{1, 1}, {std::int64_t{3'000'000'000}});
  EXPECT_THAT(matmul(wide, wide), testing::holds<std::int64_t>({9'000'000'000'000'000'000}));
}

TEST(Matmul, TakesEmptyMatrices) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    EXPECT_EQ(matmul(zeros({0, 3}, dtype), zeros({3, 4}, dtype)).shape(), (Shape{0, 4}));
    EXPECT_EQ(matmul(zeros({2, 3}, dtype), zeros({3, 0}, dtype)).shape(), (Shape{2, 0}));
    EXPECT_EQ(matmul(zeros({0, 2, 3}, dtype), zeros({0, 3, 4}, dtype)).shape(), (Shape{0, 2, 4}));
    expect_near(matmul(zeros({2, 0}, dtype), zeros({0, 2}, dtype)), {0, 0, 0, 0}, 0);
  }
}

TEST(Matmul, GradientsEqualDifferences) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.a.to_string() + " " + c.b.to_string());
    expect_gradients([&](const auto& x) { return matmul(x[0], x[1], c.options); },
                     {Noise(1).tensor<double>(c.a), Noise(2).tensor<double>(c.b)});
  }
}

TEST(Matmul, SecondGradientsEqualDifferences) {
  expect_second_gradients(
      [](const auto& x) { return square(matmul(x[0], x[1], {.transpose_b = true})); },
      {Noise(1).tensor<double>({2, 3, 2}), Noise(2).tensor<double>({4, 2})});
}

TEST(Matmul, NamesShapesThatDoNotFit) {
  const Tensor a = zeros({2, 3}), b = zeros({4, 5});
  EXPECT_THAT([&] { matmul(a, b); }, throws<InvalidArgument>("[matmul]", "[2, 3]", "[4, 5]"));
  EXPECT_THAT([&] { matmul(a, b, {.transpose_a = true}); },
              throws<InvalidArgument>("[2, 3] transposed", "[4, 5]"));
  EXPECT_THAT([&] { matmul(zeros({3}), a); }, throws<InvalidArgument>("[3]", "[2, 3]", "rank 2"));
  EXPECT_THAT(
      [&] {
        matmul(zeros({2, 3, 4}), zeros({5, 4, 2}));
      },
      throws<InvalidArgument>("[2, 3, 4]", "[5, 4, 2]", "batch"));
  EXPECT_THAT(
      [&] {
        matmul(a, zeros({3, 2}, DType::f64));
      },
      throws<InvalidArgument>("f32[2, 3]", "f64[3, 2]"));
  EXPECT_THAT(
      [&] {
        matmul(zeros({2, 2}, DType::u8), zeros({2, 2}, DType::u8));
      },
      throws<InvalidArgument>("[matmul]", "u8[2, 2]"));
  EXPECT_THAT([&] { matmul(Tensor(), a); }, throws<InvalidArgument>("[matmul]", "a is undefined"));
}

TEST(Matmul, GradientOfAWeightIsWrittenInPlace) {
  const Tensor x = Noise(1).tensor<float>({4, 3}), dy = Noise(2).tensor<float>({4, 5});
  const Buffer place = Buffer::allocate(Device{}, 15 * sizeof(float));
  Placement placement(place, DType::f32, 15);
  const Tensor dw = matmul(x, dy, {.transpose_a = true});
  EXPECT_EQ(dw.raw_data(), place.data());
}

// ---- dense

double apply(Activation activation, double z) {
  switch (activation) {
    case Activation::relu:
      return std::max(z, 0.0);
    case Activation::tanh:
      return std::tanh(z);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::gelu:
      return 0.5 * z * std::erfc(-z / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
    case Activation::silu:
      return z / (1 + std::exp(-z));
    case Activation::elu:
      return z > 0 ? z : std::expm1(z);
    case Activation::softplus:
      return std::log1p(std::exp(z));
    case Activation::none:
      break;
  }
  return z;
}

constexpr Activation kActivations[] = {Activation::none,    Activation::relu, Activation::tanh,
                                       Activation::sigmoid, Activation::gelu, Activation::gelu_tanh,
                                       Activation::silu,    Activation::elu,  Activation::softplus};

TEST(Dense, EqualsTheDefinition) {
  for (const Shape& shape : {Shape{7, 5}, Shape{2, 3, 5}, Shape{5}, Shape{1, 5}})
    for (const Activation activation : kActivations)
      for (const bool biased : {false, true}) {
        SCOPED_TRACE(shape.to_string());
        const Tensor x = Noise(1).tensor<double>(shape), w = Noise(2).tensor<double>({5, 33});
        const Tensor bias = biased ? Noise(3).tensor<double>({33}) : Tensor();
        const Shape rows{shape.num_elements() / 5, 5};
        std::vector<double> expected = reference(x.with_shape(rows), w, {}, {rows[0], 33});
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] =
              apply(activation, expected[i] + (biased ? bias.data<double>()[i % 33] : 0.0));
        const Tensor y = dense(x, w, bias, activation);
        EXPECT_EQ(y.shape(), shape.with_dim(-1, 33));
        expect_near(y, expected, 1e-13);
        const auto narrow = [](const Tensor& t, DType dtype) {
          return t.defined() ? cast(t, dtype) : t;
        };
        expect_near(dense(narrow(x, DType::f32), narrow(w, DType::f32), narrow(bias, DType::f32),
                          activation),
                    expected, 2e-6);
        expect_near(dense(narrow(x, DType::bf16), narrow(w, DType::bf16), narrow(bias, DType::bf16),
                          activation),
                    expected, 0.05);
      }
}

TEST(Dense, GradientsEqualDifferences) {
  for (const Activation activation : kActivations) {
    const auto f = [&](const auto& x) { return dense(x[0], x[1], x[2], activation); };
    const auto unbiased = [&](const auto& x) { return dense(x[0], x[1], Tensor(), activation); };
    const Tensor w = Noise(2).tensor<double>({3, 4}), bias = Noise(3).tensor<double>({4});
    for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 3}, Shape{3}}) {
      SCOPED_TRACE(shape.to_string());
      expect_gradients(f, {Noise(1).tensor<double>(shape), w, bias});
      expect_gradients(unbiased, {Noise(1).tensor<double>(shape), w});
      expect_second_gradients([&](const auto& x) { return square(f(x)); },
                              {Noise(1).tensor<double>(shape), w, bias});
    }
  }
}

// The bias's gradient counts the rows in which y passes dy.
void expect_counts(std::int64_t rows, std::int64_t channels, Activation activation) {
  const Tensor x = Noise(1).tensor<float>({rows, 1}), w = Noise(2).tensor<float>({1, channels});
  const Tensor bias = Noise(3).tensor<float>({channels});
  GradientTape tape;
  tape.watch(bias);
  const Tensor y = dense(x, w, bias, activation);
  std::vector<double> expected(static_cast<std::size_t>(channels), 0.0);
  for (std::int64_t i = 0; i < rows * channels; ++i)
    expected[static_cast<std::size_t>(i % channels)] +=
        activation == Activation::none || y.data<float>()[static_cast<std::size_t>(i)] > 0;
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(channels));
  expect_near(tape.gradient(y, {bias})[0], expected, 0);
}

// Rows and channels around those at which the sums are folded.
TEST(Dense, BiasGradientSumsAllRows) {
  testing::under_each_isa([] {
    for (const std::int64_t rows : {1, 3, 16, 513, 1030})
      for (const std::int64_t channels : {1, 2, 10, 300, 513})
        for (const Activation activation : {Activation::none, Activation::relu})
          expect_counts(rows, channels, activation);
  });
}

TEST(Dense, SixteenBitGradientsFollowFloat) {
  const Tensor x = Noise(1).tensor<float>({6, 4}), w = Noise(2).tensor<float>({4, 3});
  const Tensor bias = Noise(3).tensor<float>({3});
  const auto gradients = [](const Tensor& x, const Tensor& w, const Tensor& bias) {
    GradientTape tape;
    for (const Tensor* t : {&x, &w, &bias}) tape.watch(*t);
    return tape.gradient(dense(x, w, bias, Activation::relu), {x, w, bias});
  };
  const std::vector<Tensor> expected = gradients(x, w, bias);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<Tensor> found = gradients(cast(x, dtype), cast(w, dtype), cast(bias, dtype));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(found[i].dtype(), dtype);
      expect_near(found[i], cast(expected[i], DType::f64).to_vector<double>(), 0.05);
    }
  }
}

TEST(Dense, TakesNoRows) {
  const Tensor x = zeros({0, 3}), w = Noise(1).tensor<float>({3, 2}), bias = zeros({2});
  GradientTape tape;
  for (const Tensor* t : {&x, &w, &bias}) tape.watch(*t);
  const Tensor y = dense(x, w, bias, Activation::relu);
  EXPECT_EQ(y.shape(), (Shape{0, 2}));
  const std::vector<Tensor> gradients = tape.gradient(y, {x, w, bias});
  EXPECT_EQ(gradients[0].shape(), (Shape{0, 3}));
  expect_near(gradients[1], {0, 0, 0, 0, 0, 0}, 0);
  expect_near(gradients[2], {0, 0}, 0);
}

TEST(Dense, NamesShapesThatDoNotFit) {
  const Tensor x = zeros({2, 3}), w = zeros({3, 4});
  EXPECT_THAT(
      [&] {
        dense(x, zeros({4, 3}), {});
      },
      throws<InvalidArgument>("[dense]", "[2, 3]", "[4, 3]"));
  EXPECT_THAT([&] { dense(x, w, zeros({3})); }, throws<InvalidArgument>("[4]", "[3, 4]", "[3]"));
  EXPECT_THAT([&] { dense(x, w, zeros({4}, DType::f64)); }, throws<InvalidArgument>("f32", "f64"));
  EXPECT_THAT(
      [&] {
        dense(zeros({2, 3}, DType::i32), zeros({3, 4}, DType::i32), {});
      },
      throws<InvalidArgument>("[dense]", "i32[2, 3]"));
}

}  // namespace
}  // namespace lockstep
