// SPDX-License-Identifier: Apache-2.0
// empty_run <replicas>: a run whose step returns a number, and its sum.
#include <lockstep/lockstep.h>

#include <string>

#include "window.h"

namespace ls = lockstep;

int main(int, char** argv) {
  const ls::Strategy strategy = ls::make_strategy(std::string("mirrored:") + argv[1]);
  const auto step = [] { return ls::Tensor(1.0F); };
  window::answer(
      "lockstep", [&] { return strategy.reduce(ls::ReduceOp::sum, strategy.run(step)); }, 100);
}
