// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/in_process.h>

#include <thread>

#include "comm/communicator_conformance.h"

namespace lockstep::testing {

class InProcessWorld final : public World {
 public:
  InProcessWorld(int size, InProcessOptions options) : group_(size, options) {}

  std::vector<Outcome> run(const std::function<void(Communicator&)>& body) override {
    group_.begin_epoch();
    std::vector<Outcome> outcomes(static_cast<std::size_t>(group_.size()));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < group_.size(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          body(group_.rank(rank));
          group_.returned(rank);
        } catch (...) {
          outcomes[static_cast<std::size_t>(rank)].error = std::current_exception();
          group_.rank(rank).abort(std::current_exception());
        }
      });
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

 private:
  InProcessGroup group_;
};

inline Implementation in_process() {
  return {.name = "in_process", .make = [](int size, WorldOptions options) {
            return std::make_unique<InProcessWorld>(
                size, InProcessOptions{.collective_timeout = options.collective_timeout});
          }};
}

}  // namespace lockstep::testing
