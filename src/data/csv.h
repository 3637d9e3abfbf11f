// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/csv.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv_records.h"

namespace lockstep::data {

// Tables of comma-separated values, brought into the tensors that lockstep/data/csv.h describes.
class CsvReader {
 public:
  // Throws InvalidArgument for options that no table fits. Messages begin with "[op]".
  CsvReader(const CsvOptions& options, std::size_t num_leaves, const char* op, SourceLocation at);

  // Adds the rows of a text, which messages say to be of `file`.
  void read(std::string_view text, std::string_view file);
  // At least one text must have been read.
  Leaves leaves() const;

 private:
  struct Column {
    CsvColumn description;
    std::map<std::string, std::int64_t, std::less<>> categories;
    std::size_t leaf = 0;
  };
  struct Leaf {
    DType dtype = DType::f32;
    std::int64_t width = 0;  // 0: a scalar per row
    std::vector<std::byte> bytes = {};
  };

  void choose_columns(const std::vector<std::string>& names);
  // `missing` unless the description has its own.
  void add_column(CsvColumn description, std::optional<double> missing, std::size_t leaf);
  // Which fields of a file's records the columns are.
  std::vector<std::size_t> fields_of(const std::vector<std::string>& names, bool first_file,
                                     const CsvPlace& place) const;
  void add(const Column& column, std::string_view field, const CsvPlace& place);
  template <class T>
  T value_of(const Column& column, std::string_view field, const CsvPlace& place) const;

  const CsvOptions options_;
  const std::size_t num_leaves_;
  const char* const op_;
  const SourceLocation at_;
  std::size_t num_fields_ = 0;  // of the first file
  std::vector<Column> columns_;
  std::vector<Leaf> leaves_;
  std::int64_t rows_ = 0;
};

}  // namespace lockstep::data
