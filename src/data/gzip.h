// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::data {

// The contents of gzip-compressed bytes, of one member after the other. Throws DataLoss, naming `file`, when they are not gzip,
// damaged, cut short, or hold more than `limit` bytes.
std::string gunzip(std::span<const unsigned char> compressed, std::string_view file,
                   std::size_t limit);

}  // namespace lockstep::data
