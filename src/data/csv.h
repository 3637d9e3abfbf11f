// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::data {

// Rows of numbers after each other.
struct CsvTable {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> values;

  double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

// Numbers separated by commas, `columns` in each line; lines end in "\n" or "\r\n", the last may
// lack it. Whatever the locale, the decimal separator is a point. Throws DataLoss, naming `file`
// and the line, for anything else, NaN and infinity included.
CsvTable parse_csv(std::string_view text, std::int64_t columns, std::string_view file);

}  // namespace lockstep::data
