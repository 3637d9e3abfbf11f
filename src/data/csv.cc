// SPDX-License-Identifier: Apache-2.0
#include "data/csv.h"

#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "data/file.h"
#include "data/gzip.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::size_t kShown = 32;  // characters of a field in a message

std::string shown(std::string_view text) {
  return '"' + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "...\"" : "\"");
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i)
    text += (i ? ", " : "") + shown(names[i]);
  return text + (names.size() > kShown ? ", ..." : "");
}

// Whether a number that f64 does not hold is too small for it: by the power of ten of its first digit.
bool is_tiny(std::string_view number) {
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  std::string_view exponent = number.substr(std::min(e + 1, number.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int32_t power = 0;
  if (std::from_chars(exponent.data(), exponent.data() + exponent.size(), power).ec ==
      std::errc::result_out_of_range)
    return exponent.starts_with('-');
  return power + point - first < 0;
}

// The number that is all of the field; nothing when that is none, or not finite. What is too small is 0;
// f32 by way of f64, so that this holds for it, too.
template <class T>
std::optional<T> number_in(std::string_view field) {
  using Read = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  Read value{};
  const char* const end = field.data() + field.size();
  const auto [stopped, error] = std::from_chars(field.data(), end, value);
  if (stopped != end) return std::nullopt;
  if (error != std::errc()) {
    if (std::is_floating_point_v<T> && error == std::errc::result_out_of_range && is_tiny(field))
      return T{};
    return std::nullopt;
  }
  const T narrow = static_cast<T>(value);
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(narrow)) return std::nullopt;
  return narrow;
}

// Calls f(T{}) with the type of a column.
template <class F>
void with_type(DType dtype, const F& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(std::int32_t{});
    default:
      return f(std::int64_t{});
  }
}

void require_column(const CsvColumn& column, const char* op, SourceLocation at) {
  const bool floating = column.dtype == DType::f32 || column.dtype == DType::f64;
  require(floating || column.dtype == DType::i32 || column.dtype == DType::i64, at, op,
          "expected f32, f64, i32 or i64 for column \"", column.name, "\", got ",
          name_of(column.dtype));
  const double missing = column.missing.value_or(0);
  const double most = column.dtype == DType::i32 ? 0x7fffffff : 0x1p53;
  require(floating || (missing == std::floor(missing) && std::abs(missing) <= most), at, op,
          "column \"", column.name, "\" is ", name_of(column.dtype), ", which cannot hold ",
          missing, " for missing fields");
  require(column.dtype != DType::f32 || !std::isfinite(missing) ||
              std::abs(missing) <= std::numeric_limits<float>::max(),
          at, op, "column \"", column.name, "\" is f32, which cannot hold ", missing,
          " for missing fields");
}

}  // namespace

CsvReader::CsvReader(const CsvOptions& options, std::size_t num_leaves, const char* op,
                     SourceLocation at)
    : options_(options), num_leaves_(num_leaves), op_(op), at_(at) {
  require(options.delimiter != '"' && options.delimiter != '\n' && options.delimiter != '\r', at,
          op, "expected a delimiter that is no quote and no line end");
  require(!options.label || num_leaves == 2, at, op,
          "with a label expected T to hold two tensors, the columns and ", "the label, got ",
          num_leaves);
}

void CsvReader::read(std::string_view text, std::string_view file) {
  CsvRecords records(text, options_.delimiter, {.op = op_, .file = file, .line = 0, .at = at_});
  std::vector<std::string_view> record;
  std::vector<std::string> names;
  bool more = records.next(record);
  if (!more) records.place().fail(": the file is empty");
  if (options_.header) {
    names.assign(record.begin(), record.end());
  } else {
    for (std::size_t i = 0; i < record.size(); ++i) names.push_back(std::to_string(i));
  }
  const bool first_file = columns_.empty();
  if (first_file) choose_columns(names);
  if (first_file) num_fields_ = names.size();
  if (!options_.header && names.size() != num_fields_)
    records.place().fail(": expected ", num_fields_, " fields, as in the first file, got ",
                         names.size());
  const std::vector<std::size_t> fields = fields_of(names, first_file, records.place());
  if (options_.header) more = records.next(record);
  for (; more; more = records.next(record), ++rows_) {
    const CsvPlace& place = records.place();
    if (record.size() != names.size())
      place.fail(": expected ", names.size(), " fields, got ", record.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) add(columns_[i], record[fields[i]], place);
  }
}

std::vector<std::size_t> CsvReader::fields_of(const std::vector<std::string>& names,
                                              bool first_file, const CsvPlace& place) const {
  std::vector<std::size_t> fields;
  for (const Column& column : columns_) {
    const std::string& name = column.description.name;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      if (!options_.header || !first_file)
        place.fail(": expected a column \"", name, "\", got ", names.size(), ": ", list_of(names));
      throw InvalidArgument(message(op_, place.file, " has no column \"", name,
                                    "\"; its columns are ", list_of(names)),
                            at_);
    }
    if (std::find(found + 1, names.end(), name) != names.end())
      place.fail(": there are two columns \"", name, '"');
    fields.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return fields;
}

void CsvReader::choose_columns(const std::vector<std::string>& names) {
  std::vector<CsvColumn> chosen = options_.columns;
  if (chosen.empty())
    for (const std::string& name : names)
      if (!options_.label || name != options_.label->name) chosen.push_back({.name = name});
  require(!chosen.empty(), at_, op_, "expected columns besides the label");
  const bool in_one = options_.label || num_leaves_ == 1;
  require(in_one || chosen.size() == num_leaves_, at_, op_, "expected a T of ", chosen.size(),
          " tensors, one for each column, or of one for all, got ", num_leaves_);
  if (in_one) leaves_.push_back({.width = std::ssize(chosen)});
  for (const CsvColumn& column : chosen) {
    if (!in_one) leaves_.emplace_back();
    add_column(column, options_.missing, leaves_.size() - 1);
  }
  if (!options_.label) return;
  leaves_.emplace_back();
  add_column(*options_.label, std::nullopt, 1);
}

void CsvReader::add_column(CsvColumn description, std::optional<double> missing, std::size_t leaf) {
  if (!description.missing) description.missing = missing;
  require_column(description, op_, at_);
  Column column{.description = description, .categories = {}, .leaf = leaf};
  for (const std::string& category : description.categories)
    require(column.categories.emplace(category, std::ssize(column.categories)).second, at_, op_,
            "column \"", description.name, "\" has two categories ", shown(category));
  Leaf& values = leaves_[leaf];
  const bool alone = columns_.empty() || columns_.back().leaf != leaf;
  require(alone || values.dtype == description.dtype, at_, op_,
          "expected columns of one dtype in one tensor, got ", name_of(values.dtype), " and, of \"",
          description.name, "\", ", name_of(description.dtype));
  values.dtype = description.dtype;
  columns_.push_back(std::move(column));
}

template <class T>
T CsvReader::value_of(const Column& column, std::string_view field, const CsvPlace& place) const {
  const CsvColumn& description = column.description;
  const auto fail = [&](const auto&... parts) {
    place.fail(", column \"", description.name, "\": ", parts...);
  };
  const auto category = column.categories.find(field);
  if (category != column.categories.end()) return static_cast<T>(category->second);
  if (field.empty() || (!options_.na_value.empty() && field == options_.na_value)) {
    if (!description.missing) fail("the field is missing; .missing can say what stands for it");
    return static_cast<T>(*description.missing);
  }
  if (!column.categories.empty())
    fail("expected one of ", list_of(description.categories), ", got ", shown(field));
  const std::optional<T> value = number_in<T>(field);
  if (!value) fail("expected a number of ", name_of(dtype_of<T>), ", got ", shown(field));
  return *value;
}

void CsvReader::add(const Column& column, std::string_view field, const CsvPlace& place) {
  Leaf& leaf = leaves_[column.leaf];
  with_type(leaf.dtype, [&]<class T>(T) {
    const T value = value_of<T>(column, field, place);
    const std::size_t end = leaf.bytes.size();
    leaf.bytes.resize(end + sizeof value);
    std::memcpy(leaf.bytes.data() + end, &value, sizeof value);
  });
}

Leaves CsvReader::leaves() const {
  Leaves tensors;
  for (const Leaf& leaf : leaves_)
    with_type(leaf.dtype, [&]<class T>(T) {
      const Shape shape = leaf.width ? Shape{rows_, leaf.width} : Shape{rows_};
      tensors.push_back(make_tensor<T>(shape, [&](std::span<T> values) {
        if (!values.empty()) std::memcpy(values.data(), leaf.bytes.data(), leaf.bytes.size());
      }));
    });
  return tensors;
}

Leaves read_csv(const std::vector<std::string>& files, const CsvOptions& options,
                std::size_t leaves, SourceLocation at) {
  constexpr const char* kOp = "from_csv";
  require(!files.empty(), at, kOp, "expected at least one file");
  CsvReader reader(options, leaves, kOp, at);
  for (const std::string& file : files) {
    const std::vector<unsigned char> bytes = read_file(file, kOp, "", at);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with(kGzip))
      reader.read(gunzip(bytes, file, std::numeric_limits<std::size_t>::max()), file);
    else
      reader.read(text, file);
  }
  return reader.leaves();
}

Leaves read_csv_text(std::string_view text, const CsvOptions& options, std::size_t leaves,
                     SourceLocation at) {
  CsvReader reader(options, leaves, "from_csv_text", at);
  reader.read(text, "the text");
  return reader.leaves();
}

}  // namespace lockstep::data
