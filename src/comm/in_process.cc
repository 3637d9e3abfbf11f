// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/comm/in_process.h>

#include <vector>

#include "comm/in_process_board.h"

namespace lockstep {
namespace {

// A rank's end: checks the arguments, then meets the other ranks on the board.
class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(InProcessBoard& board, int rank) : board_(board), rank_(rank) {}

  Pending all_reduce(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                     const Stream& stream) override {
    return enter(all_reduce_call(key, op, in, out), in.data, out.data, stream);
  }

  Pending reduce_scatter(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                         const Stream& stream) override {
    return enter(reduce_scatter_call(key, op, in, out, rank_, size()), in.data, out.data, stream);
  }

  Pending all_gather(const CollectiveKey& key, ConstElements in, Elements out,
                     std::span<const std::int64_t> counts, const Stream& stream) override {
    return enter(all_gather_call(key, in, out, counts, rank_, size()), in.data, out.data, stream,
                 counts);
  }

  Pending broadcast(const CollectiveKey& key, int root, Elements data,
                    const Stream& stream) override {
    return enter(broadcast_call(key, root, data, size()), data.data, data.data, stream);
  }

  Pending barrier(const CollectiveKey& key) override {
    return enter(barrier_call(key), nullptr, nullptr, {});
  }

  void abort(std::exception_ptr reason) noexcept override { board_.abort(std::move(reason)); }
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return board_.size(); }
  std::string describe() const override {
    return "in_process: rank " + std::to_string(rank_) + " of " + std::to_string(size()) +
           ", sums in tree order, waiting ranks " + (board_.spins() ? "spin" : "sleep");
  }

 private:
  Pending enter(const CollectiveCall& call, const void* in, void* out, const Stream& stream,
                std::span<const std::int64_t> counts = {}) {
    if (!stream.device.is_host())
      throw InvalidArgument(message(api_name(call.kind), call.key(),
                                    ": expected host memory, got a stream of ",
                                    stream.device.to_string()),
                            call.at);
    return board_.enter(rank_, call, counts, in, out);
  }

  InProcessBoard& board_;
  int rank_;
};

}  // namespace

struct InProcessGroup::State {
  State(int size, InProcessOptions options) : board(size, options) {
    for (int rank = 0; rank < size; ++rank) ranks.emplace_back(board, rank);
  }
  InProcessCommunicator& at(int rank, const char* call) {
    require(rank >= 0 && rank < board.size(), SourceLocation{}, call,
            "expected a rank from 0 to ", board.size() - 1, ", got ", rank);
    return ranks[static_cast<std::size_t>(rank)];
  }

  InProcessBoard board;
  std::vector<InProcessCommunicator> ranks;
};

InProcessGroup::InProcessGroup(int size, InProcessOptions options) {
  require(size >= 1, SourceLocation{}, "InProcessGroup", "expected at least 1 rank, got ",
          size);
  state_ = std::make_unique<State>(size, options);
}

InProcessGroup::~InProcessGroup() = default;

int InProcessGroup::size() const noexcept { return state_->board.size(); }
Communicator& InProcessGroup::rank(int rank) { return state_->at(rank, "InProcessGroup::rank"); }
void InProcessGroup::begin_epoch() { state_->board.begin_epoch(); }
void InProcessGroup::returned(int rank) {
  state_->board.returned(state_->at(rank, "InProcessGroup::returned").rank());
}

}  // namespace lockstep
