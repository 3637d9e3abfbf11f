// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/distribute/strategy.h>

#include <cstdint>
#include <string>

namespace lockstep {

struct TPUOptions {
  // The PJRT plugin, a shared library. Empty: $LOCKSTEP_PJRT_CPU_PLUGIN, $TPU_LIBRARY_PATH, libtpu.so
  // in the usual places.
  std::string plugin = {};
  // Replicas, one per core. 0: all cores; on a plugin that stands in on CPUs, one per CPU up to 8.
  int replicas = 0;
  // Of all random numbers drawn in the strategy's scope and replicas.
  std::uint64_t seed = 0;
};

// One replica per TPU core of this machine, by way of a PJRT plugin; any plugin will do, for example
// the CPU plugin of the Python package xla-cpu-pjrt, to try a program without TPUs.
//
// The step function is called once per replica and step, as with the other strategies, but one after
// the other, and its ops do not compute: they are written down as a program, which is compiled when
// it is new and then run on all cores at once. Hence in a step
//   - a tensor has no value yet: reading one (item, data) throws FailedPrecondition. Return tensors,
//     and let replicas differ by select instead of if; replicas whose programs differ throw
//     InvalidArgument with the first instruction that does;
//   - what the step captures is read anew each time; numbers and tensors that change do not cause
//     compilations, but shapes that do;
//   - merge_call is Unimplemented.
// The last, short batch of a distributed dataset is padded with zero rows to the size of the others;
// compute_average_loss and metrics leave these out, a mean of your own would see them. Metrics know them
// by the first axis: a tensor of another number of rows, as of tokens flattened into rows, counts with
// its padding, unless weights are 0 there (metrics/metric.h). Labels are not checked: the loss of one out
// of range is NaN.
//
// When a step fails, variables keep the values that they had before it, unless the device itself
// fails in the middle, after which they say so.
class LOCKSTEP_EXPORT TPUStrategy : public Strategy {
 public:
  // Throws Unavailable, naming the places searched, without a plugin or without TPUs, and
  // InvalidArgument for more replicas than there are cores.
  explicit TPUStrategy(const TPUOptions& options = {},
                       SourceLocation at = SourceLocation::current());
};

}  // namespace lockstep
