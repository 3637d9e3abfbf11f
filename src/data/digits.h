// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/element.h>

#include <span>
#include <string_view>

namespace lockstep::data {

// Images f32 [1797, 64] and labels i64 [1797], in the order of the file, from the bytes of a
// digits.csv.gz. Throws DataLoss, naming `file` and where possible the line, for anything else.
Leaves parse_digits(std::span<const unsigned char> compressed, std::string_view file);

// Which rows are in a split of `rows` rows, as data::digits documents.
std::vector<std::int64_t> digits_split(std::int64_t rows, bool test);

}  // namespace lockstep::data
