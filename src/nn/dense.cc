// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/dense.h>
#include <lockstep/ops/matmul.h>

namespace lockstep::nn {
namespace {

Shape kernel_shape(std::int64_t in, std::int64_t out, DType dtype, SourceLocation at) {
  require(in > 0 && out > 0, at, "Dense", "expected sizes of 1 or more, got ", in, " and ", out);
  require(is_floating(dtype), at, "Dense", "expected a floating dtype, got ", name_of(dtype));
  return Shape({in, out}, at, "Dense");
}

}  // namespace

Dense::Dense(std::int64_t in, std::int64_t out, const DenseOptions& options, SourceLocation at)
    : Layer(options.name, at),
      activation_(options.activation),
      kernel_(add_variable("kernel", kernel_shape(in, out, options.dtype, at), options.dtype,
                           options.kernel_initializer)) {
  if (options.use_bias)
    bias_ = add_variable("bias", Shape{out}, options.dtype, options.bias_initializer);
}

Tensor Dense::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 2, .size = input_size(), .dtype = kernel_.dtype()}, at);
  return dense(x, kernel_.read(at), bias_ ? bias_->read(at) : Tensor(), activation_, at);
}

}  // namespace lockstep::nn
