// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/base/dtype.h>

#include <algorithm>

#include "device/cuda/api.h"
#include "ops/cuda/kernel.cuh"

// How .cu files launch kernels.
namespace lockstep::cuda {

// Blocks for n elements: enough to fill any GPU; the threads walk the rest.
inline int blocks_for(Index n) {
  constexpr Index kMost = 132 * 8 * 4;
  return static_cast<int>(std::clamp<Index>((n + kBlock - 1) / kBlock, 1, kMost));
}

// kernel(args...) on `blocks` blocks in the GPU's compute stream.
template <class... Parameters, class... Arguments>
void run(void (*kernel)(Parameters...), Device device, int blocks, Arguments... arguments) {
  const cudaStream_t stream = enter_compute(device);
  kernel<<<blocks, kBlock, 0, stream>>>(static_cast<Parameters>(arguments)...);
  check(cudaGetLastError(), "kernel launch");
}

// f(T{}) with the element type of a dtype; bool is uint8_t where `bytes`.
template <class F>
void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(half{});
    default:
      return f(bfloat16{});
  }
}
template <class F>
void visit_numeric(DType dtype, F&& f) {
  switch (dtype) {
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u8:
    case DType::boolean:
      return f(std::uint8_t{});
    default:
      return visit_floating(dtype, f);
  }
}
template <class F>
void visit_size(std::size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

template <class T>
const T* in(const void* data) {
  return static_cast<const T*>(data);
}
template <class T>
T* out(void* data) {
  return static_cast<T*>(data);
}

}  // namespace lockstep::cuda
