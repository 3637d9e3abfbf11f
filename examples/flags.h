// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/distribute/strategy.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

struct Flag {
  std::string name;
  std::string value;  // what it is unless the command line says otherwise
  std::string meaning;
};

// The command line of an example, `--name value` for each flag, one of which is `--strategy`. With
// `--help` the program prints them and ends with code 0; what it cannot read it names, and ends with 2.
//
//   const examples::Flags flags(argc, argv, {{"epochs", "12", "passes over the training data"}});
//   const ls::Strategy strategy = flags.strategy();
//   for (int epoch = 0; epoch < flags.number<int>("epochs"); ++epoch) ...
class Flags {
 public:
  Flags(int argc, char** argv, std::initializer_list<Flag> flags) : flags_(flags) {
    flags_.insert(flags_.begin(), {"strategy", "mirrored",
                                   "one_device, mirrored:4, multi_worker, tpu:2, ...: "
                                   "see lockstep::make_strategy"});
    for (int i = 1; i < argc; i += 2) {
      const std::string_view option = argv[i];
      if (option == "--help") end(stdout, 0);
      const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                     [&](const Flag& f) { return option == "--" + f.name; });
      if (flag == flags_.end() || i + 1 == argc) fail("cannot read", argv[i]);
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
    if (error != std::errc() || stopped != last) fail("expected a number, got", digits);
    if (value < least) fail(("--" + std::string(name) + " is too small:").c_str(), digits);
    return value;
  }

 private:
  [[noreturn]] void fail(const char* what, const std::string& argument) const {
    std::fprintf(stderr, "%s \"%s\"\n", what, argument.c_str());
    end(stderr, 2);
  }
  [[noreturn]] void end(std::FILE* stream, int code) const {
    for (const Flag& flag : flags_)
      std::fprintf(stream, "--%-14s %s (%s)\n", flag.name.c_str(), flag.meaning.c_str(),
                   flag.value.c_str());
    std::exit(code);
  }

  std::vector<Flag> flags_;
};

}  // namespace examples
