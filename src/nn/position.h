// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep::nn {

// The numbers first, first + 1, ...: i64 [count]. Throws InvalidArgument, in the layer's name, unless
// `first` is an integer scalar.
inline Tensor positions_from(const Tensor& first, std::int64_t count, const std::string& layer,
                             SourceLocation at) {
  require(first.defined() && first.rank() == 0 &&
              (first.dtype() == DType::i32 || first.dtype() == DType::i64),
          at, layer, "expected a first position that is an integer scalar, got ", first);
  return range(0, count) + cast(first, DType::i64);
}

}  // namespace lockstep::nn
