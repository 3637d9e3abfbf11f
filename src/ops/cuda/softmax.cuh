// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/kernel.cuh"
#include "ops/cuda/reduce.cuh"

// Softmax and its relatives. S is float or double; softmax_kernels.h says what is computed. A block
// for each row.
namespace lockstep::cuda {

template <class S>
__device__ S natural_log(S x) {
  return ::log(x);
}
template <class S>
__device__ S natural_exp(S x) {
  return ::exp(x);
}

// A row of [outer, n, inner]: where it begins; its elements lie `inner` apart.
__device__ inline Index row_begin(Index row, Index n, Index inner) {
  return row / inner * n * inner + row % inner;
}

// The largest element of a row and the sum of exp(x - max), in all threads.
template <class S>
__device__ void row_extremes(const S* x, Index n, Index inner, S& max, S& sum) {
  LOCKSTEP_SHARED(S, shared, 2);
  S own = x[0];
  for (Index i = threadIdx.x; i < n; i += blockDim.x) own = LargestOf{}(own, x[i * inner]);
  own = block_combine(own, LargestOf{});
  if (threadIdx.x == 0) shared[0] = own;
  __syncthreads();
  max = shared[0];
  S part(0);
  for (Index i = threadIdx.x; i < n; i += blockDim.x) part += natural_exp(x[i * inner] - max);
  part = block_combine(part, SumOf{});
  if (threadIdx.x == 0) shared[1] = part;
  __syncthreads();
  sum = shared[1];
  __syncthreads();
}

template <class S>
__global__ void softmax_kernel(const S* x, S* y, Index rows, Index n, Index inner, bool log) {
  for (Index r = blockIdx.x; r < rows; r += gridDim.x) {
    const Index begin = row_begin(r, n, inner);
    S max, sum;
    row_extremes(x + begin, n, inner, max, sum);
    const S log_sum = natural_log(sum);
    for (Index i = threadIdx.x; i < n; i += blockDim.x) {
      const S value = x[begin + i * inner] - max;
      y[begin + i * inner] = log ? value - log_sum : natural_exp(value) / sum;
    }
  }
}

// dx = y (dy - sum(dy y)), or dy - exp(y) sum(dy) where `log`.
template <class S>
__global__ void softmax_gradient_kernel(const S* dy, const S* y, S* dx, Index rows, Index n,
                                        Index inner, bool log) {
  LOCKSTEP_SHARED(S, shared, 1);
  for (Index r = blockIdx.x; r < rows; r += gridDim.x) {
    const Index begin = row_begin(r, n, inner);
    S part(0);
    for (Index i = threadIdx.x; i < n; i += blockDim.x) {
      const Index at = begin + i * inner;
      part += log ? dy[at] : dy[at] * y[at];
    }
    part = block_combine(part, SumOf{});
    if (threadIdx.x == 0) shared[0] = part;
    __syncthreads();
    const S sum = shared[0];
    for (Index i = threadIdx.x; i < n; i += blockDim.x) {
      const Index at = begin + i * inner;
      dx[at] = log ? dy[at] - natural_exp(y[at]) * sum : y[at] * (dy[at] - sum);
    }
    __syncthreads();
  }
}

// loss[r] of each row, and where exps is not null exps = exp(x - max) and scale = 1 / sum. Labels are
// classes of type I; a label outside the classes gives NaN.
template <class S, class I>
__global__ void sparse_losses_kernel(const I* labels, const S* x, S* loss, S* exps, S* scale,
                                     Index rows, Index n) {
  for (Index r = blockIdx.x; r < rows; r += gridDim.x) {
    const S* const row = x + r * n;
    S max, sum;
    row_extremes(row, n, Index(1), max, sum);
    if (exps)
      for (Index i = threadIdx.x; i < n; i += blockDim.x)
        exps[r * n + i] = natural_exp(row[i] - max);
    if (threadIdx.x != 0) continue;
    const Index label = static_cast<Index>(labels[r]);
    loss[r] = label >= 0 && label < n ? natural_log(sum) + (max - row[label]) : S(NAN);
    if (scale) scale[r] = S(1) / sum;
  }
}

// The same with a weight for each class.
template <class S>
__global__ void dense_losses_kernel(const S* labels, const S* x, S* loss, S* exps, S* scale,
                                    Index rows, Index n) {
  for (Index r = blockIdx.x; r < rows; r += gridDim.x) {
    const S* const row = x + r * n;
    S max, sum;
    row_extremes(row, n, Index(1), max, sum);
    const S log_sum = natural_log(sum);
    S part(0);
    for (Index i = threadIdx.x; i < n; i += blockDim.x) {
      part += labels[r * n + i] * (log_sum + (max - row[i]));
      if (exps) exps[r * n + i] = natural_exp(row[i] - max);
    }
    part = block_combine(part, SumOf{});
    if (threadIdx.x != 0) continue;
    loss[r] = part;
    if (scale) scale[r] = S(1) / sum;
  }
}

// dx[r, i] = d[r] (exps[r, i] scale[r] - (i == labels[r]))
template <class S, class I>
__global__ void sparse_losses_gradient_kernel(const S* d, const I* labels, const S* exps,
                                              const S* scale, S* dx, Index n, Index elements) {
  for (Index i = first_index(); i < elements; i += index_step()) {
    const Index r = i / n;
    const S softmax = exps[i] * scale[r];
    dx[i] = d[r] * (static_cast<Index>(labels[r]) == i % n ? softmax - S(1) : softmax);
  }
}

// dx[r, i] = d[r] (exps[r, i] scale[r] sum(labels[r]) - labels[r, i])
template <class S>
__global__ void dense_losses_gradient_kernel(const S* d, const S* labels, const S* exps,
                                             const S* scale, S* dx, Index rows, Index n) {
  LOCKSTEP_SHARED(S, shared, 1);
  for (Index r = blockIdx.x; r < rows; r += gridDim.x) {
    S part(0);
    for (Index i = threadIdx.x; i < n; i += blockDim.x) part += labels[r * n + i];
    part = block_combine(part, SumOf{});
    if (threadIdx.x == 0) shared[0] = part;
    __syncthreads();
    const S total = shared[0];
    for (Index i = threadIdx.x; i < n; i += blockDim.x) {
      const Index at = r * n + i;
      dx[at] = d[r] * (exps[at] * scale[r] * total - labels[at]);
    }
    __syncthreads();
  }
}

}  // namespace lockstep::cuda
