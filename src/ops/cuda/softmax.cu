// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/softmax.cuh"

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

int blocks_of(std::int64_t rows) { return static_cast<int>(std::min<std::int64_t>(rows, 65535)); }

template <class F>
void visit_real(DType dtype, F&& f) {
  if (dtype == DType::f64)
    f(double{});
  else
    f(float{});
}

}  // namespace

void softmax(bool log, DType dtype, const void* x, void* y, std::int64_t rows, std::int64_t n,
             std::int64_t inner, Device device) {
  if (rows * n == 0) return;
  visit_real(dtype, [&]<class S>(S) {
    run(softmax_kernel<S>, device, blocks_of(rows), in<S>(x), out<S>(y), rows, n, inner, log);
  });
}

void softmax_gradient(bool log, DType dtype, const void* dy, const void* y, void* dx,
                      std::int64_t rows, std::int64_t n, std::int64_t inner, Device device) {
  if (rows * n == 0) return;
  visit_real(dtype, [&]<class S>(S) {
    run(softmax_gradient_kernel<S>, device, blocks_of(rows), in<S>(dy), in<S>(y), out<S>(dx), rows,
        n, inner, log);
  });
}

void losses(DType dtype, DType labels_dtype, const void* labels, const void* x, void* loss,
            void* exps, void* scale, std::int64_t rows, std::int64_t n, Device device) {
  if (rows == 0) return;
  visit_real(dtype, [&]<class S>(S) {
    const auto sparse = [&]<class I>(I) {
      run(sparse_losses_kernel<S, I>, device, blocks_of(rows), in<I>(labels), in<S>(x),
          out<S>(loss), out<S>(exps), out<S>(scale), rows, n);
    };
    if (labels_dtype == DType::i32)
      sparse(std::int32_t{});
    else if (labels_dtype == DType::i64)
      sparse(std::int64_t{});
    else
      run(dense_losses_kernel<S>, device, blocks_of(rows), in<S>(labels), in<S>(x), out<S>(loss),
          out<S>(exps), out<S>(scale), rows, n);
  });
}

void losses_gradient(DType dtype, DType labels_dtype, const void* d, const void* labels,
                     const void* exps, const void* scale, void* dx, std::int64_t rows,
                     std::int64_t n, Device device) {
  if (rows == 0) return;
  visit_real(dtype, [&]<class S>(S) {
    const auto sparse = [&]<class I>(I) {
      run(sparse_losses_gradient_kernel<S, I>, device, blocks_for(rows * n), in<S>(d),
          in<I>(labels), in<S>(exps), in<S>(scale), out<S>(dx), n, rows * n);
    };
    if (labels_dtype == DType::i32)
      sparse(std::int32_t{});
    else if (labels_dtype == DType::i64)
      sparse(std::int64_t{});
    else
      run(dense_losses_gradient_kernel<S>, device, blocks_of(rows), in<S>(d), in<S>(labels),
          in<S>(exps), in<S>(scale), out<S>(dx), rows, n);
  });
}

}  // namespace lockstep::cuda
