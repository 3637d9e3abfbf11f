// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "nn/central_difference.h"

namespace lockstep::nn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

Dense dense_f64(std::int64_t in, std::int64_t out, Activation activation, double phase) {
  return Dense(
      in, out,
      {.activation = activation,
       .kernel_initializer = [=](const Shape& shape, DType) { return scattered(shape, phase); },
       .dtype = DType::f64});
}

TEST(Sequential, CallsItsLayersOneAfterTheOther) {
  const Sequential model(
      Dense(1, 2, {.kernel_initializer = constant(3), .bias_initializer = ones}),
      [](const Tensor& x) { return x * 2.0; }, relu, Dense(2, 1, {.kernel_initializer = ones}));
  // 2 (3 x + 1), twice.
  EXPECT_THAT(model(Tensor({2, 1}, {1.0f, -1.0f})).to_vector<float>(), ElementsAre(16, 0));
  EXPECT_EQ(model.size(), 4u);
}

TEST(Sequential, NumbersLayersOfOneNameInOrder) {
  const Sequential model(Dense(4, 3), Dense(3, 3, {.name = "middle"}), Dense(3, 3), Conv2D(3, 2),
                         Dense(2, 1));
  EXPECT_THAT(names_of(model.variables()),
              ElementsAre("dense/kernel", "dense/bias", "middle/kernel", "middle/bias",
                          "dense_1/kernel", "dense_1/bias", "conv2d/kernel", "conv2d/bias",
                          "dense_2/kernel", "dense_2/bias"));
  EXPECT_EQ(model.trainable_variables(), model.variables());
}

TEST(Sequential, PutsItsNameBeforeThatOfLayersWithinAnother) {
  const Sequential encoder(Dense(4, 3), Dense(3, 2));
  const Sequential decoder(Dense(2, 3), Dense(3, 4));
  const Sequential model(encoder, relu, decoder, Dense(4, 4));
  EXPECT_THAT(
      names_of(model.variables()),
      ElementsAre("sequential/dense/kernel", "sequential/dense/bias", "sequential/dense_1/kernel",
                  "sequential/dense_1/bias", "sequential_1/dense/kernel", "sequential_1/dense/bias",
                  "sequential_1/dense_1/kernel", "sequential_1/dense_1/bias", "dense/kernel",
                  "dense/bias"));
  EXPECT_EQ(encoder.variables(),
            std::vector(model.variables().begin(), model.variables().begin() + 4));
}

TEST(Sequential, ListsVariablesOfASharedLayerOnce) {
  const Dense shared(3, 3);
  const Sequential model(shared, relu, shared);
  EXPECT_THAT(names_of(model.variables()), ElementsAre("dense/kernel", "dense/bias"));
}

// A layer of a user's own: a class with variables and, if it likes, with options.
struct Residual {
  Dense inner;
  std::vector<Variable> variables() const { return inner.variables(); }
  Tensor operator()(const Tensor& x, CallOptions options) const {
    return x + inner(x) * (options.training ? 1.0 : 10.0);
  }
};

TEST(Sequential, TakesLayersOfAUsersOwn) {
  const Sequential model(Residual{Dense(1, 1, {.kernel_initializer = ones})},
                         Residual{Dense(1, 1, {.kernel_initializer = ones})});
  EXPECT_THAT(names_of(model.variables()),
              ElementsAre("dense/kernel", "dense/bias", "dense/kernel_1", "dense/bias_1"));
  const Tensor x({1, 1}, {1.0f});
  EXPECT_EQ(model(x, {.training = true}).item<float>(), 4);
  EXPECT_EQ(model(x).item<float>(), 121);
}

TEST(Sequential, HasTheGradientsOfCentralDifferences) {
  const Sequential model(dense_f64(3, 4, relu, 0), dense_f64(4, 4, tanh, 1),
                         dense_f64(4, 2, linear, 2));
  const Tensor x = scattered({5, 3}, 3), weight = scattered({5, 2}, 4);
  expect_central_differences(model.trainable_variables(),
                             [&] { return sum(square(model(x)) * weight); });
}

TEST(Sequential, RefusesNeighboursThatDoNotFitWhereTheSecondWasMade) {
  const int line = __LINE__ + 1;
  const Dense narrow(100, 10);
  try {
    Sequential(Dense(64, 128), Dropout(0.5), relu, narrow);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("[Sequential]"), HasSubstr("'dense' gives 128"),
                                       HasSubstr("'dense_1' takes 100")));
    EXPECT_THAT(error.location().file, HasSubstr("sequential_test.cc"));
    EXPECT_EQ(error.location().line, line);
  }
  EXPECT_THROW(Sequential(Conv2D(1, 8), MaxPool2D(), Conv2D(4, 8)), InvalidArgument);
  EXPECT_THROW(Sequential(Sequential(Dense(4, 3), relu), Sequential(relu, Dense(4, 2))),
               InvalidArgument);
}

TEST(Sequential, LeavesSizesOpenBehindLayersThatDoNotSay) {
  const Sequential model(Conv2D(1, 2), Flatten(), Dense(8, 3));
  EXPECT_EQ(model(lockstep::zeros({5, 4, 4, 1})).shape(), Shape({5, 3}));
  const Sequential with_function(
      Dense(4, 3), [](const Tensor& x) { return x; }, Dense(7, 1));
  try {
    with_function(lockstep::zeros({1, 4}));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.message(), HasSubstr("[dense_1] expected an input of rank 2 or more with 7"));
    EXPECT_THAT(error.location().file, HasSubstr("sequential_test.cc"));
  }
}

TEST(Sequential, PassesTrainingOnToItsLayers) {
  const Sequential model(Sequential(Dropout(0.5)), relu);
  const Tensor x = lockstep::ones({1000});
  EXPECT_EQ(model(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_NE(model(x, {.training = true}).to_vector<float>(), x.to_vector<float>());
}

// Restores values by name, as a checkpoint does.
class Memory final : public StateVisitor {
 public:
  void visit(std::string_view name, Tensor& value) override {
    const auto [entry, is_new] = values_.emplace(name, value);
    if (!is_new) value = copy_to(entry->second, value.device());
  }
  void visit(std::string_view, std::int64_t&) override {}

 private:
  std::map<std::string, Tensor, std::less<>> values_;
};

TEST(Sequential, StateIsItsVariables) {
  Sequential model(Dense(2, 2), Dense(2, 1));
  const Tensor x({1, 2}, {1.0f, 2.0f});
  const float before = model(x).item<float>();
  Memory memory;
  model.visit_state(memory);
  for (Variable variable : model.variables()) variable.assign(lockstep::zeros(variable.shape()));
  EXPECT_EQ(model(x).item<float>(), 0);
  model.visit_state(memory);
  EXPECT_EQ(model(x).item<float>(), before);
}

static_assert(LayerLike<Dense> && LayerLike<Activation> && LayerLike<Residual>);
static_assert(!LayerLike<int> && !LayerLike<std::string>);

}  // namespace
}  // namespace lockstep::nn
