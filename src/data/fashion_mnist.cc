// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/fashion_mnist.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <filesystem>

#include "data/file.h"
#include "data/idx.h"

namespace lockstep::data {
namespace {

constexpr const char* kOp = "data::fashion_mnist";
constexpr std::int64_t kSize = 28, kClasses = 10;

std::filesystem::path folder_of(const FashionMnistOptions& options) {
  if (!options.folder.empty()) return options.folder;
  return find_in_data_dir("fashion-mnist", kOp).value_or("/usr/share/datasets/fashion-mnist");
}

std::string path_of(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path plain = folder / name;
  std::error_code ignored;
  return std::filesystem::exists(plain, ignored) ? plain.string() : plain.string() + ".gz";
}

}  // namespace

Leaves read_fashion_mnist(std::string_view split, const FashionMnistOptions& options,
                          SourceLocation at) {
  require(split == "train" || split == "test", at, kOp,
          "expected the split \"train\" or \"test\", got \"", split, '"');
  const std::filesystem::path folder = folder_of(options);
  const std::string prefix = split == "train" ? "train" : "t10k";
  const auto read = [&](const char* kind) {
    return read_idx(path_of(folder, prefix + kind), kOp,
                    "; install Debian's package dataset-fashion-mnist, or say by .folder or "
                    "LOCKSTEP_DATA_DIR where the files are",
                    at);
  };
  const Tensor images = read("-images-idx3-ubyte"), labels = read("-labels-idx1-ubyte");
  const auto expect = [&](bool ok, const auto&... parts) {
    if (!ok)
      throw DataLoss(message(kOp, folder.string(), ", split \"", split, "\": ", parts...), at);
  };
  expect(images.dtype() == DType::u8 && images.rank() == 3 && images.dim(1) == kSize &&
             images.dim(2) == kSize,
         "expected images u8 [n, ", kSize, ", ", kSize, "], got ", images);
  const std::int64_t rows = images.dim(0);
  expect(labels.dtype() == DType::u8 && labels.shape() == Shape{rows}, "expected labels u8 [", rows,
         "], one for each image, got ", labels);
  const auto pixels = images.data<std::uint8_t>(), classes = labels.data<std::uint8_t>();
  const auto most = std::max_element(classes.begin(), classes.end());
  expect(most == classes.end() || *most < kClasses, "expected labels from 0 to ", kClasses - 1,
         ", got ", most == classes.end() ? 0 : int{*most});
  return {make_tensor<float>(Shape{rows, kSize, kSize, 1},
                             [&](std::span<float> values) {
                               std::transform(
                                   pixels.begin(), pixels.end(), values.begin(),
                                   [](std::uint8_t p) { return static_cast<float>(p) / 255; });
                             }),
          make_tensor<std::int64_t>(Shape{rows}, [&](std::span<std::int64_t> values) {
            std::copy(classes.begin(), classes.end(), values.begin());
          })};
}

}  // namespace lockstep::data
