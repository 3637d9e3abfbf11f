// SPDX-License-Identifier: Apache-2.0
// training_step <model> <replicas>: a training step on so many CPU replicas, kRows rows each.
#include "training.h"
#include "window.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  benchmark::Training training(lockstep::make_strategy("mirrored:" + arguments.at(1)),
                               arguments.at(0));
  window::answer("lockstep", [&] { training.step(); });
}
