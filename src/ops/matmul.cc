// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "device/accelerator.h"
#include "ops/bias_gradient.h"
#include "ops/broadcast.h"
#include "ops/cuda/kernels.h"
#include "ops/gemm.h"
#include "ops/launch.h"
#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

// ---- matmul

struct Product {
  std::int64_t m, n, k;
  Shape batch_a, batch_b;
  Shape shape;  // of the result
};

Shape without_matrix(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2)));
}

bool broadcast_together(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const std::int64_t from_a = a[a.rank() - i], from_b = b[b.rank() - i];
    if (from_a != from_b && from_a != 1 && from_b != 1) return false;
  }
  return true;
}

Product checked_product(const Tensor& a, const Tensor& b, MatmulOptions options,
                        SourceLocation at) {
  constexpr const char* kOp = "matmul";
  require_defined(kOp, "a", a, at);
  require_defined(kOp, "b", b, at);
  require_same_dtype(kOp, a, b, at);
  require_dtype(is_floating(a.dtype()) || a.dtype() == DType::i32 || a.dtype() == DType::i64, kOp,
                a, "a floating dtype, i32 or i64", at);
  const char* a_kind = options.transpose_a ? " transposed and " : " and ";
  const char* b_kind = options.transpose_b ? " transposed" : "";
  require(a.rank() >= 2 && b.rank() >= 2, at, kOp, "expected two tensors of rank 2 or more, got ",
          a.shape(), a_kind, b.shape(), b_kind,
          "; give a vector an axis of extent 1 with reshape()");
  Product p{.m = a.dim(options.transpose_a ? -1 : -2),
            .n = b.dim(options.transpose_b ? -2 : -1),
            .k = a.dim(options.transpose_a ? -2 : -1),
            .batch_a = without_matrix(a.shape()),
            .batch_b = without_matrix(b.shape()),
            .shape = {}};
  const std::int64_t k_of_b = b.dim(options.transpose_b ? -1 : -2);
  require(p.k == k_of_b, at, kOp, "expected as many columns of a as rows of b, got ", p.k, " and ",
          k_of_b, " for shapes ", a.shape(), a_kind, b.shape(), b_kind);
  require(broadcast_together(p.batch_a, p.batch_b), at, kOp,
          "the batch axes do not broadcast for shapes ", a.shape(), a_kind, b.shape(), b_kind);
  const Shape batch = broadcast_shapes(p.batch_a, p.batch_b, kOp, at);
  p.shape = batch.with_axis(batch.rank(), p.m, at, kOp).with_axis(batch.rank() + 1, p.n, at, kOp);
  return p;
}

// Matrices of the batch that lie at equal distances in a and in b are multiplied in one go, by
// compute(gemm, a, b, c).
template <class Compute>
void multiply(const Product& p, MatmulOptions options, DType dtype, const Tensor& a,
              const Tensor& b, void* c, Compute&& compute) {
  Gemm gemm{.m = p.m,
            .n = p.n,
            .k = p.k,
            .transpose_a = options.transpose_a,
            .transpose_b = options.transpose_b};
  if (p.batch_b.num_elements() == 1 &&
      !options.transpose_a) {  // all rows of a meet the same matrix
    gemm.m = p.m * p.batch_a.num_elements();
    return compute(gemm, a.raw_data(), b.raw_data(), c);
  }
  const Shape batch = without_matrix(p.shape);
  const Broadcast<2> plan(batch, {&p.batch_a, &p.batch_b});
  const auto at = [&](const void* base, std::int64_t element) {
    return static_cast<const std::byte*>(base) +
           element * static_cast<std::int64_t>(size_of(dtype));
  };
  gemm.batch = plan.cols();
  gemm.stride_a = plan.col_stride(0) * p.m * p.k;
  gemm.stride_b = plan.col_stride(1) * p.k * p.n;
  plan.for_each_block([&](const std::int64_t(&from)[2], std::int64_t to) {
    for (std::int64_t row = 0; row < plan.rows(); ++row)
      compute(gemm, at(a.raw_data(), (from[0] + row * plan.row_stride(0)) * p.m * p.k),
              at(b.raw_data(), (from[1] + row * plan.row_stride(1)) * p.k * p.n),
              const_cast<std::byte*>(at(c, (to + row * plan.cols()) * p.m * p.n)));
  });
}

// The gradient of op(a) is dy op(b)', transposed where a is.
Tensor gradient_of_a(const Tensor& b, const Tensor& dy, MatmulOptions o) {
  return o.transpose_a ? matmul(b, dy, {.transpose_a = o.transpose_b, .transpose_b = true})
                       : matmul(dy, b, {.transpose_b = !o.transpose_b});
}
// That of op(b) is op(a)' dy.
Tensor gradient_of_b(const Tensor& a, const Tensor& dy, MatmulOptions o) {
  return o.transpose_b ? matmul(dy, a, {.transpose_a = true, .transpose_b = o.transpose_a})
                       : matmul(a, dy, {.transpose_a = !o.transpose_a});
}

Tensor as_rows(const Tensor& x) {
  const std::int64_t cols = x.dim(-1);
  std::int64_t rows = 1;
  for (int axis = 0; axis < x.rank() - 1; ++axis) rows *= x.dim(axis);
  return x.rank() == 2 ? x : reshape(x, {rows, cols});
}

void put(int input, const Shape& shape, GradientSink& sink, const std::function<Tensor()>& gradient,
         bool summed) {
  if (!summed) return sink.put(input, gradient);
  const Tensor wide = gradient();
  sink.put(input, [&] { return sum_to_shape(wide, shape); });
}

void put_gradients(const Tensor& a, const Tensor& b, MatmulOptions options, const Tensor& dy,
                   GradientSink& sink) {
  if (sink.wants(1)) {
    // One matrix for the whole batch: a weight. Its gradient is a product over all rows.
    if (without_matrix(b.shape()).num_elements() == 1 && !options.transpose_a)
      sink.put(1, [&] {
        const Tensor gradient = gradient_of_b(as_rows(a), as_rows(dy), options);
        return b.rank() == 2 ? gradient : reshape(gradient, b.shape());
      });
    else
      put(
          1, b.shape(), sink, [&] { return gradient_of_b(a, dy, options); },
          without_matrix(b.shape()) != without_matrix(dy.shape()));
  }
  if (sink.wants(0))
    put(
        0, a.shape(), sink, [&] { return gradient_of_a(b, dy, options); },
        without_matrix(a.shape()) != without_matrix(dy.shape()));
}

// ---- dense

// dz w', of the shape of x.
Tensor product_with(const Tensor& dz, const Tensor& w, const Shape& shape) {
  if (dz.rank() > 1) return matmul(dz, w, {.transpose_b = true});
  return reshape(matmul(as_rows(dz), w, {.transpose_b = true}), shape);
}

void check_dense(const Tensor& x, const Tensor& w, const Tensor& bias, SourceLocation at) {
  constexpr const char* kOp = "dense";
  require_defined(kOp, "x", x, at);
  require_defined(kOp, "w", w, at);
  require_same_dtype(kOp, x, w, at);
  require_dtype(is_floating(x.dtype()), kOp, x, "a floating dtype", at);
  require(x.rank() >= 1 && w.rank() == 2 && x.dim(-1) == w.dim(0), at, kOp,
          "expected x [.., in] and w [in, out], got ", x.shape(), " and ", w.shape());
  if (!bias.defined()) return;
  require_same_dtype(kOp, w, bias, at);
  require(bias.rank() == 1 && bias.dim(0) == w.dim(1), at, kOp, "expected a bias of shape [",
          w.dim(1), "] for w ", w.shape(), ", got ", bias.shape());
}

// y [rows, out] = x w + bias, then relu.
Gemm dense_gemm(const Tensor& w, const Tensor& bias, bool relu, const Tensor& y) {
  return {.m = w.dim(1) ? y.num_elements() / w.dim(1) : 0,
          .n = w.dim(1),
          .k = w.dim(0),
          .bias = bias.defined(),
          .relu = relu};
}

const void* data_or_null(const Tensor& x) { return x.defined() ? x.raw_data() : nullptr; }

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options, SourceLocation at) {
  const Product product = checked_product(a, b, options, at);
  const Device device = common_device("matmul", {&a, &b}, at);
  Tensor y;
  if (traced::on(device)) {
    y = traced::matmul(a, b, options, product.shape);
  } else {
    y = make_result(device, a.dtype(), product.shape);
    launch(
        "matmul", device, writes(y), reads(a, b),
        [product, options](Tensor& to, const Tensor& from_a, const Tensor& from_b) {
          multiply(product, options, to.dtype(), from_a, from_b, write<void>(to),
                   [&](const Gemm& gemm, const void* left, const void* right, void* result) {
                     cpu::compute(gemm, to.dtype(), to.device(), left, right, nullptr, result);
                   });
        },
        [product, options](auto& to, const auto& from_a, const auto& from_b) {
          if (product.k == 0) return zero_bytes(to.device(), write<void>(to), to.bytes());
          multiply(product, options, to.dtype(), from_a, from_b, write<void>(to),
                   [&](const Gemm& gemm, const void* left, const void* right, void* result) {
                     cuda::compute(gemm, to.dtype(), left, right, nullptr, result, to.device());
                   });
        });
  }
  if (is_floating(a.dtype()))
    record("matmul", {&a, &b}, y, [a, b, options](const Tensor& dy, GradientSink& sink) {
      put_gradients(a, b, options, dy, sink);
    });
  return y;
}

Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
             SourceLocation at) {
  check_dense(x, w, bias, at);
  const Device device = common_device("dense", {&x, &w, &bias}, at);
  const bool relu = activation == Activation::relu;
  const Shape shape = x.shape().with_dim(-1, w.dim(1), at, "dense");
  Tensor y;
  if (traced::on(device)) {
    y = traced::dense(x, w, bias, relu, shape);
  } else {
    y = make_result(device, x.dtype(), shape);
    launch(
        "dense", device, writes(y), reads(x, w, bias),
        [relu](Tensor& to, const Tensor& from, const Tensor& weights, const Tensor& added) {
          cpu::compute(dense_gemm(weights, added, relu, to), to.dtype(), to.device(),
                       from.raw_data(), weights.raw_data(), data_or_null(added), write<void>(to));
        },
        [relu](Tensor& to, const Tensor& from, const Tensor& weights, const Tensor& added) {
          cuda::compute(dense_gemm(weights, added, relu, to), to.dtype(), from.raw_data(),
                        weights.raw_data(), data_or_null(added), write<void>(to), to.device());
        });
  }
  record("dense", {&x, &w, &bias}, y,
         [x, w, relu, y = relu ? y : Tensor()](const Tensor& dy, GradientSink& sink) {
           const Tensor dz = put_bias_gradient(dy, y, relu, 2, sink);
           if (sink.wants(1))
             sink.put(1, [&] { return matmul(as_rows(x), as_rows(dz), {.transpose_a = true}); });
           if (sink.wants(0)) sink.put(0, [&] { return product_with(dz, w, x.shape()); });
         });
  return relu ? y : activate(y, activation, at);
}

}  // namespace lockstep
