// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::optim {

// A moving average of the weights, the slot "average" of every variable:
//   average = momentum * average + (1 - momentum) * w after each update, w itself after the first that
//   the variable takes part in.
// All variables given to a step take part, with a gradient or without.
struct Ema {
  bool use = false;
  double momentum = 0.99;  // in [0, 1]
  // The weights become their averages in every update with a number that is a multiple of this; 0:
  // only by Optimizer::finalize_variable_values.
  std::int64_t overwrite_frequency = 0;
};

}  // namespace lockstep::optim
