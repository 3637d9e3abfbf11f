// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/recompute.h>
#include <lockstep/base/log.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/optim.h>
#include <lockstep/replica/context.h>
#include <lockstep/telemetry/telemetry.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <map>

namespace lockstep::optim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> values_of(const Variable& variable) {
  return variable.read().to_vector<float>();
}

// The gradient of sum(w * slope) is `slope`.
void step_down(Optimizer& optimizer, const Variable& w, const Tensor& slope) {
  GradientTape tape;
  const Tensor loss = sum(w * slope);
  optimizer.minimize(loss, {w}, tape);
}

TEST(Minimize, S01_StepsDownTheGradientOfTheMeanLoss) {
  // Gradients of (w x - 1)^2 at w = 2, x = 1, 2, 3, 4: 2, 12, 30, 56; their mean is 25.
  Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 0.1});
  GradientTape tape;
  const Tensor loss = mean(square(w * Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f}) - 1.0f));
  optimizer.minimize(loss, {w}, tape);
  EXPECT_EQ(loss.item<float>(), 21);
  EXPECT_EQ(w.read().item<float>(), -0.5f);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 1);
}

TEST(Minimize, S06_CountsAPenaltyOnce) {
  Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 1});
  GradientTape tape;
  optimizer.minimize(square(w) * 0.1f, {w}, tape);
  EXPECT_NEAR(w.read().item<float>(), 1.6, 1e-6);
}

TEST(Minimize, S40_LeavesAVariableThatIsUsedNowhere) {
  Variable a(Tensor(1.0f), {.name = "a"}), c(Tensor(7.0f), {.name = "c"});
  SGD optimizer({.learning_rate = 1, .momentum = 0.5});
  optimizer.build(std::vector{c});
  optimizer.slot(c, "velocity").assign(Tensor(3.0f));
  std::string warned;
  logging::set_sink([&](logging::Level, std::string_view line) { warned += line; });
  for (int i = 0; i < 2; ++i) {
    GradientTape tape;
    optimizer.minimize(a * 2.0f, {a, c}, tape);
  }
  logging::set_sink({});
  EXPECT_EQ(a.read().item<float>(), 1 - 2 - 3);
  EXPECT_EQ(c.read().item<float>(), 7);
  EXPECT_EQ(optimizer.slot(c, "velocity").read().item<float>(), 3);
  EXPECT_THAT(warned, HasSubstr("'c'"));
  EXPECT_EQ(warned.find("'c'"), warned.rfind("'c'")) << "warned once: " << warned;
}

TEST(Minimize, RefusesWhenNoVariableHasAGradient) {
  Variable w(Tensor(2.0f));
  SGD optimizer;
  try {
    GradientTape tape;
    optimizer.minimize(Tensor(1.0f), {w}, tape);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("[Optimizer::minimize]"), HasSubstr("no variable")));
    EXPECT_THAT(error.location().file, HasSubstr("optimizer_test.cc"));
  }
  GradientTape tape;
  EXPECT_THROW(optimizer.minimize(w * 1.0f, std::vector<Variable>(), tape), InvalidArgument);
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 0);
}

TEST(Minimize, SkipsAStepThatAReplicaVotesToSkip) {
  Variable w(Tensor(2.0f));
  Adam optimizer({.learning_rate = 1});
  optimizer.build(std::vector{w});
  get_replica_context()->vote_skip(Tensor(true));
  step_down(optimizer, w, Tensor(3.0f));
  EXPECT_EQ(w.read().item<float>(), 2);
  EXPECT_EQ(optimizer.slot(w, "m").read().item<float>(), 0);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 0);
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 1);
  step_down(optimizer, w, Tensor(3.0f));
  EXPECT_NE(w.read().item<float>(), 2);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 2);
}

TEST(Minimize, LeavesAValueThatSomebodyHolds) {
  Variable w(Tensor({2}, {1.0f, 2.0f}));
  SGD optimizer({.learning_rate = 1});
  const Tensor held = w.read();
  step_down(optimizer, w, Tensor({2}, {10.0f, 20.0f}));
  EXPECT_THAT(held.to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(values_of(w), ElementsAre(-9, -18));
}

TEST(Minimize, UpdatesInPlace) {
  Variable w(zeros({64, 64}));
  for (const bool with_adam : {false, true}) {
    std::unique_ptr<Optimizer> optimizer;
    if (with_adam)
      optimizer = std::make_unique<Adam>();
    else
      optimizer = std::make_unique<SGD>(SGDOptions{.momentum = 0.9});
    step_down(*optimizer, w, ones({64, 64}));
    const void* const memory = w.read().raw_data();
    const void* const slot = optimizer->slot(w, with_adam ? "v" : "velocity").read().raw_data();
    step_down(*optimizer, w, ones({64, 64}));
    EXPECT_EQ(w.read().raw_data(), memory);
    EXPECT_EQ(optimizer->slot(w, with_adam ? "v" : "velocity").read().raw_data(), slot);
  }
}

TEST(Minimize, WithAPersistentTapeStillUpdates) {
  Variable w(Tensor(2.0f));
  SGD optimizer({.learning_rate = 1});
  GradientTape tape({.persistent = true});
  const Tensor loss = square(w);
  optimizer.minimize(loss, {w}, tape);
  EXPECT_EQ(w.read().item<float>(), -2);
  // The records hold the value that the loss was computed from.
  EXPECT_EQ(tape.gradient(loss, {w})[0].item<float>(), 4);
}

TEST(ApplyGradients, IsTheLongFormOfMinimize) {
  Variable w(Tensor({2}, {1.0f, 2.0f}));
  SGD optimizer({.learning_rate = 0.5});
  optimizer.apply_gradients({Tensor({2}, {2.0f, 4.0f})}, {w});
  EXPECT_THAT(values_of(w), ElementsAre(0, 0));
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
}

TEST(ApplyGradients, RefusesGradientsThatDoNotFit) {
  Variable w(Tensor({2}, {1.0f, 2.0f}), {.name = "w"});
  SGD optimizer;
  EXPECT_THROW(optimizer.apply_gradients({}, {w}), InvalidArgument);
  EXPECT_THROW(optimizer.apply_gradients({Tensor()}, {w}), InvalidArgument) << "all undefined";
  EXPECT_THROW(optimizer.apply_gradients({zeros({2}, DType::f64)}, {w}), InvalidArgument);
  try {
    optimizer.apply_gradients({zeros({3})}, {w});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("[Optimizer::apply_gradients]"), HasSubstr("'w'"),
                                       HasSubstr("f32[2]"), HasSubstr("f32[3]")));
  }
  EXPECT_THAT(values_of(w), ElementsAre(1, 2));
}

TEST(ApplyGradients, S05_S09_ClipsTheSumByGlobalNorm) {
  Variable a(Tensor(0.0f)), b(Tensor(0.0f));
  SGD optimizer({.learning_rate = 1, .clip = {.global_norm = 1}});
  optimizer.apply_gradients({Tensor(3.0f), Tensor(4.0f)}, {a, b});
  EXPECT_NEAR(a.read().item<float>(), -0.6, 1e-6);
  EXPECT_NEAR(b.read().item<float>(), -0.8, 1e-6);
}

TEST(ApplyGradients, ClipsEachElementOrEachVariable) {
  Variable a(zeros({2})), b(zeros({1}));
  SGD by_value({.learning_rate = 1, .clip = {.value = 2}});
  by_value.apply_gradients({Tensor({2}, {5.0f, -1.0f}), Tensor({1}, {-3.0f})}, {a, b});
  EXPECT_THAT(values_of(a), ElementsAre(-2, 1));
  EXPECT_THAT(values_of(b), ElementsAre(2));
  a.assign(zeros({2}));
  b.assign(zeros({1}));
  SGD by_norm({.learning_rate = 1, .clip = {.norm = 5}});
  by_norm.apply_gradients({Tensor({2}, {6.0f, 8.0f}), Tensor({1}, {4.0f})}, {a, b});
  EXPECT_THAT(values_of(a), ElementsAre(-3, -4));
  EXPECT_THAT(values_of(b), ElementsAre(-4));
}

TEST(LearningRate, IsANumberThatCanBeReplaced) {
  Variable w(Tensor(0.0f));
  SGD optimizer({.learning_rate = 1});
  optimizer.apply_gradients({Tensor(1.0f)}, {w});
  optimizer.set_learning_rate(10);
  EXPECT_EQ(optimizer.learning_rate().item<double>(), 10);
  optimizer.apply_gradients({Tensor(1.0f)}, {w});
  EXPECT_EQ(w.read().item<float>(), -11);
  EXPECT_THROW(optimizer.set_learning_rate(-1), InvalidArgument);
}

TEST(LearningRate, OrAScheduleOfTheUpdatesApplied) {
  Variable w(Tensor(0.0f));
  SGD optimizer({.learning_rate = piecewise_constant({0, 1}, {1, 10, 100})});
  for (const float expected : {-1.0f, -11.0f, -111.0f, -211.0f}) {
    optimizer.apply_gradients({Tensor(1.0f)}, {w});
    EXPECT_EQ(w.read().item<float>(), expected);
  }
  EXPECT_THROW(optimizer.set_learning_rate(1), FailedPrecondition);
  SGD wrong({.learning_rate = [](const Tensor&) { return Tensor({2}, {1.0f, 2.0f}); }});
  EXPECT_THROW(wrong.apply_gradients({Tensor(1.0f)}, {w}), InvalidArgument);
}

TEST(Optimizer, RefusesOptionsOutOfRange) {
  EXPECT_THROW(SGD({.learning_rate = -1}), InvalidArgument);
  EXPECT_THROW(SGD({.momentum = 1}), InvalidArgument);
  EXPECT_THROW(SGD({.nesterov = true}), InvalidArgument);
  EXPECT_THROW(SGD({.clip = {.value = 1, .norm = 1}}), InvalidArgument);
  EXPECT_THROW(SGD({.clip = {.global_norm = -1}}), InvalidArgument);
  EXPECT_THROW(Adam({.beta_1 = 1}), InvalidArgument);
  EXPECT_THROW(Adam({.beta_2 = -0.1}), InvalidArgument);
  EXPECT_THROW(Adam({.epsilon = -1}), InvalidArgument);
  EXPECT_THROW(AdamW({.weight_decay = -1}), InvalidArgument);
  EXPECT_THROW(Adamax({.beta_2 = 1}), InvalidArgument);
  EXPECT_THROW(Nadam({.beta_1 = -1}), InvalidArgument);
  EXPECT_THROW(RMSprop({.rho = 1}), InvalidArgument);
  EXPECT_THROW(RMSprop({.momentum = 1}), InvalidArgument);
  EXPECT_THROW(Adagrad({.initial_accumulator_value = -1}), InvalidArgument);
  EXPECT_THROW(Adadelta({.rho = -0.5}), InvalidArgument);
  EXPECT_THROW(Ftrl({.learning_rate_power = 0.5}), InvalidArgument);
  EXPECT_THROW(Ftrl({.l1_regularization_strength = -1}), InvalidArgument);
  EXPECT_THROW(Lion({.beta_1 = 0}), InvalidArgument);
  EXPECT_THROW(Lamb({.epsilon = -1}), InvalidArgument);
  EXPECT_THROW(Lars({.momentum = 1}), InvalidArgument);
  EXPECT_THROW(Adafactor({.beta_2_decay = 1}), InvalidArgument);
  EXPECT_THROW(Adafactor({.clip_threshold = 0}), InvalidArgument);
  EXPECT_THROW(SGD({.ema = {.use = true, .momentum = 2}}), InvalidArgument);
  EXPECT_THROW(SGD({.ema = {.use = true, .overwrite_frequency = -1}}), InvalidArgument);
}

TEST(Optimizer, NamesSlotsAfterTheirVariables) {
  Variable w(Tensor(1.0f), {.name = "dense/kernel"}), other(Tensor(1.0f), {.name = "dense/kernel"});
  Adam optimizer;
  EXPECT_THROW(optimizer.slot(w, "m"), InvalidArgument);
  optimizer.build(std::vector{w, other});
  EXPECT_EQ(optimizer.slot(w, "v").name(), "dense/kernel/v");
  EXPECT_EQ(optimizer.slot(other, "v").name(), "dense/kernel/v_1");
  EXPECT_THROW(optimizer.slot(w, "velocity"), InvalidArgument);
}

// Saves values by name and puts them back on a second walk, as a checkpoint does.
class Memory final : public StateVisitor {
 public:
  void visit(std::string_view name, Tensor& value) override {
    if (restoring)
      value = copy_to(values.at(std::string(name)), value.device());
    else
      EXPECT_TRUE(values.emplace(name, copy_to(value, value.device())).second) << name;
  }
  void visit(std::string_view, std::int64_t&) override {}

  std::map<std::string, Tensor> values;
  bool restoring = false;
};

TEST(Optimizer, ResumesFromItsState) {
  Variable w(Tensor(1.0f), {.name = "w"});
  Adam first({.learning_rate = 0.5});
  step_down(first, w, Tensor(2.0f));
  Memory memory;
  first.visit_state(memory);
  EXPECT_THAT(memory.values,
              testing::UnorderedElementsAre(
                  testing::Key("iterations"), testing::Key("steps_attempted"),
                  testing::Key("learning_rate"), testing::Key("w/m"), testing::Key("w/v")));
  const float saved = w.read().item<float>();
  step_down(first, w, Tensor(-3.0f));
  const float expected = w.read().item<float>();

  w.assign(Tensor(saved));
  Adam second({.learning_rate = 0.125});
  second.build(std::vector{w});
  memory.restoring = true;
  second.visit_state(memory);
  step_down(second, w, Tensor(-3.0f));
  EXPECT_EQ(w.read().item<float>(), expected);
  EXPECT_EQ(second.iterations().read().item<int>(), 2);
}

TEST(WeightDecay, PassesOverNamesThatMatch) {
  Variable kernel(Tensor(1.0f), {.name = "dense_1/kernel"}),
      bias(Tensor(1.0f), {.name = "dense_1/bias"}), gamma(Tensor(1.0f), {.name = "norm/gamma"});
  SGD optimizer({.learning_rate = 0.5, .weight_decay = 0.5});
  optimizer.exclude_from_weight_decay({"bias$", "^norm"});
  const Tensor none(0.0f);
  optimizer.apply_gradients({none, none, none}, {kernel, bias, gamma});
  EXPECT_EQ(kernel.read().item<float>(), 0.75f);
  EXPECT_EQ(bias.read().item<float>(), 1);
  EXPECT_EQ(gamma.read().item<float>(), 1);
  EXPECT_THROW(optimizer.exclude_from_weight_decay({"kernel"}), FailedPrecondition);
  SGD another;
  EXPECT_THROW(another.exclude_from_weight_decay({"("}), InvalidArgument);
}

TEST(Ema, AveragesTheWeightsAfterEachUpdate) {
  Variable w(Tensor(1.0f), {.name = "w"}), still(Tensor(5.0f), {.name = "still"});
  SGD optimizer({.learning_rate = 1, .ema = {.use = true, .momentum = 0.75}});
  optimizer.apply_gradients({Tensor(-1.0f), Tensor()}, {w, still});
  EXPECT_EQ(optimizer.slot(w, "average").read().item<float>(), 2);
  optimizer.apply_gradients({Tensor(-2.0f), Tensor()}, {w, still});
  EXPECT_EQ(w.read().item<float>(), 4);
  EXPECT_EQ(optimizer.slot(w, "average").read().item<float>(), 0.75f * 2 + 0.25f * 4);
  EXPECT_EQ(optimizer.slot(still, "average").read().item<float>(), 5);
  optimizer.finalize_variable_values(std::vector{w, still});
  EXPECT_EQ(w.read().item<float>(), 2.5f);
  EXPECT_EQ(still.read().item<float>(), 5);
  SGD plain;
  EXPECT_THROW(plain.finalize_variable_values(std::vector{w}), InvalidArgument);
}

TEST(Ema, KeepsWeightsThatHaveNoAverageYet) {
  Variable w(Tensor(3.0f), {.name = "w"});
  SGD optimizer({.learning_rate = 1, .ema = {.use = true}});
  optimizer.build(std::vector{w});
  EXPECT_THROW(optimizer.finalize_variable_values(std::vector{w}), InvalidArgument);
  EXPECT_EQ(w.read().item<float>(), 3);
}

TEST(Ema, BeginsWithTheFirstUpdateThatAVariableTakesPartIn) {
  Variable head(Tensor(1.0f), {.name = "head"}), backbone(Tensor(5.0f), {.name = "backbone"});
  SGD optimizer({.learning_rate = 1, .ema = {.use = true, .momentum = 0.75}});
  optimizer.apply_gradients({Tensor(-1.0f)}, {head});
  optimizer.apply_gradients({Tensor(0.0f), Tensor(-1.0f)}, {head, backbone});
  EXPECT_EQ(optimizer.slot(backbone, "average").read().item<float>(), 6) << "its first";
  optimizer.apply_gradients({Tensor(0.0f), Tensor(-4.0f)}, {head, backbone});
  EXPECT_EQ(optimizer.slot(backbone, "average").read().item<float>(), 0.75f * 6 + 0.25f * 10);
  EXPECT_EQ(optimizer.slot(head, "average").read().item<float>(), 2);
}

TEST(Ema, ReplacesAllVariablesOrNone) {
  Variable head(Tensor(1.0f), {.name = "head"}), backbone(Tensor(5.0f), {.name = "backbone"}),
      other(Tensor(7.0f), {.name = "other"});
  SGD optimizer({.learning_rate = 1, .ema = {.use = true}});
  optimizer.apply_gradients({Tensor(-1.0f)}, {head});
  head.assign(Tensor(100.0f));
  optimizer.build(std::vector{backbone});
  for (const Variable& without : {backbone, other}) {
    EXPECT_THROW(optimizer.finalize_variable_values(std::vector{head, without}), InvalidArgument);
    EXPECT_EQ(head.read().item<float>(), 100);
  }
  get_replica_context()->vote_skip(Tensor(true));
  optimizer.apply_gradients({Tensor(-1.0f)}, {backbone});
  EXPECT_THROW(optimizer.finalize_variable_values(std::vector{backbone}), InvalidArgument)
      << "a skipped step begins no average";
  EXPECT_EQ(backbone.read().item<float>(), 5);
}

TEST(Adafactor, RemembersMeansOfMatrices) {
  Variable matrix(ones({4, 3}), {.name = "matrix"}), vector(ones({3}), {.name = "vector"}),
      half(cast(ones({2, 4, 3}), DType::f16), {.name = "half"});
  Adafactor optimizer;
  optimizer.build(std::vector{matrix, vector, half});
  EXPECT_EQ(optimizer.slot(matrix, "r").shape(), Shape{4});
  EXPECT_EQ(optimizer.slot(matrix, "c").shape(), Shape{3});
  EXPECT_EQ(optimizer.slot(matrix, "v").num_elements(), 0);
  EXPECT_EQ(optimizer.slot(vector, "r").num_elements(), 0);
  EXPECT_EQ(optimizer.slot(vector, "v").shape(), Shape{3});
  EXPECT_EQ(optimizer.slot(half, "c").shape(), (Shape{2, 3}));
  EXPECT_EQ(optimizer.slot(half, "c").dtype(), DType::f32);
}

// Its second slot cannot be made at first.
class Unlucky final : public Optimizer {
 public:
  Unlucky() : Optimizer({.learning_rate = 1}, {{.name = "a"}, {.name = "b", .shape = shape}}, {}) {}
  static inline bool fails = true;

 private:
  static Shape shape(const Shape& variable) {
    if (fails) throw ResourceExhausted("no memory", SourceLocation{});
    return variable;
  }
  void update(const Update&) const override {}
};

TEST(Optimizer, NamesOfSlotsThatCouldNotBeMadeAreFree) {
  const Variable w(Tensor(1.0f), {.name = "w"});
  Unlucky optimizer;
  EXPECT_THROW(optimizer.build(std::vector{w}), ResourceExhausted);
  Unlucky::fails = false;
  optimizer.build(std::vector{w});
  EXPECT_EQ(optimizer.slot(w, "a").name(), "w/a");
  EXPECT_EQ(optimizer.slot(w, "b").name(), "w/b");
}

TEST(Optimizer, IsRefusedInRecomputeBeforeItChangesAnything) {
  Variable w(Tensor(2.0f), {.name = "w"});
  SGD optimizer({.learning_rate = 1});
  GradientTape tape;
  const auto step = recompute([&](const Tensor& x) {
    optimizer.apply_gradients({Tensor(1.0f)}, {w});
    return x * w;
  });
  EXPECT_THROW(step(Tensor(1.0f)), FailedPrecondition);
  EXPECT_TRUE(w.valid());
  EXPECT_EQ(w.read().item<float>(), 2);
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), 0);
}

TEST(Optimizer, AVariableListedTwiceIsRefused) {
  const Variable w(Tensor(1.0f), {.name = "w"});
  SGD optimizer({.learning_rate = 1.0});
  EXPECT_THROW(optimizer.apply_gradients({Tensor(1.0f), Tensor(1.0f)}, {w, w}), InvalidArgument);
  EXPECT_EQ(w.read().item<float>(), 1);
}

}  // namespace
}  // namespace lockstep::optim
