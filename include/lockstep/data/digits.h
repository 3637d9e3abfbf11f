// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/from_tensors.h>

#include <string_view>

namespace lockstep::data {

// The tensors behind digits(): images f32 [n, 64] and labels i64 [n].
LOCKSTEP_EXPORT Leaves read_digits(std::string_view split,
                                   SourceLocation at = SourceLocation::current());

// 1797 handwritten digits of 8 x 8 pixels (UCI "Optical Recognition of Handwritten Digits"), one
// per element, as T{image, label}: image f32 [64], rows of pixels from 0 to 1; label i64, 0 to 9.
// Split "test" is 360 of them, "train" the other 1437: the first and the rest of one fixed random
// permutation (src/data/random.h, seed 0), the same for everybody; another split is
// InvalidArgument.
//
// The library carries the data; a file digits.csv.gz in the directory LOCKSTEP_DATA_DIR is read in
// its place. DataLoss, with file and line, when that is not what it should be.
template <class T>
Dataset<T> digits(std::string_view split, SourceLocation at = SourceLocation::current()) {
  if constexpr (Nest<T>) {  // else Dataset<T> has said what is wrong
    static_assert(FixedNest<T> && TensorNest<T> && detail::leaf_count<T>() == 2,
                  "digits<T>: T must hold two tensors, the image and the label");
    const Leaves leaves = read_digits(split, at);
    return from_tensor_slices(with_leaves(T{}, std::span<const Tensor>(leaves)), at);
  }
}

}  // namespace lockstep::data
