// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <lockstep/optim/adam.h>
#include <lockstep/tensor/factory.h>

#include <cmath>

namespace lockstep::optim {
namespace {

// Adam of one number, as the paper's section 2 has it after algorithm 1, in double.
struct Reference {
  double w, rate, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  double m = 0, v = 0;
  int t = 0;

  void update(double g) {
    ++t;
    m = beta_1 * m + (1 - beta_1) * g;
    v = beta_2 * v + (1 - beta_2) * g * g;
    const double corrected = rate * std::sqrt(1 - std::pow(beta_2, t)) / (1 - std::pow(beta_1, t));
    w -= corrected * m / (std::sqrt(v) + epsilon);
  }
};

double gradient_at(int t) { return std::sin(1.7 * t) + 0.3; }

TEST(Adam, FollowsThePaperInF64) {
  Variable w(full({5}, 1.5, DType::f64));
  Adam optimizer({.learning_rate = 0.02, .beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3});
  Reference expected{.w = 1.5, .rate = 0.02, .beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-3};
  for (int t = 0; t < 20; ++t) {
    optimizer.apply_gradients({full({5}, gradient_at(t), DType::f64)}, {w});
    expected.update(gradient_at(t));
    for (const double x : w.read().to_vector<double>())
      ASSERT_NEAR(x, expected.w, 1e-14) << "step " << t;
    ASSERT_NEAR(optimizer.slot(w, "m").read().data<double>()[4], expected.m, 1e-15);
    ASSERT_NEAR(optimizer.slot(w, "v").read().data<double>()[4], expected.v, 1e-15);
  }
}

TEST(Adam, FollowsThePaperInF32WithItsDefaults) {
  constexpr int kElements = 37;  // more than a vector, and some left over
  Variable w(full({kElements}, 1.5));
  Adam optimizer;
  std::vector<Reference> expected(kElements, {.w = 1.5, .rate = 0.001});
  for (int t = 0; t < 50; ++t) {
    std::vector<float> gradient;
    for (int i = 0; i < kElements; ++i)
      gradient.push_back(static_cast<float>(gradient_at(t) * (i - 18)));
    optimizer.apply_gradients({Tensor({kElements}, std::span<const float>(gradient))}, {w});
    for (std::size_t i = 0; i < kElements; ++i) expected[i].update(gradient[i]);
  }
  for (std::size_t i = 0; i < kElements; ++i)
    EXPECT_NEAR(w.read().data<float>()[i], expected[i].w, 2e-6) << i;
}

TEST(Adam, ShrinksWeightsByTheirDecayFirst) {
  Variable w(full({3}, 2, DType::f64));
  Adam optimizer({.learning_rate = 0.02, .weight_decay = 0.5});
  Reference expected{.w = 2, .rate = 0.02};
  for (int t = 0; t < 10; ++t) {
    optimizer.apply_gradients({full({3}, gradient_at(t), DType::f64)}, {w});
    expected.w -= 0.02 * 0.5 * expected.w;
    expected.update(gradient_at(t));
    ASSERT_NEAR(w.read().data<double>()[1], expected.w, 1e-14) << "step " << t;
  }
}

TEST(Adam, FirstStepIsTheRateWhateverTheScale) {
  for (const float scale : {1e-3f, 1.0f, 1e4f}) {
    Variable w(Tensor(0.0f));
    Adam optimizer({.learning_rate = 0.25});
    optimizer.apply_gradients({Tensor(scale)}, {w});
    EXPECT_NEAR(w.read().item<float>(), -0.25, 0.25 * 4e-3) << scale;
  }
}

TEST(Adam, DoesNotMoveWithoutAGradient) {
  Variable w(Tensor({2}, {1.0f, 2.0f}));
  Adam optimizer({.learning_rate = 1});
  optimizer.apply_gradients({zeros({2})}, {w});
  EXPECT_EQ(w.read().to_vector<float>(), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace lockstep::optim
