// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/global_pool.h>
#include <lockstep/ops/pool.h>

namespace lockstep::nn {

GlobalMaxPool::GlobalMaxPool(const GlobalPoolOptions& options, SourceLocation at)
    : Layer(options.name.empty() ? "global_max_pool" : options.name, at),
      keep_dims_(options.keep_dims) {}

Tensor GlobalMaxPool::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 3}, at);
  return global_max_pool(x, {.keep_dims = keep_dims_}, at);
}

GlobalAveragePool::GlobalAveragePool(const GlobalPoolOptions& options, SourceLocation at)
    : Layer(options.name.empty() ? "global_average_pool" : options.name, at),
      keep_dims_(options.keep_dims) {}

Tensor GlobalAveragePool::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 3}, at);
  return global_avg_pool(x, {.keep_dims = keep_dims_}, at);
}

}  // namespace lockstep::nn
