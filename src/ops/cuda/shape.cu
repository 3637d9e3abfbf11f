// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/shape.cuh"

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

template <class F>
void visit_index(DType dtype, F&& f) {
  if (dtype == DType::i32)
    f(std::int32_t{});
  else
    f(std::int64_t{});
}

}  // namespace

void copy_strided(const StridedCopy& copy, std::size_t size, const void* from, void* to,
                  Device device) {
  const std::int64_t n = copy.num_elements();
  if (n == 0) return;
  visit_size(size, [&]<class U>(U) {
    run(strided_copy_kernel<U>, device, blocks_for(n), copy, in<U>(from), out<U>(to), n);
  });
}

void gather(std::size_t size, DType index, const void* x, const void* indices, void* y,
            std::int64_t rows, std::int64_t count, std::int64_t width, std::int64_t n,
            Device device) {
  if (n == 0) return;
  visit_size(size, [&]<class U>(U) {
    visit_index(index, [&]<class I>(I) {
      run(gather_kernel<U, I>, device, blocks_for(n), in<U>(x), in<I>(indices), out<U>(y), rows,
          count, width, n);
    });
  });
}

void scatter_add(DType dtype, DType index, const void* base, const void* indices,
                 const void* updates, void* y, std::int64_t count, std::int64_t rows,
                 std::int64_t width, std::int64_t n, Device device) {
  if (n == 0) return;
  visit_numeric(dtype, [&]<class S>(S) {
    visit_index(index, [&]<class I>(I) {
      run(scatter_add_kernel<S, I>, device, blocks_for(n), in<S>(base), in<I>(indices),
          in<S>(updates), out<S>(y), count, rows, width, n);
    });
  });
}

void row_numbers(DType index, const void* indices, void* numbers,
                 std::span<const std::int64_t> extents, std::int64_t n, Device device) {
  if (n == 0) return;
  Coordinates of{.count = static_cast<int>(extents.size())};
  std::copy(extents.begin(), extents.end(), of.extents);
  visit_index(index, [&]<class I>(I) {
    run(row_numbers_kernel<I>, device, blocks_for(n), of, in<I>(indices),
        out<std::int64_t>(numbers), n);
  });
}

void numbers_along(DType index, const void* indices, void* numbers, std::int64_t size,
                   std::int64_t along, std::int64_t inner, std::int64_t n, Device device) {
  if (n == 0) return;
  visit_index(index, [&]<class I>(I) {
    run(numbers_along_kernel<I>, device, blocks_for(n), in<I>(indices), out<std::int64_t>(numbers),
        size, along, inner, n);
  });
}

void one_hot(DType dtype, DType index, const void* indices, void* y, std::int64_t depth,
             std::int64_t n, Device device) {
  if (n == 0) return;
  visit_numeric(dtype, [&]<class S>(S) {
    visit_index(index, [&]<class I>(I) {
      run(one_hot_kernel<S, I>, device, blocks_for(n), in<I>(indices), out<S>(y), depth, n);
    });
  });
}

}  // namespace lockstep::cuda
