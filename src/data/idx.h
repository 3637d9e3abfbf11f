// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/idx.h>

#include <string_view>

namespace lockstep::data {

// As the public one, for the call `op`, which knows what to do about a file that is not there.
Tensor read_idx(const std::string& file, std::string_view op, std::string_view advice,
                SourceLocation at);

}  // namespace lockstep::data
