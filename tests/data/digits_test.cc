// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/digits.h>

#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "data/digits.h"
#include "data/gzip.h"

namespace lockstep::embedded {
extern const std::span<const unsigned char> digits_csv_gz;
}

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Example {
  Tensor image, label;
};

struct Summary {
  std::vector<std::int64_t> labels;
  std::array<int, 10> counts{};
  double pixels = 0;  // of 0..16
};

Summary summary_of(const Dataset<Example>& dataset) {
  Summary summary;
  for (const Example& example : dataset) {
    EXPECT_EQ(example.image.shape(), Shape{64});
    EXPECT_EQ(example.label.shape(), Shape{});
    for (const float pixel : example.image.data<float>()) {
      EXPECT_GE(pixel, 0);
      EXPECT_LE(pixel, 1);
      summary.pixels += 16 * static_cast<double>(pixel);
    }
    summary.labels.push_back(example.label.data<std::int64_t>()[0]);
    ++summary.counts.at(static_cast<std::size_t>(summary.labels.back()));
  }
  return summary;
}

// Expected values: a Python script that read the file and wrote the documented permutation anew.
TEST(Digits, SplitsAreTheSameForEverybody) {
  const Summary test = summary_of(digits<Example>("test"));
  EXPECT_EQ(test.labels.size(), 360u);
  EXPECT_THAT(test.counts, ElementsAre(31, 37, 27, 44, 37, 40, 42, 33, 34, 35));
  EXPECT_EQ(test.pixels, 111494);
  EXPECT_THAT(std::span(test.labels).first(10), ElementsAre(1, 6, 7, 5, 4, 4, 5, 6, 1, 6));

  const Summary train = summary_of(digits<Example>("train"));
  EXPECT_EQ(train.labels.size(), 1437u);
  EXPECT_THAT(train.counts, ElementsAre(147, 145, 150, 139, 144, 142, 139, 146, 140, 145));
  EXPECT_EQ(train.pixels, 450224);
}

TEST(Digits, SplitsArePartsOfOnePermutation) {
  const std::vector<std::int64_t> test = digits_split(1797, true);
  EXPECT_THAT(std::span(test).first(8), ElementsAre(397, 680, 983, 1700, 225, 1091, 1075, 136));
  std::vector<std::int64_t> all = digits_split(1797, false);
  all.insert(all.end(), test.begin(), test.end());
  std::sort(all.begin(), all.end());
  for (std::int64_t i = 0; i < 1797; ++i) EXPECT_EQ(all.at(static_cast<std::size_t>(i)), i);
}

TEST(Digits, FitTheProgramOfTheReadme) {
  std::int64_t rows = 0, batches = 0;
  for (const Example& batch :
       digits<Example>("train").shuffle({.seed = 7}).batch(128).prefetch(2)) {
    EXPECT_EQ(batch.image.shape(), Shape({batch.label.dim(0), 64}));
    rows += batch.label.dim(0);
    ++batches;
  }
  EXPECT_EQ(rows, 1437);
  EXPECT_EQ(batches, 12);
  for (const auto& [image, label] : digits<std::tuple<Tensor, Tensor>>("test").batch(360))
    EXPECT_EQ(image.shape(), Shape({360, 64}));
}

TEST(Digits, RefuseAnotherSplit) {
  EXPECT_THAT(
      [] { digits<Example>("valid"); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("[data::digits]"), HasSubstr("\"valid\""))));
}

std::string text_of_digits() {
  return gunzip(embedded::digits_csv_gz, "embedded", std::size_t{1} << 20);
}

std::vector<unsigned char> gzip(const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     ("lockstep_digits_" + std::to_string(getpid()) + ".gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  const std::vector<unsigned char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  return bytes;
}

TEST(ParseDigits, RefusesWhatAreNoDigits) {
  const auto refused = [](std::string text) {
    try {
      parse_digits(gzip(text), "my.csv.gz");
    } catch (const DataLoss& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  const std::string good = text_of_digits();
  EXPECT_EQ(refused(good), "accepted");
  EXPECT_THAT(refused(good.substr(0, good.rfind('\n', good.size() - 2) + 1)),
              HasSubstr("my.csv.gz: expected 1797 lines, got 1796"));
  std::string bright = good;
  bright.replace(bright.find(",16,"), 4, ",17,");
  EXPECT_THAT(refused(bright), AllOf(HasSubstr("my.csv.gz, line 2"), HasSubstr("got 17")));
  EXPECT_THAT(refused("0.5" + good.substr(1)), AllOf(HasSubstr("line 1"), HasSubstr("got 0.5")));
  EXPECT_THAT(refused("-1" + good.substr(1)), HasSubstr("got -1"));
  std::string eleven = good;
  eleven.replace(eleven.find('\n') - 1, 1, "11");
  EXPECT_THAT(refused(eleven), AllOf(HasSubstr("line 1"), HasSubstr("label"), HasSubstr("got 11")));
  EXPECT_THAT(refused(std::string(1 << 24, '0')), HasSubstr("more data than expected"));
}

TEST(ReadDigits, PrefersAFileInTheDataDirectory) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("lockstep_data_" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  setenv("LOCKSTEP_DATA_DIR", directory.c_str(), 1);
  EXPECT_EQ(digits<Example>("train").cardinality(), 1437) << "a directory without the file";

  std::string altered = text_of_digits();
  altered.replace(0, 1, "9");
  const std::vector<unsigned char> bytes = gzip(altered);
  const auto write = [&](std::span<const unsigned char> contents) {
    std::ofstream(directory / "digits.csv.gz", std::ios::binary)
        .write(reinterpret_cast<const char*>(contents.data()), std::ssize(contents));
  };
  write(bytes);
  const double pixels =
      summary_of(digits<Example>("train")).pixels + summary_of(digits<Example>("test")).pixels;
  EXPECT_EQ(pixels, 111494 + 450224 + 9);

  write(std::span(bytes).first(1000));
  EXPECT_THAT([] { digits<Example>("train"); },
              ThrowsMessage<DataLoss>(HasSubstr((directory / "digits.csv.gz").string())));
  unsetenv("LOCKSTEP_DATA_DIR");
  std::filesystem::remove_all(directory);
}

// Every tensor has a key of its own, drawn in turn: no others are made between those of two
// batches.
TEST(Digits, ABatchIsGatheredWithoutTensorsForItsRows) {
  auto iterator = digits<Example>("train").shuffle({.seed = 7}).repeat().batch(128).iterator();
  Example batch = *iterator.next();
  const auto allocations = [] { return memory_stats(current_device()).system_allocations; };
  const std::int64_t before = allocations();
  for (int i = 0; i < 30; ++i) {
    const Example next = *iterator.next();
    EXPECT_EQ(next.label.key(), next.image.key() + 1);
    EXPECT_EQ(next.image.key(), batch.image.key() + 2);
    batch = next;
  }
  EXPECT_LE(allocations() - before, 2) << "what one more batch in flight needs";
}

}  // namespace
}  // namespace lockstep::data
