// SPDX-License-Identifier: Apache-2.0
#include "data/digits.h"

#include <lockstep/data/digits.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <cmath>
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

// Pixels from 0 to 16 as they are in the file, and labels, are what they should be.
void require_values(const Leaves& leaves, std::string_view file) {
  const auto require_value = [&](std::size_t row, double value, double most, const char* what) {
    if (value >= 0 && value <= most && value == std::floor(value)) return;
    throw DataLoss(message("data::digits", file, ", line ", row + 1, ": expected ", what,
                           " from 0 to ", most, ", got ", value),
                   SourceLocation{});
  };
  if (leaves[0].dim(0) != kRows)
    throw DataLoss(
        message("data::digits", file, ": expected ", kRows, " lines, got ", leaves[0].dim(0)),
        SourceLocation{});
  if (leaves[0].dim(1) != kPixels)
    throw DataLoss(message("data::digits", file, ": expected ", kPixels + 1,
                           " fields in each line, got ", leaves[0].dim(1) + 1),
                   SourceLocation{});
  const std::span<const float> pixels = leaves[0].data<float>();
  for (std::size_t i = 0; i < pixels.size(); ++i)
    require_value(i / kPixels, pixels[i], kWhite, "a whole number as pixel,");
  const std::span<const std::int64_t> labels = leaves[1].data<std::int64_t>();
  for (std::size_t row = 0; row < labels.size(); ++row)
    require_value(row, static_cast<double>(labels[row]), 9, "a digit as label,");
}

Leaves load_digits() {
  if (const auto path = find_in_data_dir("digits.csv.gz", "data::digits"))
    return parse_digits(
        read_file(*path, "data::digits", "; unset LOCKSTEP_DATA_DIR for the library's own copy",
                  SourceLocation{}, kMostBytes),
        path->string());
  return parse_digits(embedded::digits_csv_gz, "the library's digits.csv.gz");
}

}  // namespace

Leaves parse_digits(std::span<const unsigned char> compressed, std::string_view file) {
  CsvReader reader(
      {.header = false, .label = CsvColumn{.name = std::to_string(kPixels), .dtype = DType::i64}},
      2, "data::digits", SourceLocation{});
  reader.read(gunzip(compressed, file, kMostBytes), file);
  const Leaves leaves = reader.leaves();
  require_values(leaves, file);
  Tensor images = make_tensor<float>(leaves[0].shape(), [&](std::span<float> pixels) {
    std::ranges::transform(leaves[0].data<float>(), pixels.begin(),
                           [](float pixel) { return static_cast<float>(pixel / kWhite); });
  });
  return {std::move(images), leaves[1]};
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
