// SPDX-License-Identifier: Apache-2.0
// Optimizers and schedules walk the steps that Keras and PyTorch walked (tests/golden/generate.py).
#include <gmock/gmock.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <string>
#include <vector>

#include "optim/golden.h"

namespace lockstep::optim {
namespace {

// A kernel and a bias whose numbers, counted through both, start at sin(1 + i) and have in step t the
// gradient 0.05 (i + 1) w + sin(1.7 t + 0.9 i).
struct Problem {
  static Tensor numbers(const Shape& shape, int first, auto&& of) {
    std::vector<double> values;
    for (int i = 0; i < shape.num_elements(); ++i) values.push_back(of(first + i));
    return Tensor(shape, std::span<const double>(values));
  }
  static double start(int i) { return std::sin(1.0 + i); }

  Variable kernel{numbers({2, 3}, 0, start), {.name = "kernel"}};
  Variable bias{numbers({3}, 6, start), {.name = "bias"}};

  std::vector<double> weights() const { return joined(kernel.read(), bias.read()); }
  static std::vector<double> joined(const Tensor& a, const Tensor& b) {
    std::vector<double> all = a.to_vector<double>();
    const std::vector<double> more = b.to_vector<double>();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  void step(Optimizer& optimizer, int t) const {
    const std::vector<double> w = weights();
    const auto gradient = [&](int i) {
      return 0.05 * (i + 1) * w[static_cast<std::size_t>(i)] + std::sin(1.7 * t + 0.9 * i);
    };
    optimizer.apply_gradients({numbers({2, 3}, 0, gradient), numbers({3}, 6, gradient)},
                              {kernel, bias});
  }
};

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "number " << i;
}

void walk(const std::string& optimizer_name, const Json& steps, const Json& one) {
  const Json& options = one.at("options");
  SCOPED_TRACE(optimizer_name + options.dump());
  const auto optimizer = golden_optimizer(optimizer_name, options);
  // Norms that gradients are clipped to are f32 here; Nadam's constant 0.96 is f32 in Keras.
  const bool by_norm = options.contains("clipnorm") || options.contains("global_clipnorm");
  const double tolerance = by_norm ? 1e-6 : optimizer_name == "Nadam" ? 1e-7 : 1e-9;
  const Problem problem;
  std::size_t kept = 0;
  for (int t = 1; kept < steps.size(); ++t) {
    problem.step(*optimizer, t);
    if (t != steps[kept].get<int>()) continue;
    SCOPED_TRACE("step " + std::to_string(t));
    expect_near(problem.weights(), one.at("weights")[kept++].get<std::vector<double>>(), tolerance);
    if (::testing::Test::HasFatalFailure()) return;
  }
  if (!one.contains("average")) return;
  const auto average = one.at("average").get<std::vector<double>>();
  expect_near(Problem::joined(optimizer->slot(problem.kernel, "average").read(),
                              optimizer->slot(problem.bias, "average").read()),
              average, tolerance);
  optimizer->finalize_variable_values(std::vector{problem.kernel, problem.bias});
  expect_near(problem.weights(), average, tolerance);
}

class GoldenOptimizer : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenOptimizer, ::testing::ValuesIn(kGoldenOptimizers),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GoldenOptimizer, WalksTheSameSteps) {
  const Json all = golden_fixture(GetParam());
  ASSERT_FALSE(all.at("cases").empty());
  for (const Json& one : all.at("cases")) walk(all.at("optimizer"), all.at("steps"), one);
}

Schedule schedule_of(const std::string& name, double initial, const Json& o) {
  if (name == "ExponentialDecay")
    return exponential_decay(initial, {.decay_rate = o.at("decay_rate"),
                                       .decay_steps = o.at("decay_steps"),
                                       .staircase = o.value("staircase", false)});
  if (name == "CosineDecay")
    return cosine_decay(o.value("warmup_target", initial),
                        {.decay_steps = o.at("decay_steps"),
                         .alpha = o.value("alpha", 0.0),
                         .warmup_steps = o.value("warmup_steps", std::int64_t{0})});
  if (name == "PiecewiseConstantDecay")
    return piecewise_constant(o.at("boundaries"), o.at("values"));
  if (name == "PolynomialDecay") {
    PolynomialDecayOptions options{.decay_steps = o.at("decay_steps")};
    options.end_learning_rate = o.value("end_learning_rate", options.end_learning_rate);
    options.power = o.value("power", options.power);
    options.cycle = o.value("cycle", options.cycle);
    return polynomial_decay(initial, options);
  }
  if (name == "InverseTimeDecay")
    return inverse_time_decay(initial, {.decay_rate = o.at("decay_rate"),
                                        .decay_steps = o.at("decay_steps"),
                                        .staircase = o.value("staircase", false)});
  if (name == "CosineDecayRestarts") {
    CosineDecayRestartsOptions options{.first_decay_steps = o.at("first_decay_steps")};
    options.t_mul = o.value("t_mul", options.t_mul);
    options.m_mul = o.value("m_mul", options.m_mul);
    options.alpha = o.value("alpha", options.alpha);
    return cosine_decay_restarts(initial, options);
  }
  OneCycleOptions options{.total_steps = o.at("total_steps")};
  options.warmup_fraction = o.value("pct_start", options.warmup_fraction);
  options.anneal = o.value("anneal_strategy", "cos") == "cos" ? Anneal::cosine : Anneal::linear;
  options.div_factor = o.value("div_factor", options.div_factor);
  options.final_div_factor = o.value("final_div_factor", options.final_div_factor);
  return one_cycle(initial, options);
}

class GoldenSchedule : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenSchedule, ::testing::Values("schedules", "one_cycle"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GoldenSchedule, HasTheSameRates) {
  const Json all = golden_fixture(GetParam());
  ASSERT_FALSE(all.at("schedules").empty());
  for (const Json& one : all.at("schedules")) {
    SCOPED_TRACE(one.at("schedule").get<std::string>() + one.at("options").dump());
    const Schedule schedule = schedule_of(one.at("schedule"), one.at("initial"), one.at("options"));
    std::int64_t step = 0;
    for (const double expected : one.at("rates").get<std::vector<double>>()) {
      EXPECT_NEAR(schedule(Tensor(step)).item<double>(), expected, 1e-12) << "step " << step;
      ++step;
    }
  }
}

}  // namespace
}  // namespace lockstep::optim
