// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/communicator.h>
#include <lockstep/replica/replica_context.h>

#include <cstdint>
#include <vector>

#include "distribute/baton.h"
#include "distribute/bucket_streams.h"
#include "distribute/gradient_plan.h"
#include "replica/expected_gradients.h"

namespace lockstep {

// How a replica reaches the others: on the host, and from accelerators in their streams, too.
struct ReplicaLinks {
  Communicator& host;
  Communicator* streams = nullptr;  // null: CPUs, or no other replica
  Device device;
};

// A replica's part in one reduction: gradients collect in the replica's arenas; a bucket whose
// gradients are all there is submitted at once. The sums appear in arenas that all local replicas
// share; on accelerators in place of the gradients, and buckets are submitted in the plan's order,
// which is that of the streams of all replicas.
class ArenaReduction final : public GradientReduction {
 public:
  // `commit` is the key of the commit point's collective, at which the replica's `votes` to skip the
  // step are taken. `baton` may be null.
  ArenaReduction(GradientPlan& plan, ExpectedGradients expected, const ReplicaLinks& links,
                 int local_replica, Baton* baton, std::uint64_t run, CollectiveKey commit,
                 Tensor& votes);

  Buffer place(std::size_t index) override;
  void ready(std::size_t index, const Tensor& gradient) override;
  void ready(std::size_t index, const IndexedSlices& gradient) override;
  ReducedGradients finish() override;

 private:
  void submit_complete(std::size_t bucket);
  void submit(std::size_t bucket);
  // How many rows this replica has of each variable that is reduced by them; and all replicas' rows.
  void count_rows();
  void gather_rows();
  ReducedGradients sums() const;

  GradientPlan& plan_;
  ExpectedGradients expected_;
  const ReplicaLinks links_;
  const int local_replica_;
  BucketStreams streams_;
  Baton* const baton_;
  const CollectiveKey commit_;
  Tensor& votes_;
  const GradientPlan::Memory memory_;
  std::vector<std::int64_t> order_;  // in which gradients became ready, while the layout is a guess
  std::vector<std::size_t> missing_;  // gradients, by bucket
  std::size_t next_bucket_ = 0;       // to submit, where there are streams
  // By variable: used here; then skip votes; then, by layout_->by_rows, a count of rows by rank. Summed
  // at commit.
  std::vector<std::int32_t> verdict_;
  std::vector<std::int32_t> agreed_;
  std::vector<IndexedSlices> rows_;  // by layout_->by_rows: this replica's, then everybody's
  std::vector<Pending> pending_;     // after the buffers: destroyed before them
};

}  // namespace lockstep
