// SPDX-License-Identifier: Apache-2.0
#include "data/csv_records.h"

#include <algorithm>

namespace lockstep::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

CsvRecords::CsvRecords(std::string_view text, char delimiter, const CsvPlace& place)
    : left_(text), delimiter_(delimiter), place_(place) {
  if (left_.starts_with(kByteOrderMark)) left_.remove_prefix(kByteOrderMark.size());
}

bool CsvRecords::next(std::vector<std::string_view>& fields) {
  while (left_.starts_with('\n') || left_.starts_with("\r\n")) {
    left_.remove_prefix(left_.find('\n') + 1);
    ++next_line_;
  }
  place_.line = next_line_;
  if (left_.empty()) return false;
  fields.clear();
  unquoted_.clear();
  do {
    fields.push_back(left_.starts_with('"') ? read_quoted() : read_plain());
  } while (at_delimiter());
  return true;
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
  next_line_ += std::count(field.begin(), field.end(), '\n');
  while (!left_.empty() && is_blank(left_.front()) && left_.front() != delimiter_)
    left_.remove_prefix(1);
  return field;
}

std::string_view CsvRecords::read_plain() {
  std::size_t end = 0;
  while (end < left_.size() && left_[end] != delimiter_ && left_[end] != '\n') ++end;
  std::string_view text = left_.substr(0, end);
  left_.remove_prefix(end);
  if (text.ends_with('\r') && (left_.empty() || left_.front() == '\n')) text.remove_suffix(1);
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool CsvRecords::at_delimiter() {
  if (left_.starts_with("\r\n")) left_.remove_prefix(1);
  if (left_.empty() || left_ == "\r") {
    left_ = {};
    return false;
  }
  const char end = left_.front();
  if (end != delimiter_ && end != '\n')
    place_.fail(": expected the field to end after its closing quote, got \"", left_.substr(0, 16),
                '"');
  left_.remove_prefix(1);
  if (end == '\n') ++next_line_;
  return end == delimiter_;
}

}  // namespace lockstep::data
