// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/softmax.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::Noise;
using lockstep::testing::throws;
using lockstep::testing::vec;

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// d f_i / d xs[k]_j at [i, j], by central differences.
std::vector<std::vector<double>> differences(const Function& f, const std::vector<Tensor>& xs,
                                             std::size_t k) {
  constexpr double kStep = 1e-5;
  const auto columns = static_cast<std::size_t>(xs[k].num_elements());
  std::vector<std::vector<double>> jacobian(static_cast<std::size_t>(f(xs).num_elements()),
                                            std::vector<double>(columns));
  for (std::size_t j = 0; j < columns; ++j) {
    const auto at = [&](double offset) {
      std::vector<double> values = xs[k].to_vector<double>();
      values[j] += offset;
      std::vector<Tensor> moved = xs;
      moved[k] = Tensor(xs[k].shape(), std::span<const double>(values));
      return f(moved).to_vector<double>();
    };
    const auto above = at(kStep), below = at(-kStep);
    for (std::size_t i = 0; i < jacobian.size(); ++i)
      jacobian[i][j] = (above[i] - below[i]) / (2 * kStep);
  }
  return jacobian;
}

TEST(Jacobian, IsThatOfCentralDifferences) {
  const Function f = [](const std::vector<Tensor>& xs) { return tanh(matmul(xs[0], xs[1])); };
  Noise noise(3);
  const std::vector xs{noise.tensor<double>({2, 3}), noise.tensor<double>({3, 4})};
  GradientTape tape;
  for (const Tensor& x : xs) tape.watch(x);
  const auto jacobians = tape.jacobian(f(xs), xs);
  EXPECT_EQ(jacobians[0].shape(), (Shape{2, 4, 2, 3}));
  EXPECT_EQ(jacobians[1].shape(), (Shape{2, 4, 3, 4}));
  for (std::size_t k = 0; k < xs.size(); ++k) {
    const auto expected = differences(f, xs, k);
    const auto actual = jacobians[k].to_vector<double>();
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (std::size_t j = 0; j < expected[i].size(); ++j)
        EXPECT_NEAR(actual[i * expected[i].size() + j], expected[i][j], 1e-8) << k << i << j;
  }
}

TEST(Jacobian, OfAScalarIsTheGradient) {
  const Tensor x = vec({1, 2, 3});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = sum(square(x));
  EXPECT_THAT(tape.jacobian(y, {x})[0], holds({2, 4, 6}));
  EXPECT_THAT(tape.gradient(y, {x})[0], holds({2, 4, 6}));
  EXPECT_EQ(tape.jacobian(y, {x})[0].shape(), Shape{3});
}

TEST(Jacobian, OfAGradientIsTheHessian) {
  const Tensor x = vec({1, 2});
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor slope = inner.gradient(x * x * x, {x})[0];
  EXPECT_THAT(outer.jacobian(slope, {x})[0], holds({6, 0, 0, 12}));
}

TEST(Jacobian, IsDifferentiatedInTurn) {
  const Tensor x = vec({1, 2});
  GradientTape outer;
  outer.watch(x);
  Tensor jacobian;
  {
    GradientTape inner;
    inner.watch(x);
    jacobian = inner.jacobian(square(x), {x})[0];  // diag(2 x)
  }
  EXPECT_THAT(outer.gradient(sum(square(jacobian)), {x})[0], holds({8, 16}));
}

TEST(Jacobian, OfVariables) {
  const Variable w(vec({1, 2})), unused(vec({3}));
  GradientTape tape;
  const auto jacobians = tape.jacobian(w * 3, std::vector{w, unused});
  EXPECT_THAT(jacobians[0], holds({3, 0, 0, 3}));
  EXPECT_FALSE(jacobians[1].defined());
}

TEST(Jacobian, OfNothing) {
  const Tensor none = zeros({0, 2}), other(1.0f);
  GradientTape tape;
  tape.watch(none);
  const auto jacobians = tape.jacobian(square(none), {none, other});
  EXPECT_EQ(jacobians[0].shape(), (Shape{0, 2, 0, 2}));
  EXPECT_FALSE(jacobians[1].defined());
}

TEST(Jacobian, NamesAxesThatAreTooMany) {
  const Tensor x = ones({1, 1, 1, 1, 1});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT([&] { tape.jacobian(square(x), {x}); },
              throws<InvalidArgument>("[GradientTape::jacobian]", "jacobian_test"));
}

TEST(Jacobian, ServesOneCallUnlessPersistent) {
  const Tensor x = vec({1, 2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = square(x);
  tape.jacobian(y, {x});
  EXPECT_THAT([&] { tape.jacobian(y, {x}); },
              throws<FailedPrecondition>("[GradientTape::jacobian]", "persistent"));
  EXPECT_THAT([&] { tape.batch_jacobian(y, x); },
              throws<FailedPrecondition>("[GradientTape::batch_jacobian]", "persistent"));
}

TEST(BatchJacobian, IsTheRowsOfTheJacobian) {
  const Tensor x = Noise(4).tensor<double>({3, 4});
  const Tensor w = Noise(5).tensor<double>({4, 2});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = softmax(matmul(x, w));
  const Tensor by_row = tape.batch_jacobian(y, x);
  ASSERT_EQ(by_row.shape(), (Shape{3, 2, 4}));
  const auto all = tape.jacobian(y, {x})[0].to_vector<double>();  // [3, 2, 3, 4]
  const auto actual = by_row.to_vector<double>();
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 4; ++j)
        EXPECT_DOUBLE_EQ(actual[(row * 2 + i) * 4 + j], all[((row * 2 + i) * 3 + row) * 4 + j]);
}

TEST(BatchJacobian, OfOneNumberPerRow) {
  const Tensor x = vec({1, 2, 3});
  GradientTape tape;
  tape.watch(x);
  const Tensor jacobian = tape.batch_jacobian(square(x), x);
  EXPECT_EQ(jacobian.shape(), Shape{3});
  EXPECT_THAT(jacobian, holds({2, 4, 6}));
}

TEST(BatchJacobian, OfNoRowsAndOfWhatIsNotThere) {
  const Tensor none = zeros({0, 2}), x = vec({1, 2});
  GradientTape tape({.persistent = true});
  tape.watch(none);
  EXPECT_EQ(tape.batch_jacobian(square(none), none).shape(), (Shape{0, 2, 2}));
  EXPECT_FALSE(tape.batch_jacobian(square(x), x).defined()) << "never watched";
}

TEST(BatchJacobian, NamesRowsThatDoNotFit) {
  const Tensor x = vec({1, 2, 3});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  EXPECT_THAT(
      [&] {
        tape.batch_jacobian(vec({1, 2}), x);
      },
      throws<InvalidArgument>("[GradientTape::batch_jacobian]", "[2]", "[3]"));
  EXPECT_THAT([&] { tape.batch_jacobian(sum(x), x); },
              throws<InvalidArgument>("[GradientTape::batch_jacobian]", "[]", "[3]"));
  EXPECT_THAT([&] { tape.jacobian(Tensor(), {x}); },
              throws<InvalidArgument>("[GradientTape::jacobian]", "jacobian_test"));
}

}  // namespace
}  // namespace lockstep
