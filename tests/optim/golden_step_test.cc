// SPDX-License-Identifier: Apache-2.0
// From the weights and slots that Keras has before a step in f32, optimizers come to those that it
// has after it (tests/golden/steps.py).
#include <gtest/gtest.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optim/golden.h"

namespace lockstep::optim {
namespace {

using Numbers = std::vector<double>;

double norm(const Numbers& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum);
}

Numbers difference(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return {std::numeric_limits<double>::infinity()};
  Numbers result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] - b[i];
  return result;
}

Numbers numbers_of(const Variable& variable) {
  const std::vector<float> values = variable.read().to_vector<float>();
  return {values.begin(), values.end()};
}

// Of what a step is allowed to differ by, the most that it did, and where.
struct Deviation {
  double most = 0;
  std::string where = {};

  void add(double distance, double allowed, const std::string& at) {
    const double part = distance == 0          ? 0
                        : std::isnan(distance) ? std::numeric_limits<double>::infinity()
                                               : distance / allowed;
    if (part <= most) return;
    most = part;
    where = at;
  }
};

// An optimizer of f32 variables, whose state is put where Keras's is.
class Stepper {
 public:
  Stepper(const std::string& name, const Json& options)
      : optimizer_(golden_optimizer(name, options)), rounded_beta_2_(name == "Nadam") {
    const std::pair<const char*, Shape> shapes[] = {
        {"kernel", {3, 6}}, {"bias", {3}}, {"gain", {}}};
    for (const auto& [variable, shape] : shapes)
      variables_.emplace_back(zeros(shape), VariableOptions{.name = variable});
    optimizer_->build(variables_);
  }

  void step(const Json& step, Deviation& deviation) {
    const auto iterations = step.at("iterations").get<std::int64_t>();
    const Json& known = step.at("variables");
    if (iterations == 0) compare_start(known, deviation);
    Variable(optimizer_->iterations()).assign(Tensor(iterations));
    std::vector<Tensor> gradients;
    for (const Variable& variable : variables_) {
      const Json& own = known.at(variable.name());
      put(variable, own.at("before"), iterations > 0);
      gradients.push_back(tensor(variable.shape(), own.at("gradient")));
    }
    optimizer_->apply_gradients(gradients, variables_);
    EXPECT_EQ(optimizer_->iterations().read().item<std::int64_t>(), iterations + 1);
    for (const Variable& variable : variables_)
      compare(variable, known.at(variable.name()), "step " + std::to_string(iterations + 1),
              deviation);
  }

 private:
  static Tensor tensor(const Shape& shape, const Json& numbers) {
    return Tensor(shape, std::span<const float>(numbers.get<std::vector<float>>()));
  }
  Variable part(const Variable& variable, const std::string& name) const {
    return name == "weights" ? variable : optimizer_->slot(variable, name);
  }

  void put(const Variable& variable, const Json& state, bool begun) const {
    for (const auto& [name, numbers] : state.items()) {
      Variable target = part(variable, name);
      target.assign(tensor(target.shape(), numbers));
      if (name == "average")
        optimizer_->slot(variable, "average_begun").assign(Tensor(begun ? 1.0F : 0.0F));
    }
  }

  // What slots are made with.
  void compare_start(const Json& known, Deviation& deviation) const {
    for (const Variable& variable : variables_)
      for (const auto& [name, numbers] : known.at(variable.name()).at("before").items()) {
        if (name == "weights") continue;
        const auto expected = numbers.get<Numbers>();
        deviation.add(norm(difference(numbers_of(part(variable, name)), expected)),
                      std::ldexp(norm(expected), -23), "the start of " + name);
      }
  }

  // The distance between two changes of what was the same before, for each variable as a whole: at
  // most 1e-5 of the change and the half units that both results were rounded by.
  //
  // Of the 1e-5 Adam, AdamW and Nadam need nearly all with a beta_2 of 0.999, other cases less than
  // 2e-6: Keras takes 1 - beta_2^t of an f32 beta_2 that is off by up to 2^-25, ours is of f64. In
  // Nadam it takes 1 - beta_2 so, too, the share of v that is new, so that v's whole change is off.
  void compare(const Variable& variable, const Json& known, const std::string& when,
               Deviation& deviation) const {
    for (const auto& [name, numbers] : known.at("after").items()) {
      const std::string where = when + ", " + name + " of " + variable.name();
      const auto before = known.at("before").at(name).get<Numbers>();
      const auto after = numbers.get<Numbers>();
      const double change = norm(difference(after, before));
      const double rounding = std::ldexp(norm(after), -23);
      if (name == "weights") {
        EXPECT_LE(rounding, kBound * change) << "hides " << where;
      }
      const double bound = kBound + (rounded_beta_2_ && name == "v" ? kRoundedBeta2 : 0);
      deviation.add(norm(difference(numbers_of(part(variable, name)), after)),
                    bound * change + rounding, where);
    }
  }

  static constexpr double kBound = 1e-5;
  static constexpr double kRoundedBeta2 = 0x1p-25 / (1 - 0.999);

  std::unique_ptr<Optimizer> optimizer_;
  bool rounded_beta_2_;
  std::vector<Variable> variables_;
};

Deviation deviation_of(const std::string& name, const Json& options, const Json& steps) {
  Deviation deviation;
  Stepper stepper(name, options);
  for (const Json& step : steps) stepper.step(step, deviation);
  return deviation;
}

class GoldenStep : public ::testing::TestWithParam<const char*> {
 protected:
  const Json all_ = golden_fixture(std::string(GetParam()) + "_f32");
};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenStep, ::testing::ValuesIn(kGoldenOptimizers),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GoldenStep, IsTheSame) {
  ASSERT_FALSE(all_.at("cases").empty());
  for (const Json& one : all_.at("cases")) {
    const Deviation deviation =
        deviation_of(all_.at("optimizer"), one.at("options"), one.at("steps"));
    EXPECT_LE(deviation.most, 1) << deviation.where << " with " << one.at("options");
  }
}

// Were an option's value 5 % less, the comparison would notice.
TEST_P(GoldenStep, DependsOnEachNumberOfItsOptions) {
  for (const Json& one : all_.at("cases"))
    for (const auto& [option, value] : one.at("options").items()) {
      if (!value.is_number_float()) continue;
      Json others = one.at("options");
      others[option] = 0.95 * value.get<double>();
      EXPECT_GT(deviation_of(all_.at("optimizer"), others, one.at("steps")).most, 1)
          << option << " of " << one.at("options");
    }
}

}  // namespace
}  // namespace lockstep::optim
