// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <getopt.h>
#include <lockstep/base/version.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace launch {
namespace {

constexpr const char* kHelp = R"(usage: lockstep-run -n N [options] [--] program [arguments]

Starts N copies of the program on this machine as the workers of one cluster: each finds the
addresses of all and its own task in TF_CONFIG, and its rank in LOCKSTEP_RANK.

  -n, --num-workers N   how many workers
      --chief           the first is task "chief 0", the others workers from 0 on
      --grace SECONDS   how long the others may go on when one has failed, or when lockstep-run has
                        passed on a signal, before they are sent SIGTERM, and SIGKILL 5 s later
                        (default 15)
  -h, --help            this text
      --version         the version of lockstep

Every line of output is passed on with the worker's name before it. Programs write to a pipe, where
the C library holds back lines of standard output until a block is full: flush, or start the program
by `stdbuf -oL`.

SIGINT, SIGTERM and SIGHUP are passed on to all workers; another one, a second later, kills them. A
worker ends with its first process; what that leaves behind is killed, and so is everything when
lockstep-run itself is killed. Standard input is empty.

Exit code: 0 when all workers ended with 0, else that of the first that did not (128 + N for signal
N, 126 or 127 for a program that cannot be started); 2 for a command line that cannot be read.
)";

[[noreturn]] void refuse(const std::string& reason) {
  std::fprintf(stderr, "lockstep-run: %s\nTry lockstep-run --help.\n", reason.c_str());
  std::exit(2);
}

// All of `text` as a number from `least` to `most`.
template <class T>
T number(const char* option, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(value >= least && value <= most))
    refuse(std::string(option) + " is \"" + std::string(text) + "\"; expected a number from " +
           std::to_string(static_cast<int>(least)) + " to " +
           std::to_string(static_cast<int>(most)));
  return value;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  enum { kChief = 256, kGrace, kVersion };
  const option long_options[] = {
      {"num-workers", required_argument, nullptr, 'n'}, {"chief", no_argument, nullptr, kChief},
      {"grace", required_argument, nullptr, kGrace},    {"help", no_argument, nullptr, 'h'},
      {"version", no_argument, nullptr, kVersion},      {nullptr, 0, nullptr, 0}};
  constexpr int kMostWorkers = 1000, kLongestGraceS = 1'000'000;
  Options options;
  // "+": the first word that is no option is the program, and what follows is its own.
  for (int c; (c = getopt_long(argc, argv, "+n:h", long_options, nullptr)) != -1;) {
    switch (c) {
      case 'n':
        options.num_workers = number("-n", optarg, 1, kMostWorkers);
        break;
      case kChief:
        options.chief = true;
        break;
      case kGrace:
        options.grace = std::chrono::milliseconds(static_cast<std::int64_t>(
            1000 * number("--grace", optarg, 0.0, static_cast<double>(kLongestGraceS))));
        break;
      case 'h':
        std::fputs(kHelp, stdout);
        std::exit(0);
      case kVersion:
        std::printf("lockstep-run %s\n", std::string(lockstep::version()).c_str());
        std::exit(0);
      default:  // getopt_long has said what is wrong.
        std::fputs("Try lockstep-run --help.\n", stderr);
        std::exit(2);
    }
  }
  if (options.num_workers == 0) refuse("how many workers? Give -n N");
  options.command.assign(argv + optind, argv + argc);
  if (options.command.empty()) refuse("which program? Give it, and its arguments, last");
  return options;
}

}  // namespace launch
