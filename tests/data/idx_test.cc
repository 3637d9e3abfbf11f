// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/fashion_mnist.h>
#include <lockstep/data/idx.h>

#include <gmock/gmock.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/errors.h"

namespace lockstep::data {
namespace {

using lockstep::testing::throws;
using ::testing::ElementsAre;

// Files made by hand, in a folder of their own.
class Idx : public ::testing::Test {
 protected:
  ~Idx() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string zip(const std::string& name, const std::string& bytes) {
    const std::string path = (folder_ / name).string();
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }
  Tensor read(const std::string& bytes) { return read_idx(write("case", bytes)); }

  const std::filesystem::path folder_ = [] {
    std::string name = ::testing::TempDir() + "lockstep-idx-XXXXXX";
    return std::filesystem::path(mkdtemp(name.data()));
  }();
};

// The bytes that numbers are, one each.
std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// The start of a file, whose extents are below 256.
std::string header(int type, std::initializer_list<int> dims) {
  std::string text = bytes({0, 0, type, static_cast<int>(dims.size())});
  for (const int dim : dims) text += bytes({0, 0, 0, dim});
  return text;
}

TEST_F(Idx, EveryElementType) {
  const Tensor u8 = read(header(0x08, {2, 3}) + bytes({0, 1, 2, 127, 128, 255}));
  EXPECT_EQ(u8.shape(), Shape({2, 3}));
  EXPECT_THAT(u8.to_vector<std::uint8_t>(), ElementsAre(0, 1, 2, 127, 128, 255));
  EXPECT_THAT(read(header(0x09, {3}) + bytes({0x80, 0xFF, 0x7F})).to_vector<std::int32_t>(),
              ElementsAre(-128, -1, 127));
  EXPECT_THAT(read(header(0x0B, {3}) + bytes({0x80, 0x00, 0xFF, 0xFE, 0x01, 0x02}))
                  .to_vector<std::int32_t>(),
              ElementsAre(-32768, -2, 258));
  EXPECT_THAT(read(header(0x0C, {2}) + bytes({0x80, 0, 0, 0, 0x01, 0x02, 0x03, 0x04}))
                  .to_vector<std::int32_t>(),
              ElementsAre(INT32_MIN, 0x01020304));
  EXPECT_THAT(
      read(header(0x0D, {2}) + bytes({0x3F, 0xC0, 0, 0, 0xC0, 0x20, 0, 0})).to_vector<float>(),
      ElementsAre(1.5f, -2.5f));
  EXPECT_THAT(
      read(header(0x0E, {1}) + bytes({0x3F, 0xF8, 0, 0, 0, 0, 0, 0x01})).to_vector<double>(),
      ElementsAre(1.5 + 0x1p-52));
}

TEST_F(Idx, EveryRank) {
  EXPECT_EQ(read(header(0x08, {}) + bytes({7})).shape(), Shape{});
  EXPECT_EQ(read(header(0x08, {0, 28, 28})).shape(), Shape({0, 28, 28}));
  const Tensor eight = read(header(0x08, {1, 2, 1, 2, 1, 2, 1, 1}) + std::string(8, 'x'));
  EXPECT_EQ(eight.shape(), Shape({1, 2, 1, 2, 1, 2, 1, 1}));
  EXPECT_THAT(
      [&] {
        read(header(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "x");
      },
      throws<Unimplemented>("at most 8 axes, the file has 9"));
  // Extents are of four bytes.
  const Tensor wide = read(bytes({0, 0, 8, 1, 0, 1, 0, 2}) + std::string(65538, 'x'));
  EXPECT_EQ(wide.shape(), Shape{65538});
}

TEST_F(Idx, CompressedOrNot) {
  std::string file = header(0x08, {100, 100});
  for (int i = 0; i < 10'000; ++i) file += static_cast<char>(i * i % 251);
  const Tensor plain = read_idx(write("plain", file)), zipped = read_idx(zip("zipped", file));
  EXPECT_EQ(plain.shape(), zipped.shape());
  EXPECT_EQ(plain.to_vector<std::uint8_t>(), zipped.to_vector<std::uint8_t>());
  EXPECT_EQ(zipped.to_vector<std::uint8_t>()[16], 256 % 251);
}

TEST_F(Idx, RefusesWhatIsNone) {
  const auto refuses = [&](const std::string& content, const char* why) {
    EXPECT_THAT([&] { read(content); },
                throws<DataLoss>("[data::read_idx]", (folder_ / "case").string().c_str(), why));
  };
  refuses("", "begins with four bytes, got 0");
  refuses(bytes({0, 0, 8}), "begins with four bytes, got 3");
  refuses("P5 28 28 255", "no IDX file: expected to begin with the bytes 0, 0 and a type");
  refuses(header(0x0A, {1}) + "x", "got 0, 0 and 10");
  refuses(bytes({0, 1, 8, 1, 0, 0, 0, 1}) + "x", "got 0, 1 and 8");
  refuses(header(0x08, {1, 1}).substr(0, 11), "2 axes need 12 bytes, got 11");
  refuses(header(0x08, {2, 3}) + "12345", "after byte 12 there are 5 bytes");
  refuses(header(0x08, {2, 3}) + "1234567", "too long");
  refuses(header(0x0C, {2}) + "1234567", "cut short: [2] integers of four bytes are 2 of 4 bytes");
  refuses(header(0x0C, {1}) + "12345", "there are 5 bytes");
  refuses(bytes({0, 0, 8, 2}) + std::string(8, '\xFF'), "its shape has 1.84");
  refuses(bytes({0, 0, 8, 1, 0x7F, 0, 0, 0}) + "x", "cut short");
}

TEST_F(Idx, RefusesADamagedArchive) {
  const std::string path = zip("damaged", header(0x08, {200}) + std::string(200, 'x'));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_THAT([&] { read_idx(path); }, throws<DataLoss>(path.c_str(), "cut short"));
}

TEST_F(Idx, AFileThatIsNotThereIsUnavailable) {
  EXPECT_THAT([&] { read_idx((folder_ / "none").string()); },
              throws<Unavailable>("[data::read_idx] cannot read", "none", "No such file"));
  EXPECT_THAT([&] { read_idx(folder_.string()); }, throws<Unavailable>("Is a directory"));
}

struct Article {
  Tensor image, label;
};

class FashionMnist : public Idx {
 protected:
  void write_images(const std::string& prefix, int rows, int height = 28) {
    std::string pixels;
    for (int i = 0; i < rows * height * 28; ++i) pixels += static_cast<char>(i % 256);
    zip(prefix + "-images-idx3-ubyte.gz", header(0x08, {rows, height, 28}) + pixels);
  }
  Dataset<Article> articles(const char* split) {
    return fashion_mnist<Article>(split, {.folder = folder_.string()});
  }
};

TEST_F(FashionMnist, ImagesAndLabelsOfASplit) {
  write_images("train", 3);
  write("train-labels-idx1-ubyte", header(0x08, {3}) + bytes({9, 0, 4}));  // not compressed
  write_images("t10k", 1);
  zip("t10k-labels-idx1-ubyte.gz", header(0x08, {1}) + bytes({5}));
  std::vector<std::int64_t> labels;
  int first = 0;  // pixel of the image, as it was written
  for (const Article& article : articles("train")) {
    EXPECT_EQ(article.image.shape(), Shape({28, 28, 1}));
    const std::vector<float> pixels = article.image.to_vector<float>();
    for (std::size_t i = 0; i < pixels.size(); ++i)
      ASSERT_FLOAT_EQ(pixels[i], static_cast<float>((first + static_cast<int>(i)) % 256) / 255);
    labels.push_back(article.label.item<std::int64_t>());
    first += 28 * 28;
  }
  EXPECT_THAT(labels, ElementsAre(9, 0, 4));
  EXPECT_EQ(articles("test").cardinality(), 1);
}

TEST_F(FashionMnist, FilesMustFitTogether) {
  write_images("train", 3);
  const auto labels = [&](const std::string& contents) {
    zip("train-labels-idx1-ubyte.gz", contents);
    return [&] { articles("train"); };
  };
  EXPECT_THAT(labels(header(0x08, {2}) + bytes({1, 2})),
              throws<DataLoss>("[data::fashion_mnist]", "expected labels u8 [3]", "[2]"));
  EXPECT_THAT(labels(header(0x08, {3}) + bytes({1, 10, 2})),
              throws<DataLoss>("expected labels from 0 to 9, got 10"));
  EXPECT_THAT(labels(header(0x0C, {3}) + std::string(12, '\0')), throws<DataLoss>("i32"));
  write_images("train", 3, 27);
  EXPECT_THAT(labels(header(0x08, {3}) + bytes({1, 2, 3})),
              throws<DataLoss>("expected images u8 [n, 28, 28]", "[3, 27, 28]"));
}

TEST_F(FashionMnist, IsLookedForInTheDataDirectory) {
  write_images("train", 1);
  zip("train-labels-idx1-ubyte.gz", header(0x08, {1}) + bytes({7}));
  const std::filesystem::path link =
      std::filesystem::path(::testing::TempDir()) / ("lockstep_data_" + std::to_string(getpid()));
  std::filesystem::create_directories(link);
  std::filesystem::create_directory_symlink(folder_, link / "fashion-mnist");
  setenv("LOCKSTEP_DATA_DIR", link.c_str(), 1);
  EXPECT_EQ(read_fashion_mnist("train")[1].item<std::int64_t>(), 7);
  unsetenv("LOCKSTEP_DATA_DIR");
  std::filesystem::remove_all(link);
}

TEST_F(FashionMnist, MissingFilesNameThePackage) {
  EXPECT_THAT([&] { articles("train"); },
              throws<Unavailable>("[data::fashion_mnist] cannot read", "train-images-idx3-ubyte.gz",
                                  "package dataset-fashion-mnist"));
  EXPECT_THAT([&] { articles("valid"); },
              throws<InvalidArgument>("\"train\" or \"test\", got \"valid\""));
}

}  // namespace
}  // namespace lockstep::data
