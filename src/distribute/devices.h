// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device/device.h>
#include <lockstep/distribute/options.h>

#include <string>
#include <vector>

namespace lockstep {

// The devices that an options' `devices` names, one or more; "GPU:*" stands for all GPUs, or for the
// CPUs if there is none and that is wanted. Throws "[op] ...": InvalidArgument for names that do not
// parse or repeat, Unavailable for devices that are not there.
std::vector<Device> devices_named(const std::vector<std::string>& names, bool fallback_to_cpu,
                                  const char* op, SourceLocation at);

// Throws InvalidArgument "[op] ..." for options that make no sense.
void check_communication(const CommunicationOptions& options, const char* op, SourceLocation at);

}  // namespace lockstep
