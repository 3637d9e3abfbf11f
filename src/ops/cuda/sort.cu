// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/sort.cuh"

#include <lockstep/device/buffer.h>

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace lockstep::cuda {

void sort_rows(DType dtype, const void* x, void* values, void* places, std::int64_t rows,
               std::int64_t n, std::int64_t k, bool descending, Device device) {
  if (rows * k == 0) return;
  const std::int64_t elements = rows * n;
  visit_numeric(dtype, [&]<class S>(S) {
    const auto pass = [&](const S* from, const int* from_places, S* to, int* to_places,
                          std::int64_t length, std::int64_t kept) {
      run(merge_kernel<S>, device, blocks_for(elements), from, from_places, to, to_places, n,
          length, kept, descending, elements);
    };
    const auto count = static_cast<std::size_t>(n > 2 ? elements : 0);
    const Buffer keys[] = {Buffer::allocate(device, count * sizeof(S)),
                           Buffer::allocate(device, count * sizeof(S))};
    const Buffer numbers[] = {Buffer::allocate(device, count * sizeof(int)),
                              Buffer::allocate(device, count * sizeof(int))};
    const S* from = in<S>(x);
    const int* from_places = nullptr;
    std::int64_t length = 1;
    for (int turn = 0; 2 * length < n; length *= 2, turn = 1 - turn) {
      S* const to = static_cast<S*>(keys[turn].data());
      int* const to_places = static_cast<int*>(numbers[turn].data());
      pass(from, from_places, to, to_places, length, n);
      from = to;
      from_places = to_places;
    }
    pass(from, from_places, out<S>(values), out<int>(places), length, k);
  });
}

}  // namespace lockstep::cuda
