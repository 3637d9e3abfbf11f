// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/hierarchical.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <thread>
#include <vector>

#include "comm/communicator_conformance.h"

namespace lockstep::testing {

// Workers of 2^k local ranks each, as many as divide the size, at most four. Ranks are threads; between
// the workers is a group in process.
class HierarchicalWorld final : public World {
 public:
  HierarchicalWorld(int size, InProcessOptions options)
      : size_(size),
        locals_(std::min(4, 1 << std::countr_zero(static_cast<unsigned>(size)))),
        between_(size / locals_, options) {
    for (int worker = 0; worker < between_.size(); ++worker)
      workers_.push_back(
          std::make_unique<HierarchicalGroup>(locals_, &between_.rank(worker), options));
  }

  std::vector<Outcome> run(const std::function<void(Communicator&)>& body) override {
    between_.begin_epoch();
    for (const auto& worker : workers_) worker->begin_epoch();
    std::vector<Outcome> outcomes(static_cast<std::size_t>(size_));
    std::vector<std::thread> threads;
    std::vector<std::atomic<int>> inside(workers_.size());
    for (auto& count : inside) count = locals_;
    for (int rank = 0; rank < size_; ++rank)
      threads.emplace_back([&, rank] {
        const int worker = rank / locals_, local = rank % locals_;
        HierarchicalGroup& group = *workers_[static_cast<std::size_t>(worker)];
        try {
          body(group.local_rank(local));
        } catch (...) {
          outcomes[static_cast<std::size_t>(rank)].error = std::current_exception();
          group.local_rank(local).abort(std::current_exception());
        }
        group.returned(local);
        if (--inside[static_cast<std::size_t>(worker)] == 0) between_.returned(worker);
      });
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

 private:
  const int size_, locals_;
  InProcessGroup between_;
  std::vector<std::unique_ptr<HierarchicalGroup>> workers_;
};

inline Implementation hierarchical() {
  return {.name = "hierarchical",
          .make =
              [](int size, WorldOptions options) {
                return std::make_unique<HierarchicalWorld>(
                    size, InProcessOptions{.collective_timeout = options.collective_timeout});
              },
          .one_process = false};
}

}  // namespace lockstep::testing
