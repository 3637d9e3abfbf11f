// SPDX-License-Identifier: Apache-2.0
// What one side of a comparison is: a program that warms up, says "ready <version>", and answers
// each line of standard input, a window's length in seconds, with the median and the tenth
// percentile of the time of a step in milliseconds. driver.py holds such programs open side by side
// and lets them run in turn. peers/window.py is the same in Python.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

namespace window {

using Clock = std::chrono::steady_clock;

// Times of single steps over a window, each the mean of `inner` calls.
template <class Step>
std::vector<double> milliseconds_of(const Step& step, double seconds, int inner = 1,
                                    std::size_t at_least = 3) {
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (times.size() < at_least || Clock::now() < end) {
    const auto begin = Clock::now();
    for (int i = 0; i < inner; ++i) step();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count() /
                    inner);
  }
  return times;
}

// Answers one line for the window whose times `measure()` returns, each the mean of `inner` calls.
template <class Measure>
void answer_one(const Measure& measure, std::size_t inner) {
  const std::clock_t begin = std::clock();
  std::vector<double> times = measure();
  const double cpu_milliseconds = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::ranges::sort(times);
  std::cout << times[times.size() / 2] << ' ' << times[times.size() / 10] << ' '
            << cpu_milliseconds / static_cast<double>(times.size() * inner) << std::endl;
}

// `times_of(seconds)` returns the times of a window's steps, each the mean of `inner`.
template <class TimesOf>
void answer_with(const std::string& version, const TimesOf& times_of, std::size_t inner = 1) {
  times_of(0.5);
  std::cout << "ready " << version << std::endl;
  for (double seconds = 0; std::cin >> seconds;)
    answer_one([&] { return times_of(seconds); }, inner);
}

// The version of a program that trains so many parameters: driver.py compares it only with those that
// train as many.
inline std::string training(const std::string& version, long long parameters) {
  return version + ", " + std::to_string(parameters) + " parameters";
}

template <class Step>
void answer(const std::string& version, const Step& step, int inner = 1) {
  answer_with(
      version, [&](double seconds) { return milliseconds_of(step, seconds, inner); },
      static_cast<std::size_t>(inner));
}

}  // namespace window
