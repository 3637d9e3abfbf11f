// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/progress.h>

#include <lockstep/replica/replica_group.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "train/progress_line.h"

namespace lockstep::train {
namespace {

// Back to the first column and clear what stood there.
constexpr const char* kRedraw = "\r\x1b[K";

bool is_chief() {
  const auto& group = current_replica_group();
  return !group || group->workers().is_chief();
}

}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options, SourceLocation at)
    : options_(std::move(options)), shown_(is_chief()), started_(Clock::now()) {
  require(options_.interval.count() >= 0, at, "ProgressBar",
          "expected an interval of 0 or more, got ", options_.interval.count(), " ms");
  require(options_.stream != nullptr, at, "ProgressBar", "expected a stream, got a null pointer");
  if (!options_.terminal) options_.terminal = isatty(fileno(options_.stream)) == 1;
  last_step_ = last_drawn_ = started_;
}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\n", options_.stream);
}

void ProgressBar::step(std::int64_t samples, Values values) {
  if (!shown_) return;
  ++steps_;
  samples_ += samples;
  keep(values);
  last_step_ = Clock::now();
  if (!*options_.terminal || last_step_ - last_drawn_ < options_.interval) return;
  std::fputs((kRedraw + line(true)).c_str(), options_.stream);
  std::fflush(options_.stream);
  last_drawn_ = last_step_;
  drawn_ = true;
}

void ProgressBar::finish(Values values) {
  if (!shown_) return;
  keep(values);
  const std::string text = line(*options_.terminal) + "\n";
  std::fputs(((*options_.terminal ? kRedraw : "") + text).c_str(), options_.stream);
  std::fflush(options_.stream);
  shown_ = drawn_ = false;
}

void ProgressBar::keep(Values values) {
  for (const auto& value : values) {
    const auto known = std::find_if(values_.begin(), values_.end(),
                                    [&](const auto& kept) { return kept.first == value.first; });
    if (known == values_.end())
      values_.emplace_back(value);
    else
      known->second = value.second;
  }
}

std::string ProgressBar::line(bool with_bar) const {
  ProgressState state{.title = options_.title,
                      .steps = steps_,
                      .total_steps = options_.total_steps,
                      .samples = samples_,
                      .seconds = std::chrono::duration<double>(last_step_ - started_).count()};
  for (const auto& [name, value] : values_) state.values.emplace_back(name, value.item<double>());
  return progress_line(state, with_bar);
}

}  // namespace lockstep::train
