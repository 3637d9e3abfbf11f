// SPDX-License-Identifier: Apache-2.0
#include <lockstep/replica/worker_group.h>

#include <utility>

namespace lockstep {
namespace {

class SingleWorker final : public WorkerGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier(std::string_view, SourceLocation) override {}
  std::vector<std::byte> broadcast(std::string_view, std::vector<std::byte> bytes, int,
                                   SourceLocation) override {
    return bytes;
  }
  std::vector<std::vector<std::byte>> all_gather(std::string_view, std::vector<std::byte> bytes,
                                                 SourceLocation) override {
    std::vector<std::vector<std::byte>> all;
    all.push_back(std::move(bytes));
    return all;
  }
};

}  // namespace

WorkerGroup::~WorkerGroup() = default;

WorkerGroup& single_worker() {
  static SingleWorker* const instance = new SingleWorker;
  return *instance;
}

}  // namespace lockstep
