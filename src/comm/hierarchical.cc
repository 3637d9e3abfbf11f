// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/comm/hierarchical.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/hierarchical_board.h"

namespace lockstep {
namespace {

// The key between workers, which sum though their ranks want a mean: the name says so, so that
// workers that disagree about it find out.
class NamedKey {
 public:
  NamedKey(const CollectiveKey& key, ReduceOp op) : key_(key), name_(key.name) {
    if (op != ReduceOp::mean) return;
    name_ += name_.empty() ? "mean" : ", mean";
    key_.name = name_;
  }
  operator const CollectiveKey&() const { return key_; }

 private:
  CollectiveKey key_;
  std::string name_;
};

// A local rank's end: cuts a call into the part among local ranks and the part between workers.
class HierarchicalCommunicator final : public Communicator {
 public:
  HierarchicalCommunicator(HierarchicalBoard& board, int local) : board_(board), local_(local) {}

  Pending all_reduce(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                     const Stream& stream) override {
    const CollectiveCall call = all_reduce_call(key, op, in, out);
    return board_.enter(
        local_, call, out.data,
        [&](HierarchicalBoard::Joint&) {
          return local().all_reduce(key, ReduceOp::sum, in, out, stream);
        },
        [&](HierarchicalBoard::Joint& joint) {
          const Elements whole{joint.outputs[0], out.count, out.dtype};
          return between().all_reduce(NamedKey(key, op), ReduceOp::sum, whole, whole);
        });
  }

  Pending reduce_scatter(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                         const Stream& stream) override {
    const CollectiveCall call = reduce_scatter_call(key, op, in, out, rank(), size());
    return board_.enter(
        local_, call, out.data,
        [&](HierarchicalBoard::Joint& joint) {
          if (joint.entered == 0)
            joint.scratch.resize(static_cast<std::size_t>(in.count) * size_of(in.dtype));
          return local().all_reduce(key, ReduceOp::sum, in,
                                    {joint.scratch.data(), in.count, in.dtype}, stream);
        },
        [&](HierarchicalBoard::Joint& joint) {
          const Elements own = board_.own_parts(joint);
          return between().reduce_scatter(NamedKey(key, op), ReduceOp::sum,
                                          {joint.scratch.data(), in.count, in.dtype}, own);
        });
  }

  Pending all_gather(const CollectiveKey& key, ConstElements in, Elements out,
                     std::span<const std::int64_t> counts, const Stream& stream) override {
    const CollectiveCall call = all_gather_call(key, in, out, counts, rank(), size());
    const auto locals = static_cast<std::size_t>(board_.local_size());
    std::vector<std::int64_t> by_worker(counts.empty() ? 0 : counts.size() / locals);
    for (std::size_t i = 0; i < counts.size(); ++i) by_worker[i / locals] += counts[i];
    const auto worker = static_cast<std::size_t>(between().rank());
    std::int64_t begin = between().rank() * board_.local_size() * in.count;
    std::int64_t count = board_.local_size() * in.count;
    std::span<const std::int64_t> own_counts;
    if (!counts.empty()) {
      own_counts = counts.subspan(worker * locals, locals);
      begin = 0;
      for (std::size_t w = 0; w < worker; ++w) begin += by_worker[w];
      count = by_worker[worker];
    }
    const auto part = [&](void* all) {
      auto* data = static_cast<std::byte*>(all);
      if (data) data += static_cast<std::size_t>(begin) * size_of(out.dtype);
      return Elements{data, count, out.dtype};
    };
    return board_.enter(
        local_, call, out.data,
        [&](HierarchicalBoard::Joint&) {
          return local().all_gather(key, in, part(out.data), own_counts, stream);
        },
        [&](HierarchicalBoard::Joint& joint) {
          std::byte* const all = joint.outputs[0];
          return between().all_gather(key, part(all), {all, out.count, out.dtype}, by_worker);
        });
  }

  Pending broadcast(const CollectiveKey& key, int root, Elements data,
                    const Stream& stream) override {
    const CollectiveCall call = broadcast_call(key, root, data, size());
    return board_.enter(
        local_, call, data.data,
        [&](HierarchicalBoard::Joint&) {
          return local().broadcast(key, root % board_.local_size(), data, stream);
        },
        [&](HierarchicalBoard::Joint& joint) {
          return between().broadcast(key, root / board_.local_size(),
                                     {joint.outputs[0], data.count, data.dtype});
        });
  }

  Pending barrier(const CollectiveKey& key) override {
    return board_.enter(
        local_, barrier_call(key), nullptr,
        [&](HierarchicalBoard::Joint&) { return local().barrier(key); },
        [&](HierarchicalBoard::Joint&) { return between().barrier(key); });
  }

  void abort(std::exception_ptr reason) noexcept override { board_.abort(local_, reason); }
  int rank() const noexcept override {
    return board_.between().rank() * board_.local_size() + local_;
  }
  int size() const noexcept override { return board_.between().size() * board_.local_size(); }
  std::string describe() const override {
    return "hierarchical: rank " + std::to_string(rank()) + " of " + std::to_string(size()) +
           ", local rank " + std::to_string(local_) + " of " + std::to_string(board_.local_size()) +
           ", between workers " + board_.between().describe();
  }

 private:
  Communicator& local() { return board_.local(local_); }
  Communicator& between() { return board_.between(); }

  HierarchicalBoard& board_;
  int local_;
};

}  // namespace

struct HierarchicalGroup::State {
  State(int local_size, Communicator* between, InProcessOptions options)
      : local(local_size, options) {
    if (!between || local_size == 1) {
      for (int rank = 0; rank < local_size; ++rank)
        ends.push_back(between ? between : &local.rank(rank));
      return;
    }
    board = std::make_unique<HierarchicalBoard>(local, *between, options);
    ranks.reserve(static_cast<std::size_t>(local_size));
    for (int rank = 0; rank < local_size; ++rank) ends.push_back(&ranks.emplace_back(*board, rank));
  }

  InProcessGroup local;
  std::unique_ptr<HierarchicalBoard> board;  // null where one of the two groups suffices
  std::vector<HierarchicalCommunicator> ranks;
  std::vector<Communicator*> ends;  // by local rank
};

HierarchicalGroup::HierarchicalGroup(int local_size, Communicator* between,
                                     InProcessOptions options)
    : state_(std::make_unique<State>(local_size, between, options)) {}

HierarchicalGroup::~HierarchicalGroup() = default;

int HierarchicalGroup::local_size() const noexcept { return state_->local.size(); }

Communicator& HierarchicalGroup::local_rank(int rank) {
  require(rank >= 0 && rank < local_size(), SourceLocation{}, "HierarchicalGroup::local_rank",
          "expected a local rank from 0 to ", local_size() - 1, ", got ", rank);
  return *state_->ends[static_cast<std::size_t>(rank)];
}

void HierarchicalGroup::begin_epoch() {
  state_->local.begin_epoch();
  if (state_->board) state_->board->begin_epoch();
}

void HierarchicalGroup::returned(int local_rank) { state_->local.returned(local_rank); }

}  // namespace lockstep
