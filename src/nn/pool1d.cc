// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/pool1d.h>

namespace lockstep::nn {
namespace {

Pool1dOptions window_of(const Pool1DOptions& options) {
  return {.window = options.pool_size,
          .strides = options.strides.value_or(options.pool_size),
          .padding = options.padding};
}

std::string name_or(const std::string& name, const char* fallback) {
  return name.empty() ? fallback : name;
}

}  // namespace

MaxPool1D::MaxPool1D(const Pool1DOptions& options, SourceLocation at)
    : Layer(name_or(options.name, "max_pool1d"), at), options_(window_of(options)) {}

Tensor MaxPool1D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 3, .max_rank = 3}, at);
  return max_pool1d(x, options_, at);
}

AveragePool1D::AveragePool1D(const Pool1DOptions& options, SourceLocation at)
    : Layer(name_or(options.name, "average_pool1d"), at), options_(window_of(options)) {}

Tensor AveragePool1D::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {.min_rank = 3, .max_rank = 3}, at);
  return avg_pool1d(x, options_, at);
}

}  // namespace lockstep::nn
