// SPDX-License-Identifier: Apache-2.0
// training_step <model> <replicas>: a training step on so many CPU replicas, kRows rows each.
#include "training.h"
#include "window.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  benchmark::Training training(lockstep::make_strategy("mirrored:" + arguments.at(1)),
                               arguments.at(0));
  const float first_loss = training.step();
  float loss = first_loss;
  window::answer(window::training("lockstep", training.parameters()),
                 [&] { loss = training.step(); });
  if (loss < first_loss) return 0;
  std::cerr << "The loss was " << first_loss << " and is " << loss << '\n';
  return 1;
}
