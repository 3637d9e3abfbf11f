// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>
#include <lockstep/ops/pool.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct Pool2DOptions {
  Size2d pool_size = 2;
  std::optional<Size2d> strides = {};  // unset: the pool size
  Padding padding = Padding::valid;
  std::string name = {};  // empty: "max_pool2d", "average_pool2d"
};

// The maximum of each window of the images x [batch, height, width, channels], per channel
// (ops/pool.h).
class LOCKSTEP_EXPORT MaxPool2D : public Layer {
 public:
  explicit MaxPool2D(const Pool2DOptions& options = {},
                     SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[max_pool2d] ..." for another rank than 4.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  Pool2dOptions options_;
};

// The mean of each window, over its pixels inside the image.
class LOCKSTEP_EXPORT AveragePool2D : public Layer {
 public:
  explicit AveragePool2D(const Pool2DOptions& options = {},
                         SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[average_pool2d] ..." for another rank than 4.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  Pool2dOptions options_;
};

}  // namespace lockstep::nn
