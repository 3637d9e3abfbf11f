// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {

// What a progress bar shows at one moment.
struct ProgressState {
  std::string title = {};
  std::int64_t steps = 0;
  std::int64_t total_steps = -1;  // negative: not known
  std::int64_t samples = 0;
  double seconds = 0;  // that the steps took
  std::vector<std::pair<std::string, double>> values = {};
};

// "epoch 3  12/40 [=====>.......]  3.2 ms/step  20000 samples/s  ETA 0:07  loss 0.4321"; the bar
// and the ETA only `with_bar` and when the total is known.
std::string progress_line(const ProgressState& state, bool with_bar);

}  // namespace lockstep::train
