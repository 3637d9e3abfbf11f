// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/distribute/strategy.h>

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

// What the examples share, besides lockstep: a command line, lines of output, an end with an error.
//
//   int main(int argc, char** argv) try {
//     const examples::Flags flags(argc, argv, {{"epochs", "12", "passes over the training data"}});
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
};

// `--name value` for each flag, one of which is `--strategy`. With `--help` the program prints them and
// ends with code 0; what it cannot read is std::invalid_argument.
class Flags {
 public:
  Flags(int argc, char** argv, std::initializer_list<Flag> flags = {}) : flags_(flags) {
    flags_.insert(flags_.begin(), {"strategy", "mirrored",
                                   "one_device, mirrored:4, multi_worker, tpu:2, ...: "
                                   "see lockstep::make_strategy"});
    for (int i = 1; i < argc; i += 2) {
      const std::string_view option = argv[i];
      if (option == "--help") help();
      const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                     [&](const Flag& f) { return option == "--" + f.name; });
      if (flag == flags_.end()) refuse("there is no such flag", argv[i]);
      if (i + 1 == argc) refuse("expected a value after", argv[i]);
      flag->value = argv[i + 1];
    }
  }

  lockstep::Strategy strategy() const { return lockstep::make_strategy(text("strategy")); }

  const std::string& text(std::string_view name) const {
    return std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.name == name; })
        ->value;
  }

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
  [[noreturn]] static void refuse(const std::string& what, const std::string& argument) {
    throw std::invalid_argument(what + " \"" + argument + "\"; --help lists the flags");
  }
  [[noreturn]] void help() const {
    for (const Flag& flag : flags_)
      std::printf("--%-14s %s (%s)\n", flag.name.c_str(), flag.meaning.c_str(), flag.value.c_str());
    std::exit(0);
  }

  std::vector<Flag> flags_;
};

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
