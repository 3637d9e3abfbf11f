// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

// Where in which table something stands, for messages.
struct CsvPlace {
  std::string_view op, file;
  std::int64_t line = 0;
  SourceLocation at;

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw DataLoss(message(op, file, ", line ", line, parts...), at);
  }
};

// The records of comma-separated text. Lines end in "\n", "\r\n" or "\r", the last may lack it; those
// of nothing but blanks are passed over. A field that begins with a quote ends with one, holds
// delimiters and line ends as they are, and quotes as two. Blanks around fields are left out, those
// within quotes are not; a byte order mark is.
class CsvRecords {
 public:
  // `text` must outlive it. Failures are DataLoss that names the op, the file and the line.
  CsvRecords(std::string_view text, char delimiter, const CsvPlace& place);

  // Reads the next record, whose fields last until the one after it; false at the end.
  bool next(std::vector<std::string_view>& fields);
  // Of the record read last: the line on which it begins.
  const CsvPlace& place() const { return place_; }

 private:
  // Passes over a line end if one is next.
  bool take_line_end();
  void skip_blanks();
  std::string_view read_quoted();
  std::string_view read_plain();
  // Passes over what ends a field; true when the record goes on.
  bool at_delimiter();

  std::string_view left_;
  char delimiter_;
  CsvPlace place_;
  std::int64_t next_line_ = 1;
  std::deque<std::string> unquoted_;  // what the record's quoted fields say
};

}  // namespace lockstep::data
