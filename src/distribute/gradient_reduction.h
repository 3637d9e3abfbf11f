// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/comm/communicator.h>
#include <lockstep/replica/replica_context.h>

#include <cstdint>
#include <vector>

#include "distribute/gradient_plan.h"

namespace lockstep {

// A replica's part in one reduction: gradients collect in the replica's arenas; a bucket whose
// gradients are all there is submitted at once; the sums appear in arenas that all local replicas
// share.
class ArenaReduction final : public GradientReduction {
 public:
  // `skip` may be undefined: no vote. `commit` is the key of the commit point's collective.
  ArenaReduction(GradientPlan& plan, std::span<const Variable> variables,
                 Communicator& communicator, std::uint64_t run, const Tensor& skip,
                 CollectiveKey commit);

  Buffer place(std::size_t index) override;
  void ready(std::size_t index, const Tensor& gradient) override;
  ReducedGradients finish() override;

 private:
  void submit(std::size_t bucket);
  void check(std::size_t index, const Tensor& gradient) const;

  GradientPlan& plan_;
  const std::span<const Variable> variables_;
  Communicator& communicator_;
  const CollectiveKey commit_;
  const GradientPlan::Memory memory_;
  std::vector<std::size_t> order_;  // in which gradients became ready; only where the plan asks
  bool note_order_ = false;
  std::vector<std::size_t> missing_;   // gradients, by bucket
  std::vector<std::int32_t> verdict_;  // by variable: used here; last: skip votes. Summed at commit
  std::vector<std::int32_t> agreed_;
  std::vector<Pending> pending_;  // after the buffers: destroyed before them
};

}  // namespace lockstep
