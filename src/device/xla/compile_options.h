// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace lockstep::xla {

// XLA's CompileOptionsProto, serialised, for a program that runs as one replica on each of the
// devices with these ids, in that order, without partitioning.
std::string compile_options(std::span<const int> device_ids);

}  // namespace lockstep::xla
