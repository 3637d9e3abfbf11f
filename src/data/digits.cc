// SPDX-License-Identifier: Apache-2.0
#include "data/digits.h"

#include <lockstep/base/log.h>
#include <lockstep/data/digits.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "data/csv.h"
#include "data/file.h"
#include "data/gzip.h"
#include "data/random.h"

namespace lockstep::embedded {
extern const std::span<const unsigned char> digits_csv_gz;
}

namespace lockstep::data {
namespace {

constexpr std::int64_t kRows = 1797, kPixels = 64, kTestRows = 360;
constexpr double kWhite = 16;
constexpr std::size_t kMostBytes = 1 << 22;  // of the text, fifteen times what it has

void require_values(const CsvTable& table, std::string_view file) {
  const auto whole_up_to = [](double value, double most) {
    return value >= 0 && value <= most && value == std::floor(value);
  };
  const auto require_value = [&](std::int64_t row, double value, double most, const char* what) {
    if (!whole_up_to(value, most))
      throw DataLoss(message("data::digits", file, ", line ", row + 1, ": expected ", what,
                             " from 0 to ", most, ", got ", value),
                     SourceLocation{});
  };
  if (table.rows != kRows)
    throw DataLoss(message("data::digits", file, ": expected ", kRows, " lines, got ", table.rows),
                   SourceLocation{});
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t i = 0; i < kPixels; ++i)
      require_value(row, table.at(row, i), kWhite, "a whole number as pixel,");
    require_value(row, table.at(row, kPixels), 9, "a digit as label,");
  }
}

Leaves load_digits() {
  const char* const directory = std::getenv("LOCKSTEP_DATA_DIR");
  if (directory && *directory) {
    const std::filesystem::path path = std::filesystem::path(directory) / "digits.csv.gz";
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored))
      return parse_digits(
          read_file(path, "data::digits", "; unset LOCKSTEP_DATA_DIR for the library's own copy",
                    SourceLocation{}, kMostBytes),
          path.string());
    logging::info("[data::digits] no " + path.string() + "; the library's own copy is used");
  }
  return parse_digits(embedded::digits_csv_gz, "the library's digits.csv.gz");
}

}  // namespace

Leaves parse_digits(std::span<const unsigned char> compressed, std::string_view file) {
  const CsvTable table = parse_csv(gunzip(compressed, file, kMostBytes), kPixels + 1, file);
  require_values(table, file);
  Tensor images = make_tensor<float>(Shape{kRows, kPixels}, [&](std::span<float> pixels) {
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t i = 0; i < kPixels; ++i)
        pixels[static_cast<std::size_t>(row * kPixels + i)] =
            static_cast<float>(table.at(row, i) / kWhite);
  });
  Tensor labels = make_tensor<std::int64_t>(Shape{kRows}, [&](std::span<std::int64_t> values) {
    for (std::int64_t row = 0; row < kRows; ++row)
      values[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(table.at(row, kPixels));
  });
  return {std::move(images), std::move(labels)};
}

std::vector<std::int64_t> digits_split(std::int64_t rows, bool test) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  EpochRandom random(/*seed=*/0, /*epoch=*/0);
  for (std::size_t left = order.size(); left > 1; --left)  // Fisher-Yates, from the end
    std::swap(order[left - 1], order[random.below(left)]);
  const auto border = order.begin() + kTestRows;
  return test ? std::vector(order.begin(), border) : std::vector(border, order.end());
}

Leaves read_digits(std::string_view split, SourceLocation at) {
  require(split == "train" || split == "test", at, "data::digits",
          "expected the split \"train\" or \"test\", got \"", split, '"');
  Leaves leaves = load_digits();
  const std::vector<std::int64_t> rows = digits_split(kRows, split == "test");
  for (Tensor& leaf : leaves) leaf = gather_rows(leaf, rows);
  return leaves;
}

}  // namespace lockstep::data
