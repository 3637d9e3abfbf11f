// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/tensor/tensor.h>

#include <string>

namespace lockstep::data {

// The tensor in an IDX file, the format of the MNIST family of data sets
// (http://yann.lecun.com/exdb/mnist): of u8, i32, f32 or f64 as the file says, its integers of one
// signed or two bytes as i32; of any shape. A file compressed with gzip is recognised by its content.
//
// Throws Unavailable when the file cannot be read, DataLoss, with file and byte, when it is no IDX file, is
// damaged, or holds fewer or more bytes than its shape has, and Unimplemented for more axes than a
// Shape has.
LOCKSTEP_EXPORT Tensor read_idx(const std::string& file,
                                SourceLocation at = SourceLocation::current());

}  // namespace lockstep::data
