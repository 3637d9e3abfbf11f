// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace launch {

struct Options {
  int num_workers = 0;
  bool chief = false;  // task 0 is chief 0, the others are workers
  std::chrono::milliseconds grace{15'000};
  std::vector<std::string> command;  // the program and its arguments
};

// Reads the command line. Ends the process with code 0 after --help and --version, and with code 2
// and a sentence on standard error when it cannot be read.
Options parse_options(int argc, char** argv);

}  // namespace launch
