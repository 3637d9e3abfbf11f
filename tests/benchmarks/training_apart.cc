// SPDX-License-Identifier: Apache-2.0
// training_apart <model> <threads>: so many threads, each a one-replica training of its own that
// knows of no other: the most that as many replicas could reach.
#include <barrier>
#include <mutex>
#include <optional>
#include <thread>

#include "training.h"
#include "window.h"

namespace {

// Threads that stay, with all they cache, and run each window together with the caller.
class Team {
 public:
  Team(const std::string& model, int size) : meeting_(size) {
    for (int index = 1; index < size; ++index)
      threads_.emplace_back([this, model, index] { follow(model, index); });
    own_.emplace(strategy(0), model);
  }
  ~Team() {
    seconds_ = 0;
    meeting_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  std::int64_t parameters() const { return own_->parameters(); }

  std::vector<double> run(double seconds) {
    seconds_ = seconds;
    times_.clear();
    meeting_.arrive_and_wait();
    run_window(*own_);
    meeting_.arrive_and_wait();
    return times_;
  }

 private:
  static lockstep::Strategy strategy(int index) {
    return lockstep::OneDeviceStrategy({.device = "CPU:" + std::to_string(index)});
  }
  void follow(const std::string& model, int index) {
    benchmark::Training training(strategy(index), model);
    while (true) {
      meeting_.arrive_and_wait();
      if (seconds_ == 0) return;
      run_window(training);
      meeting_.arrive_and_wait();
    }
  }
  void run_window(benchmark::Training& training) {
    const std::vector<double> times = window::milliseconds_of([&] { training.step(); }, seconds_);
    const std::scoped_lock lock(mutex_);
    times_.insert(times_.end(), times.begin(), times.end());
  }

  std::barrier<> meeting_;
  double seconds_ = 0;  // Written by the caller only, before a meeting.
  std::mutex mutex_;
  std::vector<double> times_;
  std::vector<std::thread> threads_;
  std::optional<benchmark::Training> own_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  Team team(arguments.at(0), std::stoi(arguments.at(1)));
  window::answer_with(window::training("threads that share nothing", team.parameters()),
                      [&](double seconds) { return team.run(seconds); });
}
