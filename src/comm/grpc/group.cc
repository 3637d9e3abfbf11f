// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/comm/grpc.h>

#include <algorithm>
#include <charconv>

#include "comm/grpc/board.h"

namespace lockstep {
namespace {

void check_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  int port = 0;
  bool ok = colon != std::string::npos && colon > 0;
  if (ok) {
    const char* const end = address.data() + address.size();
    const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, port);
    ok = error == std::errc() && stop == end && port > 0 && port < 65536;
  }
  require(ok, SourceLocation(), "GrpcGroup", "expected an address \"host:port\", got \"", address,
          "\"");
}

GrpcOptions checked(GrpcOptions options) {
  const auto size = static_cast<int>(options.addresses.size());
  require(size >= 1, SourceLocation(), "GrpcGroup", "expected at least 1 address, got none");
  require(options.rank >= 0 && options.rank < size, SourceLocation(), "GrpcGroup",
          "expected a rank from 0 to ", size - 1, ", got ", options.rank);
  require(options.names.empty() || options.names.size() == options.addresses.size(),
          SourceLocation(), "GrpcGroup", "expected a name for each of ", size, " addresses, got ",
          options.names.size());
  for (const std::string& address : options.addresses) {
    check_address(address);
    require(std::ranges::count(options.addresses, address) == 1, SourceLocation(), "GrpcGroup",
            "two workers have the address ", address, "; each needs one of its own");
  }
  if (!options.listen_address.empty()) check_address(options.listen_address);
  for (const auto& [name, time] : {std::pair("startup_timeout", options.startup_timeout),
                                   std::pair("collective_timeout", options.collective_timeout),
                                   std::pair("heartbeat_timeout", options.heartbeat_timeout),
                                   std::pair("warn_every", options.warn_every)})
    require(time.count() > 0, SourceLocation(), "GrpcGroup", "expected a ", name,
            " above zero, got ", time.count(), " ms");
  return options;
}

// This rank's end: checks the arguments, then meets the other ranks on the board.
class GrpcCommunicator final : public Communicator {
 public:
  explicit GrpcCommunicator(GrpcBoard& board) : board_(board) {}

  Pending all_reduce(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                     const Stream& stream) override {
    return enter(all_reduce_call(key, op, in, out), in.data, out.data, stream);
  }

  Pending reduce_scatter(const CollectiveKey& key, ReduceOp op, ConstElements in, Elements out,
                         const Stream& stream) override {
    return enter(reduce_scatter_call(key, op, in, out, rank(), size()), in.data, out.data, stream);
  }

  Pending all_gather(const CollectiveKey& key, ConstElements in, Elements out,
                     std::span<const std::int64_t> counts, const Stream& stream) override {
    return enter(all_gather_call(key, in, out, counts, rank(), size()), in.data, out.data, stream,
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
  int rank() const noexcept override { return board_.links().rank(); }
  int size() const noexcept override { return board_.links().size(); }
  std::string describe() const override {
    return "grpc: rank " + std::to_string(rank()) + " of " + std::to_string(size()) + ", " +
           board_.links().peer(rank()) + ", sums in tree order";
  }

 private:
  Pending enter(const CollectiveCall& call, const void* in, void* out, const Stream& stream,
                std::span<const std::int64_t> counts = {}) {
    if (!stream.device.is_host())
      throw InvalidArgument(
          message(api_name(call.kind), call.key(), ": expected host memory, got a stream of ",
                  stream.device.to_string()),
          call.at);
    return board_.enter(call, counts, in, out);
  }

  GrpcBoard& board_;
};

}  // namespace

struct GrpcGroup::State {
  explicit State(const GrpcOptions& options) : board(options), communicator(board) {}

  GrpcBoard board;
  GrpcCommunicator communicator;
};

GrpcGroup::GrpcGroup(GrpcOptions options)
    : state_(std::make_unique<State>(checked(std::move(options)))) {
  try {
    state_->board.connect();
  } catch (...) {
    state_->board.abort(std::current_exception());
    state_->board.leave();
    throw;
  }
}

GrpcGroup::~GrpcGroup() { state_->board.leave(); }

int GrpcGroup::rank() const noexcept { return state_->communicator.rank(); }
int GrpcGroup::size() const noexcept { return state_->communicator.size(); }
Communicator& GrpcGroup::communicator() { return state_->communicator; }
void GrpcGroup::begin_epoch() { state_->board.begin_epoch(); }
void GrpcGroup::returned() { state_->board.returned(); }

}  // namespace lockstep
