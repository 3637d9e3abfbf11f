// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>
#include <lockstep/ops/pool.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct Pool3DOptions {
  Size3d pool_size = 2;
  std::optional<Size3d> strides = {};  // unset: the pool size
  Padding padding = Padding::valid;
  std::string name = {};  // empty: "max_pool3d", "average_pool3d"
};

// The maximum of each window of the volumes x [batch, depth, height, width, channels], per channel
// (ops/pool.h).
class LOCKSTEP_EXPORT MaxPool3D : public Layer {
 public:
  explicit MaxPool3D(const Pool3DOptions& options = {},
                     SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[max_pool3d] ..." for another rank than 5.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  Pool3dOptions options_;
};

// The mean of each window, over its elements inside what is padded.
class LOCKSTEP_EXPORT AveragePool3D : public Layer {
 public:
  explicit AveragePool3D(const Pool3DOptions& options = {},
                         SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[average_pool3d] ..." for another rank than 5.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  Pool3dOptions options_;
};

}  // namespace lockstep::nn
