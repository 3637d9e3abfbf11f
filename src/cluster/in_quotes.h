// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cluster {

// Text of unknown origin made fit for a message: in quotes, escaped to printable ASCII, cut to a
// length that can be read.
std::string in_quotes(std::string_view text);

}  // namespace lockstep::cluster
