// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_collectives.h"

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/base/thread.h>

#include <cstdlib>
#include <utility>

#include "device/cuda/api.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kConnectTimeout{60};
constexpr std::chrono::milliseconds kWatchEvery{100};

// NOLINTNEXTLINE(bugprone-macro-parentheses): f names a member
#define LOCKSTEP_NCCL(f) decltype(&::f) f = library.function<decltype(&::f)>(#f)
struct Nccl {
  cuda::Library library{"NCCL", {"libnccl.so.2", "libnccl.so"}};
  LOCKSTEP_NCCL(ncclGetVersion);
  LOCKSTEP_NCCL(ncclGetErrorString);
  LOCKSTEP_NCCL(ncclGetLastError);
  LOCKSTEP_NCCL(ncclGetUniqueId);
  LOCKSTEP_NCCL(ncclCommInitRankConfig);
  LOCKSTEP_NCCL(ncclCommGetAsyncError);
  LOCKSTEP_NCCL(ncclCommAbort);
  LOCKSTEP_NCCL(ncclGroupStart);
  LOCKSTEP_NCCL(ncclGroupEnd);
  LOCKSTEP_NCCL(ncclAllReduce);
  LOCKSTEP_NCCL(ncclReduceScatter);
  LOCKSTEP_NCCL(ncclAllGather);
  LOCKSTEP_NCCL(ncclBroadcast);
};
#undef LOCKSTEP_NCCL

const Nccl& nccl() {
  static const auto* const loaded = new Nccl;  // stays, as the library does
  return *loaded;
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    default:
      return ncclUint8;
  }
}

}  // namespace

NcclCollectives::NcclCollectives(std::vector<Device> devices) : devices_(std::move(devices)) {
  // Otherwise the first collective would wait for the other ranks inside the call.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  for (std::size_t i = 0; i < devices_.size(); ++i) ranks_.push_back(std::make_unique<Rank>());
  connect();
  watchdog_ = std::thread([this] { watch(); });
}

NcclCollectives::~NcclCollectives() {
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (watchdog_.joinable()) watchdog_.join();
  disconnect();
}

void NcclCollectives::connect() {
  ncclUniqueId id;
  if (const ncclResult_t result = nccl().ncclGetUniqueId(&id); result != ncclSuccess)
    fail(result, "ncclGetUniqueId");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const int size = static_cast<int>(devices_.size());
  nccl().ncclGroupStart();
  ncclResult_t first = ncclSuccess;
  for (int i = 0; i < size; ++i) {
    Rank& rank = *ranks_[static_cast<std::size_t>(i)];
    cuda::enter_compute(devices_[static_cast<std::size_t>(i)]);
    const ncclResult_t result =
        nccl().ncclCommInitRankConfig(&rank.communicator, size, id, i, &config);
    if (result != ncclSuccess && result != ncclInProgress && first == ncclSuccess) first = result;
  }
  const ncclResult_t end = nccl().ncclGroupEnd();
  if (first == ncclSuccess && end != ncclInProgress) first = end;
  try {
    if (first != ncclSuccess) fail(first, "ncclCommInitRankConfig");
    for (const auto& rank : ranks_) settle(*rank, ncclInProgress, "ncclCommInitRankConfig");
  } catch (...) {
    disconnect();
    throw;
  }
}

// All at once: an abort may wait for those of the others.
void NcclCollectives::disconnect() noexcept {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    threads.emplace_back([this, i] {
      Rank& rank = *ranks_[i];
      const std::lock_guard lock(rank.mutex);
      if (ncclComm_t communicator = std::exchange(rank.communicator, nullptr))
        nccl().ncclCommAbort(communicator);
    });
  for (std::thread& thread : threads) thread.join();
}

void NcclCollectives::settle(Rank& rank, ncclResult_t result, const char* what) {
  const Deadline deadline = Deadline::after(kConnectTimeout);
  for (Backoff backoff; result == ncclInProgress;) {
    if (aborted_) return;
    if (const ncclResult_t asked = nccl().ncclCommGetAsyncError(rank.communicator, &result);
        asked != ncclSuccess)
      fail(asked, what);
    if (result == ncclInProgress && backoff.pause() && deadline.passed())
      throw DeadlineExceeded(message("Communicator", what, " did not end within ",
                                     kConnectTimeout.count(), " s; see NCCL_DEBUG=INFO"),
                             SourceLocation{});
  }
  if (result != ncclSuccess) fail(result, what);
}

void NcclCollectives::fail(ncclResult_t result, const char* what) const {
  throw InternalError(message("Communicator", what, " failed: ", nccl().ncclGetErrorString(result),
                              "; ", nccl().ncclGetLastError(nullptr)));
}

void NcclCollectives::put(int number, const CollectiveCall& call, const void* in, void* out,
                          std::span<const std::int64_t> counts, const Stream& stream) {
  Rank& rank = *ranks_[static_cast<std::size_t>(number)];
  const std::lock_guard lock(rank.mutex);
  if (aborted_ || !rank.communicator) {
    const std::lock_guard failure_lock(failure_mutex_);
    throw PeerError(message(api_name(call.kind), call.key(), ": the collectives were aborted",
                            failure_.empty() ? "" : ": ", failure_));
  }
  settle(rank, call_nccl(rank, call, in, out, counts, cuda::enter(stream), number), "collective");
}

ncclResult_t NcclCollectives::call_nccl(Rank& rank, const CollectiveCall& call, const void* in,
                                        void* out, std::span<const std::int64_t> counts,
                                        cudaStream_t stream, int number) {
  const ncclDataType_t type = type_of(call.dtype);
  const ncclRedOp_t op = call.op == ReduceOp::mean ? ncclAvg : ncclSum;
  const auto count = static_cast<std::size_t>(call.count);
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return nccl().ncclAllReduce(in, out, count, type, op, rank.communicator, stream);
    case CollectiveKind::reduce_scatter:
      return nccl().ncclReduceScatter(in, out, count / ranks_.size(), type, op, rank.communicator,
                                      stream);
    case CollectiveKind::broadcast:
      return nccl().ncclBroadcast(in, out, count, type, call.root, rank.communicator, stream);
    case CollectiveKind::all_gather: {
      if (!call.uneven) {
        const std::size_t each = counts.empty() ? count : static_cast<std::size_t>(counts[0]);
        return nccl().ncclAllGather(in, out, each, type, rank.communicator, stream);
      }
      nccl().ncclGroupStart();
      auto* to = static_cast<std::byte*>(out);
      for (std::size_t root = 0; root < counts.size(); ++root) {
        const auto part = static_cast<std::size_t>(counts[root]);
        const bool own = static_cast<int>(root) == number;
        if (part)
          nccl().ncclBroadcast(own ? in : to, to, part, type, static_cast<int>(root),
                               rank.communicator, stream);
        to += part * size_of(call.dtype);
      }
      return nccl().ncclGroupEnd();
    }
    case CollectiveKind::barrier:
      break;
  }
  return ncclSuccess;
}

void NcclCollectives::abort() noexcept {
  if (!aborted_.exchange(true)) disconnect();
}

void NcclCollectives::begin_epoch() {
  if (!aborted_) return;
  disconnect();
  aborted_ = false;
  {
    const std::lock_guard lock(failure_mutex_);
    failure_.clear();
  }
  connect();
}

void NcclCollectives::watch() {
  set_thread_name("nccl-watchdog");
  std::unique_lock lock(stop_mutex_);
  while (!stop_changed_.wait_for(lock, kWatchEvery, [this] { return stop_; })) {
    if (aborted_) continue;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = *ranks_[i];
      ncclResult_t state = ncclSuccess;
      {
        const std::unique_lock rank_lock(rank.mutex, std::try_to_lock);  // busy: it looks itself
        if (!rank_lock.owns_lock() || !rank.communicator) continue;
        if (nccl().ncclCommGetAsyncError(rank.communicator, &state) != ncclSuccess) continue;
      }
      if (state == ncclSuccess || state == ncclInProgress) continue;
      const std::string text = std::string("rank ") + std::to_string(i) + ": " +
                               nccl().ncclGetErrorString(state) + "; " +
                               nccl().ncclGetLastError(nullptr);
      {
        const std::lock_guard failure_lock(failure_mutex_);
        failure_ = text;
      }
      logging::error("[Communicator] NCCL failed on " + text);
      abort();
      break;
    }
  }
}

std::string NcclCollectives::describe() const {
  int version = 0;
  nccl().ncclGetVersion(&version);
  return "nccl " + std::to_string(version / 10000) + '.' + std::to_string(version % 10000 / 100) +
         '.' + std::to_string(version % 100);
}

}  // namespace lockstep
