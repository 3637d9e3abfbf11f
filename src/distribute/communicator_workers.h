// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/communicator.h>
#include <lockstep/replica/worker_group.h>
#include <lockstep/tensor/tensor.h>

#include <mutex>

namespace lockstep {

// The workers as ranks of a communicator. Calls are numbered in the control channel in the order in
// which they are made. In the child of a fork they throw FailedPrecondition.
class CommunicatorWorkers final : public WorkerGroup {
 public:
  // `communicator` is not owned; its ranks are the workers.
  explicit CommunicatorWorkers(Communicator& communicator);

  // The process that made this has forked, and this is the child.
  bool forked() const;
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  void barrier(std::string_view name, SourceLocation at) override;
  std::vector<std::byte> broadcast(std::string_view name, std::vector<std::byte> bytes, int root,
                                   SourceLocation at) override;
  std::vector<std::vector<std::byte>> all_gather(std::string_view name,
                                                 std::vector<std::byte> bytes,
                                                 SourceLocation at) override;

  // The sum over workers of a tensor of one dtype and shape.
  Tensor all_reduce_sum(std::string_view name, const Tensor& value, SourceLocation at);
  // The chief's tensor; the others' must have its dtype and shape.
  Tensor broadcast(std::string_view name, const Tensor& value, SourceLocation at);

 private:
  // `name` must outlive the key.
  CollectiveKey next_key(std::string_view name, SourceLocation at);

  Communicator& communicator_;
  const int process_;  // that made this
  std::mutex mutex_;
  std::int64_t sequence_ = 0;
};

}  // namespace lockstep
