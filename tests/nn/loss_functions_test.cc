// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn.h>
#include <lockstep/ops/cast.h>
#include <lockstep/tensor/factory.h>

#include "nn/golden.h"
#include "support/errors.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep::nn {
namespace {

using lockstep::testing::Noise;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::Contains;

CrossentropyOptions crossentropy(const Json& o) {
  return {.from_logits = o.value("from_logits", false),
          .label_smoothing = o.value("label_smoothing", 0.0)};
}

// The loss of that name with the options by the names that Keras gives them.
Loss loss_of(const std::string& name, const Json& o) {
  if (o.empty()) return losses::get(name);
  if (name == "huber")
    return [delta = o.at("delta").get<double>()](const Tensor& t, const Tensor& p) {
      return huber(t, p, {.delta = delta});
    };
  if (name == "sparse_categorical_crossentropy")
    return [logits = o.at("from_logits").get<bool>()](const Tensor& t, const Tensor& p) {
      return sparse_categorical_crossentropy(t, p, {.from_logits = logits});
    };
  const bool binary = name == "binary_crossentropy";
  EXPECT_TRUE(binary || name == "categorical_crossentropy") << name;
  return [binary, options = crossentropy(o)](const Tensor& t, const Tensor& p) {
    return binary ? binary_crossentropy(t, p, options) : categorical_crossentropy(t, p, options);
  };
}

TEST(LossFunctions, GiveWhatKerasGives) {
  const Json all = golden_fixture("losses");
  std::size_t names = 0;
  std::string last;
  for (const Json& one : all.at("cases")) {
    const std::string name = one.at("loss");
    names += name != std::exchange(last, name);
    SCOPED_TRACE(name + one.at("options").dump());
    const bool classes = name == "sparse_categorical_crossentropy";
    const Tensor targets =
        golden_tensor(one.at("targets").at("values"), one.at("targets").at("shape"),
                      classes ? DType::i64 : DType::f64);
    const Tensor predictions = golden_tensor(one.at("predictions").at("values"),
                                             one.at("predictions").at("shape"), DType::f64);
    GradientTape tape;
    tape.watch(predictions);
    const Tensor loss = loss_of(name, one.at("options"))(targets, predictions);
    ASSERT_EQ(loss.shape(), Shape({4}));
    // Keras's 1e-7 and log(2) are f32.
    expect_golden_values(loss, one.at("losses"), 1e-7, "losses");
    const auto gradient = tape.gradient(
        loss, {predictions},
        {.target_gradient = golden_tensor(one.at("loss_gradient"), Json({4}), DType::f64)});
    expect_golden_values(gradient[0], one.at("gradient"), 1e-7, "gradient");
  }
  EXPECT_EQ(names, 15u);
}

TEST(LossFunctions, AreFoundByKerassNames) {
  const Tensor t({1, 2}, {1.0f, 0.0f}), p({1, 2}, {0.5f, 0.25f});
  const auto value = [&](const char* name) { return losses::get(name)(t, p).item<float>(); };
  EXPECT_FLOAT_EQ(value("mse"), (0.25f + 0.0625f) / 2);
  EXPECT_FLOAT_EQ(value("MSE"), value("mean_squared_error"));
  EXPECT_FLOAT_EQ(value("MeanAbsoluteError"), 0.375f);
  EXPECT_FLOAT_EQ(value("bce"), value("binary_crossentropy"));
  for (const std::string& name : losses::names()) EXPECT_TRUE(losses::get(name)) << name;
  EXPECT_THAT(losses::names(), Contains("cosine_similarity"));
  try {
    losses::get("squared_error");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.location().line, __LINE__ - 3);
    EXPECT_THAT(error.message(), ::testing::AllOf(::testing::HasSubstr("[losses::get]"),
                                                  ::testing::HasSubstr("mean_squared_error, mse, "),
                                                  ::testing::HasSubstr("got 'squared_error'")));
  }
}

TEST(LossFunctions, TakeTargetsOfAnyDType) {
  const Tensor p({2, 2}, {0.5f, 0.25f, 0.75f, 0.5f});
  const Tensor floats({2, 2}, {1.0f, 0.0f, 1.0f, 1.0f});
  const auto expected = binary_crossentropy(floats, p).to_vector<float>();
  for (const DType dtype : {DType::i64, DType::u8, DType::boolean, DType::f64})
    EXPECT_EQ(binary_crossentropy(cast(floats, dtype), p).to_vector<float>(), expected);
  EXPECT_EQ(sparse_categorical_crossentropy(cast(vec({1, 0}), DType::u8), p).to_vector<float>(),
            sparse_categorical_crossentropy(cast(vec({1, 0}), DType::i64), p).to_vector<float>());
}

TEST(LossFunctions, AreComputedInF32Of16Bits) {
  const Tensor p = cast(Noise(1).tensor<float>({4, 3}, 4), DType::f16);
  const Tensor t = Noise(2).tensor<float>({4, 3}, 300);
  const Tensor loss = mean_squared_error(t, p);
  EXPECT_EQ(loss.dtype(), DType::f32);
  EXPECT_EQ(loss.to_vector<float>(), mean_squared_error(t, cast(p, DType::f32)).to_vector<float>());
  const Tensor labels = cast(lockstep::ones({4}), DType::i32);
  EXPECT_EQ(sparse_categorical_crossentropy(labels, p, {.from_logits = true}).dtype(), DType::f32);
}

TEST(LossFunctions, StayFiniteWhereProbabilitiesAre0Or1) {
  const Tensor t({1, 2}, {1.0f, 0.0f}), wrong({1, 2}, {0.0f, 1.0f});
  for (const char* name : {"binary_crossentropy", "categorical_crossentropy", "kl_divergence",
                           "poisson", "mape", "msle", "cosine_similarity"}) {
    GradientTape tape;
    tape.watch(wrong);
    const Tensor loss = losses::get(name)(t, wrong);
    EXPECT_TRUE(std::isfinite(loss.item<float>())) << name;
    for (const float g : tape.gradient(loss, {wrong})[0].to_vector<float>())
      EXPECT_TRUE(std::isfinite(g)) << name;
  }
  EXPECT_NEAR(categorical_crossentropy(t, wrong).item<float>(), -std::log(1e-7), 1e-4);
  EXPECT_FLOAT_EQ(log_cosh(lockstep::zeros({1, 1}), lockstep::full({1, 1}, 1000)).item<float>(),
                  1000 - std::log(2.0f));
}

TEST(LossFunctions, GiveNoLossesForNoRows) {
  for (const std::string& name : losses::names()) {
    if (name == "sparse_categorical_crossentropy") continue;
    EXPECT_EQ(losses::get(name)(lockstep::zeros({0, 3}), lockstep::zeros({0, 3})).shape(),
              Shape({0}))
        << name;
  }
  EXPECT_EQ(
      sparse_categorical_crossentropy(lockstep::zeros({0}, DType::i32), lockstep::zeros({0, 3}))
          .shape(),
      Shape({0}));
}

TEST(LossFunctions, NameThemselvesWhenArgumentsDoNotFit) {
  const Tensor x = lockstep::ones({2, 3});
  EXPECT_THAT([&] { huber(lockstep::ones({2}), x); },
              throws<InvalidArgument>("[huber]", "[2]", "[2, 3]"));
  EXPECT_THAT([&] { hinge(x, Tensor()); },
              throws<InvalidArgument>("[hinge]", "predictions are undefined"));
  EXPECT_THAT([&] { poisson(x, cast(x, DType::i32)); },
              throws<InvalidArgument>("[poisson]", "floating", "i32"));
  EXPECT_THAT([&] { huber(x, x, {.delta = 0}); }, throws<InvalidArgument>("[huber]", "delta"));
  EXPECT_THAT([&] { binary_crossentropy(x, x, {.label_smoothing = 1.5}); },
              throws<InvalidArgument>("[binary_crossentropy]", "label_smoothing", "1.5"));
  EXPECT_THAT([&] { sparse_categorical_crossentropy(x, x); },
              throws<InvalidArgument>("[sparse_categorical_crossentropy]", "class numbers"));
}

TEST(LossFunctionsXla, TraceAsTheyRun) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const Tensor t = Noise(3).tensor<float>({4, 3}), p = Noise(4).tensor<float>({4, 3});
  for (const std::string& name : losses::names()) {
    SCOPED_TRACE(name);
    if (name == "sparse_categorical_crossentropy") continue;
    lockstep::testing::expect_same_traced(
        {t, p},
        [&](const auto& x) { return lockstep::testing::Tensors{losses::get(name)(x[0], x[1])}; },
        {.tolerance = 2e-4});
  }
  lockstep::testing::expect_same_traced({Tensor({4}, {0, 1, 2, 1}), p}, [&](const auto& x) {
    return lockstep::testing::Tensors{
        sparse_categorical_crossentropy(x[0], x[1], {.from_logits = true})};
  });
}

}  // namespace
}  // namespace lockstep::nn
