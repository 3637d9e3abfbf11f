// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <lockstep/ops/cast.h>
#include <lockstep/optim/sgd.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <functional>

namespace lockstep::optim {
namespace {

constexpr int kSteps = 12;
constexpr double kRate = 0.05, kMomentum = 0.9;

// The gradient of step t: the same for library and formula.
double gradient_at(int t) { return std::sin(1.7 * t) + 0.3; }

// Walks kSteps with the optimizer in `dtype` and by `formula`, which changes w and v.
template <class Formula>
void compare(const SGDOptions& options, DType dtype, double tolerance, Formula formula) {
  Variable w(full({3}, 1.5, dtype));
  SGD optimizer(options);
  double expected = 1.5, velocity = 0;
  for (int t = 0; t < kSteps; ++t) {
    optimizer.apply_gradients({full({3}, gradient_at(t), dtype)}, {w});
    formula(expected, velocity, gradient_at(t));
    for (const double x : cast(w.read(), DType::f64).to_vector<double>())
      ASSERT_NEAR(x, expected, tolerance) << "step " << t;
  }
  EXPECT_EQ(optimizer.iterations().read().item<int>(), kSteps);
}

void both_dtypes(const SGDOptions& options,
                 const std::function<void(double&, double&, double)>& formula) {
  compare(options, DType::f64, 1e-14, formula);
  compare(options, DType::f32, 1e-6, formula);
}

TEST(SGD, FollowsTheGradient) {
  both_dtypes({.learning_rate = kRate}, [](double& w, double&, double g) { w -= kRate * g; });
}

TEST(SGD, KeepsAVelocity) {
  both_dtypes({.learning_rate = kRate, .momentum = kMomentum}, [](double& w, double& v, double g) {
    v = kMomentum * v - kRate * g;
    w += v;
  });
}

TEST(SGD, LooksAheadWithNesterov) {
  both_dtypes({.learning_rate = kRate, .momentum = kMomentum, .nesterov = true},
              [](double& w, double& v, double g) {
                v = kMomentum * v - kRate * g;
                w += kMomentum * v - kRate * g;
              });
}

TEST(SGD, ShrinksWeightsByTheirDecayFirst) {
  both_dtypes({.learning_rate = kRate, .weight_decay = 0.5}, [](double& w, double&, double g) {
    w -= kRate * 0.5 * w;
    w -= kRate * g;
  });
}

TEST(SGD, VelocityIsInUnitsOfSteps) {
  Variable w(Tensor(1.0f));
  SGD optimizer({.learning_rate = 0.5, .momentum = 0.75});
  optimizer.apply_gradients({Tensor(4.0f)}, {w});
  EXPECT_EQ(optimizer.slot(w, "velocity").read().item<float>(), -2);
  optimizer.apply_gradients({Tensor(0.0f)}, {w});
  EXPECT_EQ(optimizer.slot(w, "velocity").read().item<float>(), -1.5f);
  EXPECT_EQ(w.read().item<float>(), -2.5f);
}

TEST(SGD, UpdatesEmptyVariables) {
  Variable w(zeros({0, 3}));
  SGD optimizer({.momentum = 0.9});
  optimizer.apply_gradients({zeros({0, 3})}, {w});
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
}

}  // namespace
}  // namespace lockstep::optim
