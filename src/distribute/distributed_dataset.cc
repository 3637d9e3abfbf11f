// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/distributed_dataset.h>

#include <lockstep/base/check.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/rows.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::detail {
namespace {

// The rows of a batch that this process's replicas get: those of global replicas rank * L onwards.
RowRange rows_of_process(std::int64_t rows, int num_replicas, int num_local, int rank) {
  const RowRange first = rows_of_part(rows, num_replicas, rank * num_local);
  const RowRange last = rows_of_part(rows, num_replicas, rank * num_local + num_local - 1);
  return {first.begin, last.end};
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
                                               data::AnyIterator batches)
    : strategy_(std::move(strategy)), batches_(std::move(batches)) {}

std::optional<DealtBatch> AnyDistributedIterator::next() {
  if (has_strategy() && !in_cross_replica_context())
    throw FailedPrecondition(
        "[DistributedIterator::next] called in a step function; take the batch outside run "
        "and pass it in",
        SourceLocation{});
  using Clock = telemetry::PhaseTimes::Clock;
  const Clock::time_point start = Clock::now();
  std::optional<data::Leaves> own = batches_.next();
  strategy_->count_input_time(Clock::now() - start);
  if (!own) return std::nullopt;
  DealtBatch batch;
  batch.rows.global = own->back().item<std::int64_t>();
  own->pop_back();
  const int local = num_local(*strategy_), replicas = strategy_->num_replicas_in_sync();
  const int first_replica = strategy_->workers().rank() * local;
  const std::int64_t first_row =
      rows_of_process(batch.rows.global, replicas, local, strategy_->workers().rank()).begin;
  for (int i = 0; i < local; ++i) {
    RowRange part = rows_of_part(batch.rows.global, replicas, first_replica + i);
    part = {part.begin - first_row, part.end - first_row};
    batch.rows.local.push_back(part.size());
    std::vector<Tensor>& leaves = batch.leaves.emplace_back();
    for (const Tensor& leaf : *own) leaves.push_back(slice_rows(leaf, part));
  }
  return batch;
}

}  // namespace lockstep::detail
