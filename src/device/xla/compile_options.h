// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace lockstep::xla {

// XLA's CompileOptionsProto, serialised, for a program that runs as one replica on each of the
// devices with these ids, in that order, without partitioning. On a CPU that stands in for TPUs,
// maximum and minimum are NaN where an operand is, as they are on TPUs.
std::string compile_options(std::span<const int> device_ids, bool on_cpu = false);

}  // namespace lockstep::xla
