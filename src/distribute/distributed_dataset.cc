// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/distributed_dataset.h>

#include <lockstep/base/check.h>
#include <lockstep/distribute/input_context.h>
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

Tensor without_rows(const Tensor& leaf) { return zeros(leaf.shape().with_dim(0, 0), leaf.dtype()); }

// Leaves of zero rows; nothing where a spec leaves other dims open.
std::optional<data::Leaves> without_rows(const data::ElementSpec& spec) {
  data::Leaves leaves;
  for (const data::LeafSpec& leaf : spec) {
    std::vector<std::int64_t> dims = leaf.dims;
    if (dims.empty()) return std::nullopt;
    dims[0] = 0;
    if (std::count(dims.begin(), dims.end(), -1)) return std::nullopt;
    leaves.push_back(zeros(Shape(dims), leaf.dtype));
  }
  return leaves;
}

// Of what a process's dataset gives: dealt batches end with the count of their rows.
std::optional<data::Leaves> without_rows(Dealing dealing, const data::ElementSpec& spec) {
  const bool counted = dealing == Dealing::rows_of_global_batches;
  return without_rows(data::ElementSpec(spec.begin(), spec.end() - (counted ? 1 : 0)));
}

int num_local(const StrategyInterface& strategy) {
  return static_cast<int>(strategy.local_devices().size());
}

}  // namespace

AnyDistributedDataset::AnyDistributedDataset(std::shared_ptr<StrategyInterface> strategy,
                                             Dealing dealing, const data::AnyDataset& dataset,
                                             SourceLocation at)
    : strategy_(std::move(strategy)),
      name_{strategy_->next_dataset_number(), at},
      dealing_(dealing),
      dealt_([&] {
        const char* const op = dealing == Dealing::batches_of_replicas
                                   ? "Strategy::distribute_datasets_from_function"
                                   : "Strategy::distribute_dataset";
        require_outside_replicas(*strategy_, op, at);
        dataset.require_batched(op, at);
        if (dealing == Dealing::batches_of_replicas) return dataset;
        const auto own_rows = [replicas = strategy_->num_replicas_in_sync(),
                               local = num_local(*strategy_),
                               rank = strategy_->workers().rank()](std::int64_t rows) {
          return rows_of_process(rows, replicas, local, rank);
        };
        return dataset.deal(own_rows, op, at);
      }()) {}

std::int64_t AnyDistributedDataset::cardinality() const {
  const std::int64_t elements = dealt_.cardinality();
  if (dealing_ == Dealing::rows_of_global_batches || elements < 0) return elements;
  const std::int64_t local = num_local(*strategy_);
  return (elements + local - 1) / local;
}

std::string AnyDistributedDataset::describe() const {
  const bool whole = dealing_ == Dealing::batches_of_replicas;
  return dealt_.describe() + (whole ? ", a batch for each of " : ", dealt over ") +
         std::to_string(whole ? num_local(*strategy_) : strategy_->num_replicas_in_sync()) +
         " replicas; this process is worker " + std::to_string(strategy_->workers().rank()) +
         " of " + std::to_string(strategy_->workers().size());
}

AnyDistributedIterator::AnyDistributedIterator(std::shared_ptr<StrategyInterface> strategy,
                                               DatasetName name, Dealing dealing,
                                               data::AnyIterator batches,
                                               const std::optional<data::ElementSpec>& spec)
    : strategy_(std::move(strategy)),
      name_(name),
      dealing_(dealing),
      batches_(std::move(batches)),
      no_rows_(spec && strategy_->workers().size() > 1 ? without_rows(dealing, *spec)
                                                       : std::nullopt) {}

std::optional<AnyDistributedIterator::OwnBatches> AnyDistributedIterator::take() {
  return dealing_ == Dealing::rows_of_global_batches ? take_rows() : take_batches();
}

// The next global batch's rows, which tells how its own rows are dealt.
std::optional<AnyDistributedIterator::OwnBatches> AnyDistributedIterator::take_rows() {
  std::optional<data::Leaves> rows = batches_.next();
  if (!rows) return std::nullopt;
  OwnBatches own;
  own.global_rows = rows->back().item<std::int64_t>();
  rows->pop_back();
  const int local = num_local(*strategy_), replicas = strategy_->num_replicas_in_sync();
  const int rank = strategy_->workers().rank();
  const std::int64_t first_row = rows_of_process(own.global_rows, replicas, local, rank).begin;
  for (int i = 0; i < local; ++i) {
    RowRange part = rows_of_part(own.global_rows, replicas, rank * local + i);
    part = {part.begin - first_row, part.end - first_row};
    data::Leaves& leaves = own.of_replicas.emplace_back();
    for (const Tensor& leaf : *rows) leaves.push_back(slice_rows(leaf, part));
  }
  return own;
}

// The next batch of each replica; at the end the last ones have none.
std::optional<AnyDistributedIterator::OwnBatches> AnyDistributedIterator::take_batches() {
  OwnBatches own;
  for (int i = 0; i < num_local(*strategy_); ++i) {
    std::optional<data::Leaves> batch = batches_.next();
    if (!batch && i == 0) return std::nullopt;
    if (batch)
      for (const Tensor& leaf : *batch)
        require(leaf.rank() > 0 && leaf.dim(0) == (*batch)[0].dim(0), name_.at,
                "DistributedIterator::next",
                "expected batches, whose leaves have as many rows, got ", leaf.shape(), " beside ",
                (*batch)[0].shape(), "; call batch(...)");
    data::Leaves& leaves = own.of_replicas.emplace_back();
    for (const Tensor& leaf : batch ? *batch : own.of_replicas[0])
      leaves.push_back(batch ? leaf : without_rows(leaf));
  }
  return own;
}

// This worker's next batches, and the rows of all workers in this step: none when no worker has any
// more.
std::optional<AnyDistributedIterator::OwnBatches> AnyDistributedIterator::next_of_worker(
    std::optional<std::int64_t>& rows) {
  WorkerGroup& workers = strategy_->workers();
  std::optional<OwnBatches> own;
  const auto own_rows = [&] {
    std::int64_t sum = 0;
    for (const data::Leaves& leaves : own->of_replicas) sum += leaves[0].dim(0);
    return sum;
  };
  if (workers.size() == 1) {
    own = take();
    if (own) rows = own_rows();
    return own;
  }
  std::exception_ptr failure;
  try {
    own = take();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::string call = "batch " + std::to_string(steps_) + " of epoch " +
                           std::to_string(batches_.epoch()) + " of distributed dataset " +
                           std::to_string(name_.number);
  const auto all = workers.all_gather(
      call,
      failure ? BatchNews::of_failure(failure)
      : own   ? BatchNews::of(own->of_replicas[0], own_rows(), own->global_rows, steps_ == 0)
              : BatchNews::of_end(),
      name_.at);
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
  padded_rows_ =
      std::max(padded_rows_, *std::max_element(batch.rows.local.begin(), batch.rows.local.end()));
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
  std::optional<OwnBatches> own = next_of_worker(all_rows);
  strategy_->count_input_time(Clock::now() - start);
  if (!all_rows) return std::nullopt;
  const auto devices = strategy_->local_devices();
  if (!own) {
    ensure(no_rows_.has_value(), "DistributedIterator::next", "a batch without rows has no shape");
    own = OwnBatches{std::vector<data::Leaves>(devices.size(), *no_rows_)};
  }
  DealtBatch batch;
  batch.leaves = std::move(own->of_replicas);
  batch.rows.global = *all_rows;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    batch.rows.local.push_back(batch.leaves[i][0].dim(0));
    if (devices[i].is_host() || devices[i].kind == DeviceKind::xla) continue;
    for (Tensor& leaf : batch.leaves[i]) leaf = copy_to(leaf, devices[i]);
  }
  if (!no_rows_ && strategy_->workers().size() > 1) {
    no_rows_.emplace();
    for (const Tensor& leaf : batch.leaves[0]) no_rows_->push_back(without_rows(leaf));
  }
  if (devices[0].kind == DeviceKind::xla) place(batch);
  return batch;
}

}  // namespace lockstep::detail

namespace lockstep {

std::int64_t InputContext::get_per_replica_batch_size(std::int64_t global_batch_size,
                                                      SourceLocation at) const {
  require(global_batch_size % num_replicas_in_sync == 0, at,
          "InputContext::get_per_replica_batch_size", "expected a global batch size that the ",
          num_replicas_in_sync, " replicas divide, got ", global_batch_size);
  return global_batch_size / num_replicas_in_sync;
}

}  // namespace lockstep
