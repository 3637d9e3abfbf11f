// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/kernel.cuh"
#include "ops/strided_copy.h"

// Kernels that move elements. U: an unsigned integer of the element's size.
namespace lockstep::cuda {

template <class U>
__global__ void strided_copy_kernel(StridedCopy copy, const U* from, U* to, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    Index rest = i, source = 0, target = 0;
    for (int a = copy.rank() - 1; a >= 0; --a) {
      const StridedCopy::Axis& axis = copy.axis(a);
      const Index place = rest % axis.extent;
      rest /= axis.extent;
      source += place * axis.from;
      target += place * axis.to;
    }
    to[target] = from[source];
  }
}

// y[p] = x[indices[p]], rows of `width`; an index outside the rows gives zeros.
template <class U, class I>
__global__ void gather_kernel(const U* x, const I* indices, U* y, Index rows, Index width,
                              Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Index row = static_cast<Index>(indices[i / width]);
    y[i] = row >= 0 && row < rows ? x[row * width + i % width] : U(0);
  }
}

// y[r] = the sum of updates[p] over all p with indices[p] = r, in the order of p: a thread for each
// element of y, so that no two write to one place.
template <class S, class I>
__global__ void scatter_add_kernel(const I* indices, const S* updates, S* y, Index count,
                                   Index width, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Index row = i / width, column = i % width;
    Compute<S> sum(0);
    for (Index p = 0; p < count; ++p)
      if (static_cast<Index>(indices[p]) == row)
        sum += Storage<S>::load(updates[p * width + column]);
    y[i] = Storage<S>::store(sum);
  }
}

// y[p, d] = d == indices[p]
template <class S, class I>
__global__ void one_hot_kernel(const I* indices, S* y, Index depth, Index n) {
  for (Index i = first_index(); i < n; i += index_step())
    y[i] = Storage<S>::store(static_cast<Index>(indices[i / depth]) == i % depth ? Compute<S>(1)
                                                                                 : Compute<S>(0));
}

}  // namespace lockstep::cuda
