// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>
#include <lockstep/ops/window.h>

#include <string>
#include <vector>

namespace lockstep::nn {

struct UpSamplingOptions {
  std::string name = {};  // empty: "up_sampling1d", "up_sampling2d", "up_sampling3d"
};

// Repeats each place of x [batch, .., channels] so many times along each axis between: an image
// [batch, height, width, channels] becomes [batch, size.height * height, size.width * width,
// channels] by Keras's `nearest`. One class for any number of axes, made by one of three names.
class LOCKSTEP_EXPORT UpSampling : public Layer {
 public:
  // Throws InvalidArgument "[up_sampling2d] ..." when x has another number of axes.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 protected:
  // Throws InvalidArgument for a size below 1.
  UpSampling(std::vector<std::int64_t> sizes, const UpSamplingOptions& options, SourceLocation at);

 private:
  std::vector<std::int64_t> sizes_;
};

class LOCKSTEP_EXPORT UpSampling1D : public UpSampling {
 public:
  explicit UpSampling1D(std::int64_t size = 2, const UpSamplingOptions& options = {},
                        SourceLocation at = SourceLocation::current())
      : UpSampling({size}, options, at) {}
};
class LOCKSTEP_EXPORT UpSampling2D : public UpSampling {
 public:
  explicit UpSampling2D(Size2d size = 2, const UpSamplingOptions& options = {},
                        SourceLocation at = SourceLocation::current())
      : UpSampling({size.height, size.width}, options, at) {}
};
class LOCKSTEP_EXPORT UpSampling3D : public UpSampling {
 public:
  explicit UpSampling3D(Size3d size = 2, const UpSamplingOptions& options = {},
                        SourceLocation at = SourceLocation::current())
      : UpSampling({size.depth, size.height, size.width}, options, at) {}
};

}  // namespace lockstep::nn
