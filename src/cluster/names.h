// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cluster {

// Whether a job may have this name: letters, digits and -_. alone, so that messages may show it.
bool is_job_name(std::string_view name);

// What is wrong with `address` as host:port, as the end of a sentence; empty when nothing is.
std::string fault_of_address(std::string_view address);

}  // namespace lockstep::cluster
