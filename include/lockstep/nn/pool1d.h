// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>
#include <lockstep/ops/pool.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct Pool1DOptions {
  std::int64_t pool_size = 2;
  std::optional<std::int64_t> strides = {};  // unset: the pool size
  Padding padding = Padding::valid;
  std::string name = {};  // empty: "max_pool1d", "average_pool1d"
};

// The maximum of each window of the sequences x [batch, width, channels], per channel
// (ops/pool.h).
class LOCKSTEP_EXPORT MaxPool1D : public Layer {
 public:
  explicit MaxPool1D(const Pool1DOptions& options = {},
                     SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[max_pool1d] ..." for another rank than 3.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  Pool1dOptions options_;
};

// The mean of each window, over its elements inside what is padded.
class LOCKSTEP_EXPORT AveragePool1D : public Layer {
 public:
  explicit AveragePool1D(const Pool1DOptions& options = {},
                         SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[average_pool1d] ..." for another rank than 3.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  Pool1dOptions options_;
};

}  // namespace lockstep::nn
