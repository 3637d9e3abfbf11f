// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/pool.h>

#include "nn/windows.h"

namespace lockstep::nn {
namespace {

template <int axes>
PoolNdOptions<axes> window_of(const PoolNDOptions<axes>& options) {
  return {.window = options.pool_size,
          .strides = options.strides.value_or(options.pool_size),
          .padding = options.padding};
}

}  // namespace

template <int axes>
MaxPoolND<axes>::MaxPoolND(const PoolNDOptions<axes>& options, SourceLocation at)
    : Layer(name_or(options.name, "max_pool", axes), at), options_(window_of(options)) {}

template <int axes>
Tensor MaxPoolND<axes>::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = axes + 2, .max_rank = axes + 2}, at);
  if constexpr (axes == 1)
    return max_pool1d(x, options_, at);
  else if constexpr (axes == 2)
    return max_pool2d(x, options_, at);
  else
    return max_pool3d(x, options_, at);
}

template <int axes>
AveragePoolND<axes>::AveragePoolND(const PoolNDOptions<axes>& options, SourceLocation at)
    : Layer(name_or(options.name, "average_pool", axes), at), options_(window_of(options)) {}

template <int axes>
Tensor AveragePoolND<axes>::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = axes + 2, .max_rank = axes + 2}, at);
  if constexpr (axes == 1)
    return avg_pool1d(x, options_, at);
  else if constexpr (axes == 2)
    return avg_pool2d(x, options_, at);
  else
    return avg_pool3d(x, options_, at);
}

template class MaxPoolND<1>;
template class MaxPoolND<2>;
template class MaxPoolND<3>;
template class AveragePoolND<1>;
template class AveragePoolND<2>;
template class AveragePoolND<3>;

}  // namespace lockstep::nn
