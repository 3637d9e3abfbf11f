// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/grpc.h>

#include <memory>
#include <thread>
#include <vector>

#include "comm/communicator_conformance.h"
#include "support/ports.h"

namespace lockstep::testing {

// Ranks are threads of this process that know of each other only what comes over the wire. Groups
// live until a run fails.
class GrpcWorld final : public World {
 public:
  GrpcWorld(int size, WorldOptions options)
      : options_(options), groups_(static_cast<std::size_t>(size)) {}

  std::vector<Outcome> run(const std::function<void(Communicator&)>& body) override {
    const std::vector<std::string> addresses = free_addresses(static_cast<int>(groups_.size()));
    std::vector<Outcome> outcomes(groups_.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < groups_.size(); ++rank)
      threads.emplace_back([&, rank] {
        auto& group = groups_[rank];
        try {
          if (!group)
            group = std::make_unique<GrpcGroup>(
                GrpcOptions{.rank = static_cast<int>(rank),
                            .addresses = addresses,
                            .collective_timeout = options_.collective_timeout});
          group->begin_epoch();
          body(group->communicator());
          group->returned();
        } catch (...) {
          outcomes[rank].error = std::current_exception();
          if (group) group->communicator().abort(std::current_exception());
        }
      });
    for (std::thread& thread : threads) thread.join();
    bool failed = false;
    for (auto& group : groups_) failed |= !group || !is_well(*group);
    if (failed)
      for (auto& group : groups_) group.reset();
    return outcomes;
  }

 private:
  // A rank whose body returned may have seen the group fail.
  static bool is_well(GrpcGroup& group) {
    try {
      group.begin_epoch();
      return true;
    } catch (...) {
      return false;
    }
  }

  WorldOptions options_;
  std::vector<std::unique_ptr<GrpcGroup>> groups_;
};

inline Implementation grpc() {
  return {.name = "grpc",
          .make = [](int size,
                     WorldOptions options) { return std::make_unique<GrpcWorld>(size, options); },
          .one_process = false};
}

}  // namespace lockstep::testing
