// SPDX-License-Identifier: Apache-2.0
#include "data/csv.h"

#include <lockstep/base/check.h>

#include <charconv>
#include <cmath>

namespace lockstep::data {
namespace {

struct Place {
  std::string_view file;
  std::int64_t line = 0;
};

template <class... Parts>
[[noreturn]] void fail(const Place& place, const Parts&... parts) {
  throw DataLoss(message("parse_csv", place.file, ", line ", place.line, ": ", parts...),
                 SourceLocation{});
}

double parse_number(std::string_view field, const Place& place) {
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [stopped, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value))
    fail(place, "expected a number, got \"", field.substr(0, 32), '"');
  return value;
}

void parse_line(std::string_view line, const Place& place, CsvTable& table) {
  std::int64_t fields = 0;
  for (std::size_t begin = 0; begin <= line.size(); ++fields) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    if (fields == table.columns) fail(place, "more than ", table.columns, " fields");
    table.values.push_back(parse_number(line.substr(begin, end - begin), place));
    begin = end + 1;
  }
  if (fields != table.columns) fail(place, "expected ", table.columns, " fields, got ", fields);
  ++table.rows;
}

}  // namespace

CsvTable parse_csv(std::string_view text, std::int64_t columns, std::string_view file) {
  CsvTable table{.rows = 0, .columns = columns, .values = {}};
  Place place{.file = file};
  while (!text.empty()) {
    ++place.line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    parse_line(line, place, table);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return table;
}

}  // namespace lockstep::data
