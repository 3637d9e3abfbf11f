// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "ops/cuda/kernel.cuh"

namespace lockstep::cuda {

// Whether x is to stand before y, and not only as they came. A NaN counts as the largest.
template <class T>
__device__ inline bool stands_before(T x, T y, bool descending) {
  const T a = descending ? y : x, b = descending ? x : y;
  if constexpr (std::is_floating_point_v<T>)
    return a == a && !(a >= b);
  else
    return a < b;
}

// A pass of a merge sort of rows of n elements, in which sorted runs of `length`, two by two, become
// sorted runs of twice that. A thread places an element after those of its own run and of the other
// that stand before it; of equal ones those of the first run do, so that their order stays. `places`
// says where the elements stood before the first pass, null: here. The first `kept` of each row are
// written, and where they stood; to and to_places may be null.
template <class S>
__global__ void merge_kernel(const S* x, const int* places, S* to, int* to_places, Index n,
                             Index length, Index kept, bool descending, Index elements) {
  for (Index i = first_index(); i < elements; i += index_step()) {
    const Index row = i / n, place = i % n;
    const Index begin = place - place % (2 * length);
    const Index middle = begin + length < n ? begin + length : n;
    const Index end = begin + 2 * length < n ? begin + 2 * length : n;
    const bool first = place < middle;
    const Compute<S> own = Storage<S>::load(x[i]);
    Index low = first ? middle : begin, high = first ? end : middle;
    while (low < high) {
      const Index probe = low + (high - low) / 2;
      const Compute<S> other = Storage<S>::load(x[row * n + probe]);
      const bool before =
          first ? stands_before(other, own, descending) : !stands_before(own, other, descending);
      if (before)
        low = probe + 1;
      else
        high = probe;
    }
    const Index target = place + low - middle;
    if (target >= kept) continue;
    if (to) to[row * kept + target] = x[i];
    if (to_places) to_places[row * kept + target] = places ? places[i] : static_cast<int>(place);
  }
}

}  // namespace lockstep::cuda
