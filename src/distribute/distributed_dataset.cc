// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/distributed_dataset.h>

#include <lockstep/base/check.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/rows.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "distribute/batch_news.h"
#include "distribute/outside_replicas.h"

namespace lockstep::detail {
namespace {

// The rows of a batch that this process's replicas get: those of global replicas rank * L onwards.
RowRange rows_of_process(std::int64_t rows, int num_replicas, int num_local, int rank) {
  const RowRange first = rows_of_part(rows, num_replicas, rank * num_local);
  const RowRange last = rows_of_part(rows, num_replicas, rank * num_local + num_local - 1);
  return {first.begin, last.end};
}

// Leaves of zero rows, followed by the count of rows; nothing where a spec leaves other dims open.
std::optional<data::Leaves> without_rows(const data::ElementSpec& spec) {
  data::Leaves leaves;
  for (std::size_t i = 0; i + 1 < spec.size(); ++i) {
    std::vector<std::int64_t> dims = spec[i].dims;
    if (dims.empty()) return std::nullopt;
    dims[0] = 0;
    if (std::count(dims.begin(), dims.end(), -1)) return std::nullopt;
    leaves.push_back(zeros(Shape(dims), spec[i].dtype));
  }
  leaves.emplace_back(std::int64_t{0});
  return leaves;
}

int num_local(const StrategyInterface& strategy) {
  return static_cast<int>(strategy.local_devices().size());
}

}  // namespace

AnyDistributedDataset::AnyDistributedDataset(std::shared_ptr<StrategyInterface> strategy,
                                             const data::AnyDataset& dataset, SourceLocation at)
    : strategy_(std::move(strategy)), name_{strategy_->next_dataset_number(), at}, dealt_([&] {
        require_outside_replicas(*strategy_, "Strategy::distribute_dataset", at);
        dataset.require_batched("Strategy::distribute_dataset", at);
        const auto own_rows = [replicas = strategy_->num_replicas_in_sync(),
                               local = num_local(*strategy_),
                               rank = strategy_->workers().rank()](std::int64_t rows) {
          return rows_of_process(rows, replicas, local, rank);
        };
        return dataset.deal(own_rows, "Strategy::distribute_dataset", at);
      }()) {}

std::string AnyDistributedDataset::describe() const {
  return dealt_.describe() + ", dealt over " + std::to_string(strategy_->num_replicas_in_sync()) +
         " replicas; this process is worker " + std::to_string(strategy_->workers().rank()) +
         " of " + std::to_string(strategy_->workers().size());
}

AnyDistributedIterator::AnyDistributedIterator(std::shared_ptr<StrategyInterface> strategy,
                                               DatasetName name, data::AnyIterator batches,
                                               const std::optional<data::ElementSpec>& spec)
    : strategy_(std::move(strategy)),
      name_(name),
      batches_(std::move(batches)),
      no_rows_(spec && strategy_->workers().size() > 1 ? without_rows(*spec) : std::nullopt) {}

// This worker's next batch, and the rows of all workers in this step: none when no worker has any
// more.
std::optional<data::Leaves> AnyDistributedIterator::next_of_worker(
    std::optional<std::int64_t>& rows) {
  WorkerGroup& workers = strategy_->workers();
  std::optional<data::Leaves> own;
  if (workers.size() == 1) {
    own = batches_.next();
    if (own) rows = own->back().item<std::int64_t>();
    return own;
  }
  std::exception_ptr failure;
  try {
    own = batches_.next();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::string call = "batch " + std::to_string(steps_) + " of epoch " +
                           std::to_string(batches_.epoch()) + " of distributed dataset " +
                           std::to_string(name_.number);
  const auto all = workers.all_gather(
      call, failure ? BatchNews::of_failure(failure) : BatchNews::of(own, steps_ == 0), name_.at);
  if (failure) std::rethrow_exception(failure);
  std::vector<std::int64_t> global_rows;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const BatchNews news(all[rank]);
    global_rows.push_back(news.global_rows());
    if (news.failed())
      throw PeerError(message("DistributedIterator::next", "at ", call, " the data of worker ",
                              rank, " (by rank) failed: ", news.text(),
                              "; end the epoch here or restart from a checkpoint"),
                      name_.at);
    if (news.ended()) continue;
    rows = rows.value_or(0) + news.rows();
    if (steps_ == 0 && !own && !no_rows_) no_rows_ = without_rows(news.spec());
  }
  check_batch_size(call, global_rows);
  ++steps_;
  return own;
}

// The last batch of a worker's data may be smaller than another's of the same step, not one after the
// other.
void AnyDistributedIterator::check_batch_size(const std::string& call,
                                              const std::vector<std::int64_t>& global_rows) {
  const std::int64_t most = *std::max_element(global_rows.begin(), global_rows.end());
  shorter_.resize(global_rows.size());
  for (std::size_t rank = 0; rank < global_rows.size(); ++rank) {
    const bool shorter = global_rows[rank] > 0 && global_rows[rank] < most;
    require(!shorter || !shorter_[rank], name_.at, "DistributedIterator::next", "at ", call,
            " the global batch of worker ", rank, " (by rank) has ", global_rows[rank],
            " rows, another's ", most,
            ", and so it was before; batch the data by one size on all workers");
    shorter_[rank] = shorter;
  }
}

// Accelerators take batches of one size: all replicas get as many rows as the largest part so far
// has, the missing ones zero.
void AnyDistributedIterator::place(DealtBatch& batch) {
  const auto devices = strategy_->local_devices();
  padded_rows_ = std::max(
      padded_rows_, rows_of_part(batch.rows.global, strategy_->num_replicas_in_sync(), 0).size());
  batch.rows.padded = padded_rows_;
  for (std::size_t i = 0; i < batch.leaves.size(); ++i)
    for (Tensor& leaf : batch.leaves[i]) {
      const std::int64_t missing = padded_rows_ - leaf.dim(0);
      if (missing > 0) {
        const Tensor parts[] = {leaf, zeros(leaf.shape().with_dim(0, missing), leaf.dtype())};
        leaf = concat_rows(parts);
      }
      leaf = copy_to(leaf, devices[i]);
    }
}

std::optional<DealtBatch> AnyDistributedIterator::next() {
  require(strategy_ != nullptr, SourceLocation{}, "DistributedIterator::next",
          "expected an iterator, got one that was moved from");
  if (has_strategy() && !in_cross_replica_context())
    throw FailedPrecondition(
        "[DistributedIterator::next] called in a step function; take the batch outside run "
        "and pass it in",
        SourceLocation{});
  using Clock = telemetry::PhaseTimes::Clock;
  const Clock::time_point start = Clock::now();
  std::optional<std::int64_t> all_rows;
  std::optional<data::Leaves> own = next_of_worker(all_rows);
  strategy_->count_input_time(Clock::now() - start);
  if (!all_rows) return std::nullopt;
  if (!own) {
    ensure(no_rows_.has_value(), "DistributedIterator::next", "a batch without rows has no shape");
    own = no_rows_;
  }
  DealtBatch batch;
  batch.rows.global = *all_rows;
  // What this worker knows of the batch tells how its own rows are dealt.
  const std::int64_t known_rows = own->back().item<std::int64_t>();
  own->pop_back();
  const int local = num_local(*strategy_), replicas = strategy_->num_replicas_in_sync();
  const int first_replica = strategy_->workers().rank() * local;
  const std::int64_t first_row =
      rows_of_process(known_rows, replicas, local, strategy_->workers().rank()).begin;
  for (int i = 0; i < local; ++i) {
    RowRange part = rows_of_part(known_rows, replicas, first_replica + i);
    part = {part.begin - first_row, part.end - first_row};
    batch.rows.local.push_back(part.size());
    std::vector<Tensor>& leaves = batch.leaves.emplace_back();
    const Device device = strategy_->local_devices()[static_cast<std::size_t>(i)];
    const bool streams = !device.is_host() && device.kind != DeviceKind::xla;
    for (const Tensor& leaf : *own) {
      const Tensor rows = slice_rows(leaf, part);
      leaves.push_back(streams ? copy_to(rows, device) : rows);
    }
  }
  if (!no_rows_ && strategy_->workers().size() > 1) {
    no_rows_ = *own;
    for (Tensor& leaf : *no_rows_) leaf = zeros(leaf.shape().with_dim(0, 0), leaf.dtype());
    no_rows_->emplace_back(std::int64_t{0});
  }
  if (strategy_->local_devices()[0].kind == DeviceKind::xla) place(batch);
  return batch;
}

}  // namespace lockstep::detail
