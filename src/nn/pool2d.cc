// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/pool2d.h>

namespace lockstep::nn {
namespace {

Pool2dOptions window_of(const Pool2DOptions& options) {
  return {.window = options.pool_size,
          .strides = options.strides.value_or(options.pool_size),
          .padding = options.padding};
}

std::string name_or(const std::string& name, const char* fallback) {
  return name.empty() ? fallback : name;
}

}  // namespace

MaxPool2D::MaxPool2D(const Pool2DOptions& options, SourceLocation at)
    : Layer(name_or(options.name, "max_pool2d"), at), options_(window_of(options)) {}

Tensor MaxPool2D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 4, .max_rank = 4}, at);
  return max_pool2d(x, options_, at);
}

AveragePool2D::AveragePool2D(const Pool2DOptions& options, SourceLocation at)
    : Layer(name_or(options.name, "average_pool2d"), at), options_(window_of(options)) {}

Tensor AveragePool2D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 4, .max_rank = 4}, at);
  return avg_pool2d(x, options_, at);
}

}  // namespace lockstep::nn
