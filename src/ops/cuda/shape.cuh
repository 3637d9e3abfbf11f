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

// y[o, p] = x[o, indices[p]], rows of `width`; an index outside the rows gives zeros.
template <class U, class I>
__global__ void gather_kernel(const U* x, const I* indices, U* y, Index rows, Index count,
                              Index width, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Index place = i / width, outer = place / count;
    const Index row = static_cast<Index>(indices[place - outer * count]);
    y[i] = row >= 0 && row < rows ? x[(outer * rows + row) * width + i % width] : U(0);
  }
}

// y[o, r] = base[o, r] + the sum of updates[o, p] over all p with indices[p] = r, in the order of
// p: a thread for each element of y, so that no two write to one place. `base` may be null.
template <class S, class I>
__global__ void scatter_add_kernel(const S* base, const I* indices, const S* updates, S* y,
                                   Index count, Index rows, Index width, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Index place = i / width, column = i % width, outer = place / rows;
    const Index row = place - outer * rows;
    Compute<S> sum = base ? Storage<S>::load(base[i]) : Compute<S>(0);
    for (Index p = 0; p < count; ++p)
      if (static_cast<Index>(indices[p]) == row)
        sum += Storage<S>::load(updates[(outer * count + p) * width + column]);
    y[i] = Storage<S>::store(sum);
  }
}

// The coordinates of each block as one number, -1 where one is out of range.
struct Coordinates {
  int count = 0;
  Index extents[Shape::kMaxRank] = {};
};
template <class I>
__global__ void row_numbers_kernel(Coordinates of, const I* indices, std::int64_t* numbers,
                                   Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    Index number = 0;
    bool inside = true;
    for (int c = 0; c < of.count; ++c) {
      const Index index = static_cast<Index>(indices[i * of.count + c]);
      inside = inside && index >= 0 && index < of.extents[c];
      number = number * of.extents[c] + index;
    }
    numbers[i] = inside ? number : -1;
  }
}

// Indices [.., along, inner] into an axis of `size`, as numbers of elements; likewise.
template <class I>
__global__ void numbers_along_kernel(const I* indices, std::int64_t* numbers, Index size,
                                     Index along, Index inner, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Index index = static_cast<Index>(indices[i]), outer = i / (along * inner);
    const bool inside = index >= 0 && index < size;
    numbers[i] = inside ? (outer * size + index) * inner + i % inner : -1;
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
