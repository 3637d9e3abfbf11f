// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/moving_average.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/replica/context.h>

namespace lockstep::nn {

void assign_moving_average(Variable average, const Tensor& value, double decay, SourceLocation at) {
  constexpr const char* kCall = "assign_moving_average";
  require(decay >= 0 && decay <= 1, at, kCall, "expected a decay from 0 to 1, got ", decay);
  require(value.defined() && value.shape() == average.shape() && value.dtype() == average.dtype(),
          at, kCall, "expected a value like the variable '", average.name(), "', ",
          name_of(average.dtype()), average.shape(), ", got ", value);
  const RecorderScope suspended(nullptr);
  ReplicaContext* const replica = get_replica_context();
  const Tensor now = replica ? replica->all_reduce(ReduceOp::mean, value, at) : value;
  average.assign(average.read(at) * decay + now * (1 - decay), at);
}

}  // namespace lockstep::nn
