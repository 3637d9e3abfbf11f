// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/optim.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

// Fixtures of tests/golden/optim/, and optimizers by the options with which Keras's were made.
namespace lockstep::optim {

using Json = nlohmann::json;

// Which fixtures are of an optimizer.
inline constexpr const char* kGoldenOptimizers[] = {
    "sgd",      "adam", "adamw", "adamax", "nadam", "rmsprop",  "adagrad",
    "adadelta", "ftrl", "lion",  "lamb",   "lars",  "adafactor"};

// Of tests/golden/optim/.
inline Json golden_fixture(const std::string& name) {
  std::ifstream file(LOCKSTEP_TEST_SOURCE_DIR "/tests/golden/optim/" + name + ".json");
  EXPECT_TRUE(file) << name;
  return Json::parse(file);
}

// Options by the names that Keras gives them. `found` counts those that there are.
template <class T>
void take_option(const Json& options, const char* name, T& value, std::size_t& found) {
  if (!options.contains(name)) return;
  ++found;
  if constexpr (std::is_same_v<T, LearningRate>)
    value = options.at(name).get<double>();
  else
    value = options.at(name).get<T>();
}

template <class Options>
Options golden_options(const Json& options) {
  Options result;
  std::size_t found = options.contains("exclude") ? 1 : 0;
#define LOCKSTEP_OPTION(field) \
  if constexpr (requires { result.field; }) take_option(options, #field, result.field, found);
  LOCKSTEP_OPTION(learning_rate)
  LOCKSTEP_OPTION(weight_decay)
  LOCKSTEP_OPTION(momentum)
  LOCKSTEP_OPTION(nesterov)
  LOCKSTEP_OPTION(beta_1)
  LOCKSTEP_OPTION(beta_2)
  LOCKSTEP_OPTION(epsilon)
  LOCKSTEP_OPTION(amsgrad)
  LOCKSTEP_OPTION(rho)
  LOCKSTEP_OPTION(centered)
  LOCKSTEP_OPTION(initial_accumulator_value)
  LOCKSTEP_OPTION(learning_rate_power)
  LOCKSTEP_OPTION(l1_regularization_strength)
  LOCKSTEP_OPTION(l2_regularization_strength)
  LOCKSTEP_OPTION(l2_shrinkage_regularization_strength)
  LOCKSTEP_OPTION(beta)
  LOCKSTEP_OPTION(trust_coefficient)
  LOCKSTEP_OPTION(beta_2_decay)
  LOCKSTEP_OPTION(clip_threshold)
  LOCKSTEP_OPTION(epsilon_2)
#undef LOCKSTEP_OPTION
  take_option(options, "clipvalue", result.clip.value, found);
  take_option(options, "clipnorm", result.clip.norm, found);
  take_option(options, "global_clipnorm", result.clip.global_norm, found);
  take_option(options, "use_ema", result.ema.use, found);
  take_option(options, "ema_momentum", result.ema.momentum, found);
  take_option(options, "ema_overwrite_frequency", result.ema.overwrite_frequency, found);
  EXPECT_EQ(found, options.size()) << "an option that is not known: " << options;
  return result;
}

inline std::unique_ptr<Optimizer> optimizer_named(const std::string& name, const Json& options) {
#define LOCKSTEP_OPTIMIZER(Name) \
  if (name == #Name) return std::make_unique<Name>(golden_options<Name##Options>(options));
  LOCKSTEP_OPTIMIZER(SGD)
  LOCKSTEP_OPTIMIZER(Adam)
  LOCKSTEP_OPTIMIZER(AdamW)
  LOCKSTEP_OPTIMIZER(Adamax)
  LOCKSTEP_OPTIMIZER(Nadam)
  LOCKSTEP_OPTIMIZER(RMSprop)
  LOCKSTEP_OPTIMIZER(Adagrad)
  LOCKSTEP_OPTIMIZER(Adadelta)
  LOCKSTEP_OPTIMIZER(Ftrl)
  LOCKSTEP_OPTIMIZER(Lion)
  LOCKSTEP_OPTIMIZER(Lamb)
  LOCKSTEP_OPTIMIZER(Lars)
  LOCKSTEP_OPTIMIZER(Adafactor)
#undef LOCKSTEP_OPTIMIZER
  throw std::invalid_argument("no optimizer " + name);
}

inline std::unique_ptr<Optimizer> golden_optimizer(const std::string& name, const Json& options) {
  auto optimizer = optimizer_named(name, options);
  if (options.contains("exclude"))
    optimizer->exclude_from_weight_decay(options.at("exclude").get<std::vector<std::string>>());
  return optimizer;
}

}  // namespace lockstep::optim
