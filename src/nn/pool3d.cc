// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/pool3d.h>

namespace lockstep::nn {
namespace {

Pool3dOptions window_of(const Pool3DOptions& options) {
  return {.window = options.pool_size,
          .strides = options.strides.value_or(options.pool_size),
          .padding = options.padding};
}

std::string name_or(const std::string& name, const char* fallback) {
  return name.empty() ? fallback : name;
}

}  // namespace

MaxPool3D::MaxPool3D(const Pool3DOptions& options, SourceLocation at)
    : Layer(name_or(options.name, "max_pool3d"), at), options_(window_of(options)) {}

Tensor MaxPool3D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 5, .max_rank = 5}, at);
  return max_pool3d(x, options_, at);
}

AveragePool3D::AveragePool3D(const Pool3DOptions& options, SourceLocation at)
    : Layer(name_or(options.name, "average_pool3d"), at), options_(window_of(options)) {}

Tensor AveragePool3D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 5, .max_rank = 5}, at);
  return avg_pool3d(x, options_, at);
}

}  // namespace lockstep::nn
