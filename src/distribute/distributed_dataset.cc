// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/distributed_dataset.h>

#include <lockstep/base/check.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/rows.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

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
    : strategy_(std::move(strategy)), dealt_([&] {
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
                                               data::AnyIterator batches,
                                               const std::optional<data::ElementSpec>& spec)
    : strategy_(std::move(strategy)),
      batches_(std::move(batches)),
      no_rows_(spec ? without_rows(*spec) : std::nullopt) {}

// The rows of all workers in this step, of which `own` holds some; nothing when no worker has any
// more.
std::optional<std::int64_t> AnyDistributedIterator::agree_on_rows(
    const std::optional<data::Leaves>& own) const {
  WorkerGroup& workers = strategy_->workers();
  if (workers.size() == 1)
    return own ? std::optional(own->back().item<std::int64_t>()) : std::nullopt;
  const std::int64_t rows = own ? (*own)[0].dim(0) : -1;  // -1: ended
  const auto* const bytes = reinterpret_cast<const std::byte*>(&rows);
  std::optional<std::int64_t> total;
  for (const auto& part :
       workers.all_gather("rows of the next batch", {bytes, bytes + sizeof rows})) {
    std::int64_t of_worker;
    std::memcpy(&of_worker, part.data(), sizeof of_worker);
    if (of_worker >= 0) total = total.value_or(0) + of_worker;
  }
  return total;
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
  if (has_strategy() && !in_cross_replica_context())
    throw FailedPrecondition(
        "[DistributedIterator::next] called in a step function; take the batch outside run "
        "and pass it in",
        SourceLocation{});
  using Clock = telemetry::PhaseTimes::Clock;
  const Clock::time_point start = Clock::now();
  std::optional<data::Leaves> own = batches_.next();
  const std::optional<std::int64_t> all_rows = agree_on_rows(own);
  strategy_->count_input_time(Clock::now() - start);
  if (!all_rows) return std::nullopt;
  if (!own) own = require_no_rows();
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
    for (const Tensor& leaf : *own) leaves.push_back(slice_rows(leaf, part));
  }
  if (!no_rows_ && strategy_->workers().size() > 1) {
    no_rows_ = *own;
    for (Tensor& leaf : *no_rows_) leaf = zeros(leaf.shape().with_dim(0, 0), leaf.dtype());
    no_rows_->emplace_back(std::int64_t{0});
  }
  if (!strategy_->local_devices()[0].is_host()) place(batch);
  return batch;
}

const data::Leaves& AnyDistributedIterator::require_no_rows() const {
  require(
      no_rows_.has_value(), SourceLocation{}, "DistributedIterator::next",
      "this worker's data is empty, other workers' is not, and what its batches would look like "
      "is not known; give every worker at least one batch");
  return *no_rows_;
}

}  // namespace lockstep::detail
