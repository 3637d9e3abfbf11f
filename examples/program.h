// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/dataset.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/verify.h>
#include <lockstep/nn/precision.h>

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// What the examples share, besides lockstep: a command line, a doctor for their training steps, lines of
// output, an end with an error.
//
//   int main(int argc, char** argv) try {
//     const examples::Flags flags(
//         argc, argv, {{"epochs", "12", "passes over the training data"}, examples::kDoctor});
//     const auto rows = ls::data::digits<Example>("train");
//     if (flags.given("doctor")) return examples::doctor([] { return Training(); }, rows);
//     const ls::Strategy strategy = flags.strategy();
//     for (int epoch = 0; epoch < flags.number<int>("epochs"); ++epoch) ...
//     examples::print(strategy, "loss %.6f\n", loss.result().item<double>());
//   } catch (const std::exception& error) {
//     return examples::failed(error);
//   }
namespace examples {

struct Flag {
  std::string name;
  std::string value;  // what it is unless the command line says otherwise
  std::string meaning;
  bool is_switch = false;  // given or not, without a value
};

// `--name value` for each flag, or `--name` for a switch; one of them is `--strategy`. With `--help` the
// program prints them and ends with code 0; what it cannot read is std::invalid_argument.
class Flags {
 public:
  Flags(int argc, char** argv, std::initializer_list<Flag> flags = {}) : flags_(flags) {
    flags_.insert(flags_.begin(), {"strategy", "mirrored",
                                   "one_device, mirrored:4, multi_worker, tpu:2, ...: "
                                   "see lockstep::make_strategy"});
    for (int i = 1; i < argc; ++i) {
      const std::string_view option = argv[i];
      if (option == "--help") help();
      const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                     [&](const Flag& f) { return option == "--" + f.name; });
      if (flag == flags_.end()) refuse("there is no such flag", argv[i]);
      if (!flag->is_switch && ++i == argc) refuse("expected a value after", option);
      flag->value = argv[i];
    }
  }

  lockstep::Strategy strategy() const { return lockstep::make_strategy(text("strategy")); }

  const std::string& text(std::string_view name) const {
    return std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.name == name; })
        ->value;
  }

  bool given(std::string_view name) const { return !text(name).empty(); }

  template <class T>
  T number(std::string_view name, T least = std::numeric_limits<T>::lowest()) const {
    const std::string& digits = text(name);
    T value{};
    const char* const last = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), last, value);
    if (error != std::errc() || stopped != last)
      refuse("--" + std::string(name) + ": expected a number, got", digits);
    if (value < least) refuse("--" + std::string(name) + " is too small:", digits);
    return value;
  }

 private:
  [[noreturn]] static void refuse(const std::string& what, std::string_view argument) {
    throw std::invalid_argument(what + " \"" + std::string(argument) +
                                "\"; --help lists the flags");
  }
  [[noreturn]] void help() const {
    for (const Flag& flag : flags_) {
      const std::string value = flag.is_switch ? "" : " (" + flag.value + ")";
      std::printf("--%-14s %s%s\n", flag.name.c_str(), flag.meaning.c_str(), value.c_str());
    }
    std::exit(0);
  }

  std::vector<Flag> flags_;
};

// What `--doctor` does: verifies the programs that `make` makes (see lockstep::testing::verify) with the
// first rows, prints what is wrong with their step, and returns the code that main ends with.
inline const Flag kDoctor{"doctor", "", "verifies the training step instead of training", true};
template <class Make, class T>
int doctor(const Make& make, const lockstep::data::Dataset<T>& rows) {
  // In 16 bits more gradients are but rounding, of which optimizers like Adam make full steps.
  const bool full_precision = lockstep::nn::global_policy() == lockstep::nn::float32;
  const auto report = lockstep::testing::verify(make, *rows.batch(32).iterator().next(),
                                                {.tolerance = full_precision ? 1e-3 : 0.2});
  std::printf("%s", report.to_string().c_str());
  return report.ok() ? 0 : 1;
}

// std::printf on the chief. The other workers say nothing, but have the arguments, too, which may come
// from collectives.
[[gnu::format(printf, 2, 3)]] inline void print(const lockstep::Strategy& strategy,
                                                const char* format, ...) {
  if (!strategy.workers().is_chief()) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::fflush(stdout);
}

// Says why main ends, and with which code.
inline int failed(const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

}  // namespace examples
