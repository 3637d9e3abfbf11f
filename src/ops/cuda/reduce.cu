// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/reduce.cuh"

#include <lockstep/device/buffer.h>

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

void append(ReduceAxes::Axes& axes, Index extent, Index stride) {
  axes.extents[axes.rank] = extent;
  axes.strides[axes.rank++] = stride;
}

ReduceAxes axes_of(const Shape& shape, const bool (&reduced)[Shape::kMaxRank]) {
  ReduceAxes axes;
  const Strides strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    append(reduced[axis] ? axes.reduced : axes.kept, shape[axis], strides[axis]);
    (reduced[axis] ? axes.count : axes.results) *= shape[axis];
  }
  return axes;
}

template <class R>
void reduce_as(DType dtype, const void* x, void* y, const ReduceAxes& axes, std::int64_t divisor,
               Device device) {
  const int blocks = static_cast<int>(std::min<Index>(axes.results, 65535));
  visit_numeric(dtype, [&]<class S>(S) {
    run(reduce_kernel<R, S>, device, blocks, in<S>(x), out<S>(y), axes, divisor);
  });
}

}  // namespace

void reduce(cpu::Reduction op, DType dtype, const void* x, void* y, const Shape& shape,
            const bool (&reduced)[Shape::kMaxRank], std::int64_t divisor, Device device) {
  const ReduceAxes axes = axes_of(shape, reduced);
  if (axes.results == 0) return;
  switch (op) {
    case cpu::Reduction::sum:
      return reduce_as<SumOf>(dtype, x, y, axes, divisor, device);
    case cpu::Reduction::prod:
      return reduce_as<ProductOf>(dtype, x, y, axes, 1, device);
    case cpu::Reduction::max:
      return reduce_as<LargestOf>(dtype, x, y, axes, 1, device);
    case cpu::Reduction::min:
      return reduce_as<LeastOf>(dtype, x, y, axes, 1, device);
  }
}

void arg_extreme(bool largest, DType dtype, const void* x, std::int64_t* y, std::int64_t outer,
                 std::int64_t n, std::int64_t inner, Device device) {
  const std::int64_t results = outer * inner;
  if (results == 0) return;
  visit_numeric(dtype, [&]<class S>(S) {
    run(largest ? arg_extreme_kernel<true, S> : arg_extreme_kernel<false, S>, device,
        blocks_for(results), in<S>(x), y, n, inner, results);
  });
}

void cumsum(DType dtype, const void* x, void* y, std::int64_t outer, std::int64_t n,
            std::int64_t inner, bool exclusive, bool reverse, Device device) {
  const std::int64_t lines = outer * inner;
  if (lines * n == 0) return;
  const int blocks = static_cast<int>(std::min<std::int64_t>(lines, 65535));
  const auto launch = [&]<class S>(S) {
    run(cumsum_kernel<S>, device, blocks, in<S>(x), out<S>(y), lines, n, inner, exclusive, reverse);
  };
  switch (dtype) {
    case DType::i32:
      return launch(std::int32_t{});
    case DType::i64:
      return launch(std::int64_t{});
    case DType::f64:
      return launch(double{});
    default:
      return launch(float{});
  }
}

void bias_gradient(DType dtype, const void* dy, const void* y, void* dz, void* bias,
                   std::int64_t rows, std::int64_t channels, Device device) {
  if (channels == 0) return;
  const int blocks = static_cast<int>(std::min<std::int64_t>(channels, 65535));
  visit_floating(dtype, [&]<class S>(S) {
    run(bias_gradient_kernel<S>, device, blocks, in<S>(dy), in<S>(y), out<S>(dz), out<S>(bias),
        rows, channels);
  });
}

void add_square_sum(DType dtype, const void* x, double* total, std::int64_t n, Device device) {
  if (n == 0) return;
  const int blocks = blocks_for(n);
  const Buffer partial =
      Buffer::allocate(device, static_cast<std::size_t>(blocks) * sizeof(double));
  auto* const sums = static_cast<double*>(partial.data());
  visit_floating(
      dtype, [&]<class S>(S) { run(square_sums_kernel<S>, device, blocks, in<S>(x), sums, n); });
  run(add_partials_kernel<double>, device, 1, sums, total, blocks);
}

void square_root(const double* x, float* y, Device device) {
  run(square_root_kernel<float>, device, 1, x, y);
}

void clear_unless_finite(DType dtype, const void* x, bool* all, std::int64_t n, Device device) {
  if (n == 0) return;
  visit_floating(dtype, [&]<class S>(S) {
    run(all_finite_kernel<S>, device, blocks_for(n), in<S>(x), all, n);
  });
}

}  // namespace lockstep::cuda
