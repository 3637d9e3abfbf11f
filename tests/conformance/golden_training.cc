// SPDX-License-Identifier: Apache-2.0
#include "conformance/golden_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <numeric>

#include "support/replicas.h"

namespace lockstep::testing {
namespace {

// Seeds of noise, as in training.py.
constexpr std::uint64_t kWeights = 1, kData = 2, kProjections = 100;
// Of f64, relative to a loss and to the norm of a variable; of the losses of f32.
constexpr double kTolerance = 1e-9, kTolerance32 = 1e-3;

Json golden_fixture(const std::string& name) {
  std::ifstream file(LOCKSTEP_TEST_SOURCE_DIR "/tests/golden/training/" + name + ".json");
  EXPECT_TRUE(file) << name;
  return Json::parse(file);
}

Variable named(const std::vector<Variable>& variables, const std::string& name) {
  for (const Variable& variable : variables)
    if (variable.name() == name) return variable;
  throw std::invalid_argument("no variable " + name);
}

// The model's variables in the fixture's order, with the values that they start from.
std::vector<Variable> start(const Json& weights, const std::vector<Variable>& of_model) {
  EXPECT_EQ(of_model.size(), weights.size());
  Noise noise(kWeights);
  std::vector<Variable> variables;
  for (const Json& weight : weights) {
    Variable variable = named(of_model, weight.at("name"));
    const Shape shape(weight.at("shape").get<std::vector<std::int64_t>>());
    EXPECT_EQ(variable.shape(), shape) << variable.name();
    const Tensor value =
        noise.tensor<double>(shape, weight.at("scale")) + weight.at("offset").get<double>();
    variable.assign(cast(value, variable.dtype()));
    variables.push_back(variable);
  }
  return variables;
}

std::unique_ptr<optim::Optimizer> optimizer_of(const Json& one) {
  const std::string name = one.at("optimizer");
  const Json& options = one.at("options");
  const double rate = options.at("learning_rate");
  if (name == "SGD")
    return std::make_unique<optim::SGD>(
        optim::SGDOptions{.learning_rate = rate, .momentum = options.value("momentum", 0.0)});
  if (name == "Adam" && options.size() == 1)
    return std::make_unique<optim::Adam>(optim::AdamOptions{.learning_rate = rate});
  throw std::invalid_argument("no optimizer " + name + options.dump());
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// What training.py's `checks` tells of a variable, at its place in the fixture.
void expect_variable(const Json& kept, std::size_t index, const Variable& variable) {
  SCOPED_TRACE(variable.name());
  const std::vector<double> values = variable.read().to_vector<double>();
  const double norm = kept.at("norms")[index];
  EXPECT_NEAR(std::sqrt(dot(values, values)), norm, kTolerance * norm);
  const Json& elements = kept.at("elements")[index];
  EXPECT_NEAR(values.front(), elements[0].get<double>(), kTolerance * norm);
  EXPECT_NEAR(values[values.size() / 2], elements[1].get<double>(), kTolerance * norm);
  for (std::size_t j = 0; j < 3; ++j) {
    Noise noise(kProjections + 10 * index + j);
    std::vector<double> direction(values.size());
    std::generate(direction.begin(), direction.end(), [&] { return noise.next(); });
    EXPECT_NEAR(dot(values, direction), kept.at("projections")[index][j].get<double>(),
                kTolerance * norm)
        << "projection " << j;
  }
}

// One case of a fixture, as far as it has come.
class Training {
 public:
  Training(const GoldenProgram& program, const Json& weights, const Json& one)
      : one_(one),
        dtype_(one.at("dtype") == "float64" ? DType::f64 : DType::f32),
        strategy_(replicas(one.at("replicas"))) {
    const auto scope = strategy_.scope();
    const nn::PolicyScope policy(dtype_);
    model_ = program.make();
    variables_ = start(weights, model_.variables);
    for (const Variable& variable : variables_)
      if (variable.trainable()) trainable_.push_back(variable);
    optimizer_ = optimizer_of(one);
    Noise noise(kData);
    examples_ = program.data(noise, one.at("rows"));
    if (is_floating(examples_.x.dtype())) examples_.x = cast(examples_.x, dtype_);
  }

  void run() {
    const auto batches = strategy_.distribute_dataset(
        data::from_tensor_slices(examples_).batch(one_.at("batch").get<std::int64_t>()));
    const std::size_t steps = one_.at("loss").size();
    while (step_ < steps) {
      const Json& dealt = one_.at("dealt");
      auto rows = dealt.begin();
      for (const auto& batch : batches) {
        ASSERT_NE(rows, dealt.end());
        ASSERT_EQ(batch.rows()->local, rows++->get<std::vector<std::int64_t>>());
        take_step(batch);
        if (step_ == steps || ::testing::Test::HasFailure()) return;
      }
      ASSERT_EQ(rows, dealt.end());
    }
  }

 private:
  Tensor train(const Examples& batch) const {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(model_.losses(batch));
    optimizer_->minimize(loss, trainable_, tape);
    return loss;
  }

  void take_step(const PerReplica<Examples>& batch) {
    const Tensor loss = strategy_.reduce(
        ReduceOp::sum, strategy_.run([&](const Examples& own) { return train(own); }, batch));
    const double expected = one_.at("loss")[step_++];
    SCOPED_TRACE("step " + std::to_string(step_));
    const double tolerance = dtype_ == DType::f64 ? kTolerance : kTolerance32;
    EXPECT_NEAR(cast(loss, DType::f64).item<double>(), expected, tolerance * expected);
    for (const Json& kept : one_.at("kept"))
      if (kept.at("step") == step_)
        for (std::size_t i = 0; i < variables_.size(); ++i) expect_variable(kept, i, variables_[i]);
  }

  const Json& one_;
  DType dtype_;
  MirroredStrategy strategy_;
  GoldenModel model_;
  std::vector<Variable> variables_, trainable_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Examples examples_;
  std::size_t step_ = 0;
};

}  // namespace

Examples classified(Noise& noise, const Shape& shape, std::int64_t classes) {
  const Tensor x = noise.tensor<double>(shape);
  const Tensor rows = reshape(x, {shape[0], -1});
  return {x, argmax(slice(rows, {0, 0}, {shape[0], classes}), 1)};
}

void expect_trained_as_golden(const std::string& fixture, const GoldenProgram& program) {
  const Json golden = golden_fixture(fixture);
  for (const Json& one : golden.at("cases")) {
    SCOPED_TRACE(fixture + " on " + one.at("replicas").dump() + " replicas, batches of " +
                 one.at("batch").dump() + ", " + one.at("dtype").get<std::string>());
    Training(program, golden.at("weights"), one).run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace lockstep::testing
