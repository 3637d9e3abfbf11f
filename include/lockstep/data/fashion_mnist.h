// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/from_tensors.h>

#include <string>
#include <string_view>

namespace lockstep::data {

struct FashionMnistOptions {
  // With the data set's four files, compressed or not. Empty: the folder fashion-mnist in the directory
  // LOCKSTEP_DATA_DIR, or where there is none that of Debian's package dataset-fashion-mnist.
  std::string folder = {};
};

// The tensors behind fashion_mnist(): images f32 [n, 28, 28, 1] and labels i64 [n].
LOCKSTEP_EXPORT Leaves read_fashion_mnist(std::string_view split,
                                          const FashionMnistOptions& options = {},
                                          SourceLocation at = SourceLocation::current());

// Fashion-MNIST (Xiao, Rasul, Vollgraf, arXiv:1708.07747): articles of clothing, one per element, as
// T{image, label}: image f32 [28, 28, 1], pixels from 0 to 1; label i64, 0 to 9. Split "train" is
// 60,000 of them, "test" 10,000; another is InvalidArgument. Other data sets under the same file
// names, like MNIST itself, can be read, too.
//
// Throws Unavailable, naming the package, when a file is not there; DataLoss, naming the file, when
// one is no IDX file (read_idx), holds no images of 28 x 28 or labels from 0 to 9, or when there
// are not as many labels as images.
template <class T>
Dataset<T> fashion_mnist(std::string_view split, const FashionMnistOptions& options = {},
                         SourceLocation at = SourceLocation::current()) {
  if constexpr (Nest<T>) {  // else Dataset<T> has said what is wrong
    static_assert(FixedNest<T> && TensorNest<T> && detail::leaf_count<T>() == 2,
                  "fashion_mnist<T>: T must hold two tensors, the image and the label");
    const Leaves leaves = read_fashion_mnist(split, options, at);
    return from_tensor_slices(with_leaves(T{}, std::span<const Tensor>(leaves)), at);
  }
}

}  // namespace lockstep::data
