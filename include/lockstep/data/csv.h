// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/from_tensors.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

struct CsvColumn {
  std::string name = {};  // in the header; without a header the number of the field: "0", "1", ...
  DType dtype = DType::f32;  // f32, f64, i32 or i64
  // Stands for fields that are missing, as CsvOptions::missing.
  std::optional<double> missing = {};
  // The field is text, one of these, and becomes its place in the list. Fields that would be missing
  // are not where they are in it: "" is for empty ones.
  std::vector<std::string> categories = {};
};

struct CsvOptions {
  bool header = true;                   // the first line of each file names the columns
  std::vector<CsvColumn> columns = {};  // which, in this order; empty: all but the label, as f32
  std::optional<CsvColumn> label = {};  // the column that becomes the label
  // Stands for missing fields, but not for a label's, which only its own `missing` does; nothing: they
  // are an error.
  std::optional<double> missing = {};
  std::string na_value = {};  // fields of this text are missing, as empty ones are
  char delimiter = ',';
};

// The tensors behind from_csv(): for T of `leaves` tensors, with rows as their first axis.
LOCKSTEP_EXPORT Leaves read_csv(const std::vector<std::string>& files, const CsvOptions& options,
                                std::size_t leaves, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Leaves read_csv_text(std::string_view text, const CsvOptions& options,
                                     std::size_t leaves,
                                     SourceLocation at = SourceLocation::current());

namespace detail {
template <class T>
Dataset<T> csv_rows(const Leaves& leaves, SourceLocation at) {
  return from_tensor_slices(with_leaves(T{}, std::span<const Tensor>(leaves)), at);
}
}  // namespace detail

// The rows of tables of comma-separated values (RFC 4180: fields may be quoted), plain or gzipped,
// those of one file after the other's. What T holds decides the form:
//
//   struct Row { Tensor features, label; };  from_csv<Row>({"a.csv"}, {.label = CsvColumn{"y"}})
//     the columns as one tensor [columns], and the label, a scalar;
//   from_csv<Tensor>({"a.csv"})   one tensor [columns];
//   struct Row { Tensor age, income, ...; };  a scalar per column, each of its own dtype.
//
// Numbers have a decimal point whatever the locale, and are 0 where they are too small for the dtype.
// Blanks around fields do not count, nor do lines that are empty or of blanks; a line ends in "\n",
// "\r\n" or "\r". All is read and converted at once, so that rows are shuffled, dealt and resumed as
// those of from_tensor_slices.
//
// Throws Unavailable for a file that cannot be read; InvalidArgument for a column that the header
// lacks, other dtypes, columns of several dtypes in one tensor, where they are not as many as T's
// tensors, for `missing` that the dtype does not hold, and a category given twice; DataLoss, naming
// file, line and column, for a field that is no number (NaN and infinity are none) or too large for the
// dtype, a missing one that nothing stands for, lines of other lengths, an open quote, an empty file,
// damaged gzip.
template <class T>
Dataset<T> from_csv(const std::vector<std::string>& files, const CsvOptions& options = {},
                    SourceLocation at = SourceLocation::current()) {
  static_assert(FixedNest<T> && TensorNest<T>,
                "from_csv<T>: T must hold a fixed number of tensors");
  return detail::csv_rows<T>(
      read_csv(files, options, static_cast<std::size_t>(detail::leaf_count<T>()), at), at);
}
// The same of a text in memory.
template <class T>
Dataset<T> from_csv_text(std::string_view text, const CsvOptions& options = {},
                         SourceLocation at = SourceLocation::current()) {
  static_assert(FixedNest<T> && TensorNest<T>,
                "from_csv_text<T>: T must hold a fixed number of tensors");
  return detail::csv_rows<T>(
      read_csv_text(text, options, static_cast<std::size_t>(detail::leaf_count<T>()), at), at);
}

}  // namespace lockstep::data
