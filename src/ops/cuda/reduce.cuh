// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>

#include <type_traits>

#include "ops/cuda/kernel.cuh"

// Reductions. A block of threads for each result, whose sum is a fixed tree.
namespace lockstep::cuda {

// Which elements of x belong to a result: those of the reduced axes, from where the kept axes say.
struct ReduceAxes {
  struct Axes {
    int rank = 0;
    Index extents[Shape::kMaxRank] = {};
    Index strides[Shape::kMaxRank] = {};
  };
  Axes kept, reduced;
  Index results = 1;  // of the kept axes
  Index count = 1;    // elements of one result
};

__device__ inline Index offset_of(const ReduceAxes::Axes& axes, Index i) {
  Index offset = 0;
  for (int axis = axes.rank - 1; axis >= 0; --axis) {
    offset += i % axes.extents[axis] * axes.strides[axis];
    i /= axes.extents[axis];
  }
  return offset;
}

// kOfNothing: the result of no elements; start(first): what the first element is combined with.
struct SumOf {
  static constexpr int kOfNothing = 0;
  template <class T>
  __device__ static T start(T) {
    return T(0);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)  // wraps around
      return static_cast<T>(static_cast<unsigned long long>(a) +
                            static_cast<unsigned long long>(b));
    else
      return a + b;
  }
};
struct ProductOf {
  static constexpr int kOfNothing = 1;
  template <class T>
  __device__ static T start(T) {
    return T(1);
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)  // wraps around
      return static_cast<T>(static_cast<unsigned long long>(a) *
                            static_cast<unsigned long long>(b));
    else
      return a * b;
  }
};
// NaN if one is.
struct LargestOf {
  static constexpr int kOfNothing = 0;
  template <class T>
  __device__ static T start(T first) {
    return first;
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct LeastOf {
  static constexpr int kOfNothing = 0;
  template <class T>
  __device__ static T start(T first) {
    return first;
  }
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

// y[r] = the reduction of result r, divided by `divisor` for floats.
template <class R, class S>
__global__ void reduce_kernel(const S* x, S* y, ReduceAxes axes, Index divisor) {
  using C = Compute<S>;
  const R combine{};
  for (Index r = blockIdx.x; r < axes.results; r += gridDim.x) {
    const S* const own = x + offset_of(axes.kept, r);
    C value = axes.count == 0 ? C(R::kOfNothing) : R::start(Storage<S>::load(own[0]));
    for (Index i = threadIdx.x; i < axes.count; i += blockDim.x)
      value = combine(value, Storage<S>::load(own[offset_of(axes.reduced, i)]));
    value = block_combine(value, combine);
    if constexpr (std::is_floating_point_v<C>) value /= static_cast<C>(divisor);
    if (threadIdx.x == 0) y[r] = Storage<S>::store(value);
  }
}

// y[o, i] = the first j with the largest x[o, j, i] or, unless `largest`, the least; once a NaN
// leads, nothing exceeds it.
template <bool largest, class S>
__global__ void arg_extreme_kernel(const S* x, std::int64_t* y, Index n, Index inner,
                                   Index results) {
  for (Index r = first_index(); r < results; r += index_step()) {
    const S* const own = x + r / inner * n * inner + r % inner;
    Index best = 0;
    Compute<S> extreme = Storage<S>::load(own[0]);
    for (Index j = 1; j < n; ++j) {
      const Compute<S> value = Storage<S>::load(own[j * inner]);
      const bool beyond = largest ? value > extreme : value < extreme;
      if (beyond || (value != value && extreme == extreme)) {
        extreme = value;
        best = j;
      }
    }
    y[r] = best;
  }
}

// y[o, j, i] = the sum of x[o, k, i] for k <= j, with `exclusive` for k < j, with `reverse` counted
// from the end. A block for each of `lines` lines, kBlock elements at a time.
template <class S>
__global__ void cumsum_kernel(const S* x, S* y, Index lines, Index n, Index inner, bool exclusive,
                              bool reverse) {
  LOCKSTEP_SHARED(S, sums, kBlock);
  for (Index line = blockIdx.x; line < lines; line += gridDim.x) {
    const Index begin = line / inner * n * inner + line % inner;
    S before(0);
    for (Index first = 0; first < n; first += kBlock) {
      const Index place = first + threadIdx.x;
      const Index at = begin + (reverse ? n - 1 - place : place) * inner;
      const S own = place < n ? x[at] : S(0);
      sums[threadIdx.x] = own;
      __syncthreads();
      for (unsigned step = 1; step < kBlock; step *= 2) {
        const S other = threadIdx.x >= step ? sums[threadIdx.x - step] : S(0);
        __syncthreads();
        sums[threadIdx.x] = SumOf{}(sums[threadIdx.x], other);
        __syncthreads();
      }
      const S preceding = threadIdx.x > 0 ? sums[threadIdx.x - 1] : S(0);
      if (place < n) y[at] = SumOf{}(before, exclusive ? preceding : sums[threadIdx.x]);
      before = SumOf{}(before, sums[kBlock - 1]);
      __syncthreads();
    }
  }
}

// The gradient of relu(z + bias) and of z + bias: dz = dy where y > 0 (all of it where y is null, and
// then not written), bias[c] = the sum of column c of dz.
template <class S>
__global__ void bias_gradient_kernel(const S* dy, const S* y, S* dz, S* bias, Index rows,
                                     Index channels) {
  for (Index c = blockIdx.x; c < channels; c += gridDim.x) {
    Compute<S> sum(0);
    for (Index r = threadIdx.x; r < rows; r += blockDim.x) {
      const Index i = r * channels + c;
      Compute<S> gradient = Storage<S>::load(dy[i]);
      if (y) {
        gradient = Storage<S>::load(y[i]) > Compute<S>(0) ? gradient : Compute<S>(0);
        dz[i] = Storage<S>::store(gradient);
      }
      sum += gradient;
    }
    sum = block_combine(sum, SumOf{});
    if (threadIdx.x == 0) bias[c] = Storage<S>::store(sum);
  }
}

// ---- of many elements, in two steps: partial[b] of each block, then all of these by one block

template <class S>
__global__ void square_sums_kernel(const S* x, double* partial, Index n) {
  double sum = 0;
  for (Index i = first_index(); i < n; i += index_step()) {
    const double value = static_cast<double>(Storage<S>::load(x[i]));
    sum += value * value;
  }
  sum = block_combine(sum, SumOf{});
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// total += the sum of partial
template <class T>
__global__ void add_partials_kernel(const T* partial, T* total, Index n) {
  T sum(0);
  for (Index i = threadIdx.x; i < n; i += blockDim.x) sum += partial[i];
  sum = block_combine(sum, SumOf{});
  if (threadIdx.x == 0) *total += sum;
}

// Writes false where an element is not finite: whichever thread does, it writes the same.
template <class S>
__global__ void all_finite_kernel(const S* x, bool* all, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Compute<S> value = Storage<S>::load(x[i]);
    if (!(value - value == Compute<S>(0))) *all = false;
  }
}

template <class T>
__global__ void square_root_kernel(const double* x, T* y) {
  if (threadIdx.x == 0) *y = static_cast<T>(::sqrt(*x));
}

}  // namespace lockstep::cuda
