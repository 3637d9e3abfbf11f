// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <atomic>

namespace lockstep {

// What a Tensor handle refers to. Immutable once a second handle exists.
struct detail::TensorNode {
  std::atomic<int> references{1};
  DType dtype;
  bool trainable = false;
  std::uint64_t key = 0;
  Shape shape;
  Buffer buffer;
};

}  // namespace lockstep
