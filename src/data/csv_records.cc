// SPDX-License-Identifier: Apache-2.0
#include "data/csv_records.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }

}  // namespace

CsvRecords::CsvRecords(std::string_view text, char delimiter, const CsvPlace& place)
    : left_(text), delimiter_(delimiter), place_(place) {
  if (left_.starts_with(kByteOrderMark)) left_.remove_prefix(kByteOrderMark.size());
}

bool CsvRecords::next(std::vector<std::string_view>& fields) {
  do skip_blanks();
  while (take_line_end());
  place_.line = next_line_;
  if (left_.empty()) return false;
  fields.clear();
  unquoted_.clear();
  do {
    skip_blanks();
    fields.push_back(left_.starts_with('"') ? read_quoted() : read_plain());
  } while (at_delimiter());
  return true;
}

bool CsvRecords::take_line_end() {
  if (left_.empty() || !is_line_end(left_.front())) return false;
  left_.remove_prefix(left_.starts_with("\r\n") ? 2 : 1);
  ++next_line_;
  return true;
}

void CsvRecords::skip_blanks() {
  while (!left_.empty() && is_blank(left_.front()) && left_.front() != delimiter_)
    left_.remove_prefix(1);
}

std::string_view CsvRecords::read_quoted() {
  std::string& field = unquoted_.emplace_back();
  left_.remove_prefix(1);
  for (;;) {
    const std::size_t quote = left_.find('"');
    if (quote == std::string_view::npos) place_.fail(": a quote is opened and not closed");
    field += left_.substr(0, quote);
    left_.remove_prefix(quote + 1);
    if (!left_.starts_with('"')) break;
    field += '"';
    left_.remove_prefix(1);
  }
  for (std::size_t i = 0; i < field.size(); ++i)
    next_line_ += is_line_end(field[i]) && !std::string_view(field).substr(i).starts_with("\r\n");
  skip_blanks();
  return field;
}

std::string_view CsvRecords::read_plain() {
  std::size_t end = 0;
  while (end < left_.size() && left_[end] != delimiter_ && !is_line_end(left_[end])) ++end;
  std::string_view text = left_.substr(0, end);
  left_.remove_prefix(end);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool CsvRecords::at_delimiter() {
  if (left_.empty() || take_line_end()) return false;
  if (left_.front() != delimiter_)
    place_.fail(": expected the field to end after its closing quote, got \"", left_.substr(0, 16),
                '"');
  left_.remove_prefix(1);
  return true;
}

}  // namespace lockstep::data
