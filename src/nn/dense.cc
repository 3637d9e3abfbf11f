// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/dense.h>
#include <lockstep/ops/matmul.h>

namespace lockstep::nn {
namespace {

Shape kernel_shape(std::int64_t in, std::int64_t out, SourceLocation at) {
  require(in > 0 && out > 0, at, "Dense", "expected sizes of 1 or more, got ", in, " and ", out);
  return Shape({in, out}, at, "Dense");
}

}  // namespace

Dense::Dense(std::int64_t in, std::int64_t out, const DenseOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      activation_(options.activation),
      kernel_(add_variable("kernel", kernel_shape(in, out, at), options.kernel_initializer)) {
  if (options.use_bias) bias_ = add_variable("bias", Shape{out}, options.bias_initializer);
}

Tensor Dense::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 2, .size = input_size()}, at);
  return dense(input, weight(kernel_, at), weight(bias_, at), activation_, at);
}

}  // namespace lockstep::nn
