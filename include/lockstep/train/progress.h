// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/tensor/tensor.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {

struct ProgressBarOptions {
  std::string title = {};                   // what the line begins with: "epoch 3"
  std::int64_t total_steps = -1;            // negative: not known, so no bar and no time left
  std::chrono::milliseconds interval{100};  // shortest time between two redraws
  std::FILE* stream = stderr;
  std::optional<bool> terminal = {};  // redraw in place; unset: when the stream is a terminal
};

// Shows how far an epoch is: steps, time per step, samples per second, time left and named values.
// On a terminal it is a bar that is redrawn in place, elsewhere one line at the end. Only the chief
// shows anything, so that all workers run the same code: make it while the strategy's scope is
// open, which knows who the chief is. Used by one thread, outside replicas.
//
//   ls::train::ProgressBar bar({.title = "epoch 1", .total_steps = train.cardinality()});
//   for (const auto& batch : train) {
//     ...
//     bar.step(batch.rows()->global, {{"loss", loss}});
//   }
//   bar.finish({{"accuracy", accuracy.result()}});
class LOCKSTEP_EXPORT ProgressBar {
 public:
  // One-element tensors under the names they are shown by. They are read only when they are shown,
  // so that a value that is still being computed does not hold up the loop.
  using Values = std::initializer_list<std::pair<const char*, Tensor>>;

  // Starts the clock. Throws InvalidArgument for a negative interval or a null stream.
  explicit ProgressBar(ProgressBarOptions options = {},
                       SourceLocation at = SourceLocation::current());
  ~ProgressBar();  // ends a line that is not finished
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // A step is done, on `samples` examples of all replicas (0: not shown). A value stays shown until
  // a later one of the same name.
  void step(std::int64_t samples = 0, Values values = {});
  // The last step is done: writes the final line. Time from there on does not count; later calls do
  // nothing.
  void finish(Values values = {});

 private:
  using Clock = std::chrono::steady_clock;
  void keep(Values values);
  std::string line(bool with_bar) const;

  ProgressBarOptions options_;
  bool shown_;          // on the chief, until finished
  bool drawn_ = false;  // a line stands on the terminal, without an end
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
  Clock::time_point started_, last_step_, last_drawn_;
  std::vector<std::pair<std::string, Tensor>> values_;
};

}  // namespace lockstep::train
