// SPDX-License-Identifier: Apache-2.0
#include "train/progress_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace lockstep::train {
namespace {

constexpr std::int64_t kBarWidth = 24;

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

std::string bar(std::int64_t steps, std::int64_t total) {
  const std::int64_t done = std::min(kBarWidth, kBarWidth * steps / total);
  std::string text(static_cast<std::size_t>(kBarWidth), '.');
  std::fill_n(text.begin(), done, '=');
  if (done > 0 && done < kBarWidth) text[static_cast<std::size_t>(done - 1)] = '>';
  return " [" + text + "]";
}

// "0:07", "1:02:03".
std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  if (whole < 3600) return format("%lld:%02lld", whole / 60, whole % 60);
  return format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string time_per_step(double seconds) {
  if (seconds >= 1) return format("%.2f s/step", seconds);
  if (seconds >= 1e-3) return format("%.1f ms/step", 1e3 * seconds);
  return format("%.0f us/step", 1e6 * seconds);
}

}  // namespace

std::string progress_line(const ProgressState& state, bool with_bar) {
  std::string line = state.title;
  if (!line.empty()) line += "  ";
  line += std::to_string(state.steps);
  if (state.total_steps >= 0) line += "/" + std::to_string(state.total_steps);
  with_bar = with_bar && state.total_steps > 0;
  line += with_bar ? bar(state.steps, state.total_steps) : " steps";
  if (state.steps > 0) {
    const double per_step = state.seconds / static_cast<double>(state.steps);
    line += "  " + time_per_step(per_step);
    if (state.samples > 0 && state.seconds > 0)
      line += format("  %.0f samples/s", static_cast<double>(state.samples) / state.seconds);
    if (with_bar && state.steps < state.total_steps)
      line += "  ETA " + duration(per_step * static_cast<double>(state.total_steps - state.steps));
  }
  for (const auto& [name, value] : state.values) line += "  " + name + format(" %.4g", value);
  return line;
}

}  // namespace lockstep::train
