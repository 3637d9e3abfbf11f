// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/half.h>

#include <cstdint>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

// What the kernels in .cuh files share. They are compiled by nvcc, from the .cu files, and by the
// host's compiler in tests, after tests/support/cuda_emulator.h: so they use nothing beyond
// __global__, __device__, __shared__ (by LOCKSTEP_SHARED), __syncthreads and the built-in indices.
// Blocks are one-dimensional. No atomics: results do not depend on the order of blocks.
#if defined(__CUDACC__)
#define LOCKSTEP_SHARED(type, name, count) __shared__ type name[count]
#endif

namespace lockstep::cuda {

using Index = long long;

#if !defined(LOCKSTEP_CUDA_BLOCK)
#define LOCKSTEP_CUDA_BLOCK 256
#endif
constexpr int kBlock = LOCKSTEP_CUDA_BLOCK;  // threads, a power of two

// A thread's place in a grid that walks n elements, and the distance to its next.
__device__ inline Index first_index() {
  return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline Index index_step() { return static_cast<Index>(gridDim.x) * blockDim.x; }

// How an element is held in memory and what it is computed in.
template <class S>
struct Storage {
  using Compute = S;
  __device__ static S load(S x) { return x; }
  __device__ static S store(S x) { return x; }
};
template <>
struct Storage<half> {
  using Compute = float;
#if defined(__CUDACC__)
  __device__ static float load(half x) { return __half2float(__ushort_as_half(x.bits)); }
  __device__ static half store(float x) {
    half y;
    y.bits = __half_as_ushort(__float2half_rn(x));
    return y;
  }
#else
  static float load(half x) { return static_cast<float>(x); }
  static half store(float x) { return half(x); }
#endif
};
template <>
struct Storage<bfloat16> {
  using Compute = float;
#if defined(__CUDACC__)
  __device__ static float load(bfloat16 x) {
    return __bfloat162float(__ushort_as_bfloat16(x.bits));
  }
  __device__ static bfloat16 store(float x) {
    bfloat16 y;
    y.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return y;
  }
#else
  static float load(bfloat16 x) { return static_cast<float>(x); }
  static bfloat16 store(float x) { return bfloat16(x); }
#endif
};
template <class S>
using Compute = typename Storage<S>::Compute;

// Combines a value of each thread of the block; thread 0 has the result. A fixed tree.
template <class T, class Combine>
__device__ T block_combine(T value, Combine combine) {
  LOCKSTEP_SHARED(T, shared, kBlock);
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();  // `shared` may be used again
  return result;
}

}  // namespace lockstep::cuda
