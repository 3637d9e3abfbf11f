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

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Variable named(const std::vector<Variable>& variables, const std::string& name) {
  for (const Variable& variable : variables)
    if (variable.name() == name) return variable;
  throw std::invalid_argument("no variable " + name);
}

// One case of a fixture, as far as it has come.
class Training {
 public:
  Training(const GoldenProgram& program, const Json& weights, const Json& one)
      : one_(one), strategy_(replicas(one.at("replicas"))) {
    const auto scope = strategy_.scope();
    const nn::PolicyScope policy(golden_dtype(one));
    model_ = program.make();
    variables_ = with_golden_weights(weights, model_.variables);
    for (const Variable& variable : variables_)
      if (variable.trainable()) trainable_.push_back(variable);
    optimizer_ = golden_optimizer(one);
    Noise noise(kGoldenData);
    examples_ = in_dtype(program.data(noise, one.at("rows")), golden_dtype(one));
  }

  void run() {
    const auto batches = strategy_.distribute_dataset(
        data::from_tensor_slices(examples_).batch(one_.at("batch").get<std::int64_t>()));
    while (goes_on())
      if (one_.at("split") == "cyclic")
        run_epoch_dealt_by_hand();
      else
        run_epoch(batches);
  }

 private:
  Tensor train(const Examples& batch) const {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(model_.losses(batch));
    optimizer_->minimize(loss, trainable_, tape);
    return loss;
  }

  // Our own deal is that of TensorFlow.
  void run_epoch(const DistributedDataset<Examples>& batches) {
    const Json& dealt = one_.at("dealt");
    std::size_t next = 0;
    for (const auto& batch : batches) {
      if (!goes_on()) return;
      ASSERT_EQ(Json(batch.rows()->local), dealt.at(next++));
      take_step(batch);
    }
    EXPECT_EQ(next, dealt.size());
  }

  void run_epoch_dealt_by_hand() {
    std::int64_t row = 0;
    for (const Json& rows : one_.at("dealt")) {
      if (!goes_on()) return;
      take_step(strategy_.distribute_values_from_function([&](const ValueContext& context) {
        const std::int64_t begin = row;
        row += rows.at(static_cast<std::size_t>(context.replica_id_in_sync_group)).get<int>();
        return Examples{slice_rows(examples_.x, {begin, row}),
                        slice_rows(examples_.y, {begin, row})};
      }));
    }
  }

  bool goes_on() const { return step_ < one_.at("loss").size() && !::testing::Test::HasFailure(); }

  void take_step(const PerReplica<Examples>& batch) {
    const Tensor loss = strategy_.reduce(
        ReduceOp::sum, strategy_.run([&](const Examples& own) { return train(own); }, batch));
    SCOPED_TRACE("step " + std::to_string(step_ + 1));
    expect_golden_loss(loss, one_.at("loss")[step_++]);
    for (const Json& kept : one_.at("kept"))
      if (kept.at("step") == step_) expect_golden_variables(kept, variables_);
  }

  const Json& one_;
  MirroredStrategy strategy_;
  GoldenModel model_;
  std::vector<Variable> variables_, trainable_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Examples examples_;
  std::size_t step_ = 0;
};

}  // namespace

Json golden_training_fixture(const std::string& name) {
  std::ifstream file(LOCKSTEP_TEST_SOURCE_DIR "/tests/golden/training/" + name + ".json");
  EXPECT_TRUE(file) << name;
  return Json::parse(file);
}

Examples classified(Noise& noise, const Shape& shape, std::int64_t classes) {
  const Tensor x = noise.tensor<double>(shape);
  const Tensor rows = reshape(x, {shape[0], -1});
  return {x, argmax(slice(rows, {0, 0}, {shape[0], classes}), 1)};
}

Examples in_dtype(Examples examples, DType dtype) {
  if (is_floating(examples.x.dtype())) examples.x = cast(examples.x, dtype);
  return examples;
}

std::unique_ptr<optim::Optimizer> golden_optimizer(const Json& one) {
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

std::vector<Variable> with_golden_weights(const Json& weights,
                                          const std::vector<Variable>& of_model) {
  EXPECT_EQ(of_model.size(), weights.size());
  Noise noise(kGoldenWeights);
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

void expect_golden_loss(const Tensor& loss, double expected) {
  const double tolerance = loss.dtype() == DType::f64 ? 1e-9 : 1e-3;
  EXPECT_NEAR(cast(loss, DType::f64).item<double>(), expected, tolerance * std::max(expected, 1.0));
}

void expect_golden_variables(const Json& kept, const std::vector<Variable>& variables) {
  ASSERT_EQ(kept.at("norms").size(), variables.size());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    SCOPED_TRACE(variables[i].name());
    const std::vector<double> values = variables[i].read().to_vector<double>();
    const double norm = kept.at("norms")[i], tolerance = 1e-9 * norm;
    EXPECT_NEAR(std::sqrt(dot(values, values)), norm, tolerance);
    const Json& elements = kept.at("elements")[i];
    EXPECT_NEAR(values.front(), elements[0].get<double>(), tolerance);
    EXPECT_NEAR(values[values.size() / 2], elements[1].get<double>(), tolerance);
    for (std::size_t j = 0; j < 3; ++j) {
      Noise noise(100 + 10 * i + j);
      std::vector<double> direction(values.size());
      std::generate(direction.begin(), direction.end(), [&] { return noise.next(); });
      EXPECT_NEAR(dot(values, direction), kept.at("projections")[i][j].get<double>(), tolerance)
          << "projection " << j;
    }
  }
}

void expect_trained_as_golden(const std::string& fixture, const GoldenProgram& program) {
  const Json golden = golden_training_fixture(fixture);
  for (const Json& one : golden.at("cases")) {
    SCOPED_TRACE(fixture + " on " + one.at("replicas").dump() + " replicas, " +
                 one.at("split").get<std::string>() + " batches of " + one.at("batch").dump() +
                 ", " + one.at("dtype").get<std::string>());
    Training(program, golden.at("weights"), one).run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace lockstep::testing
