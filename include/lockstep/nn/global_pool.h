// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>

#include <string>

namespace lockstep::nn {

struct GlobalPoolOptions {
  bool keep_dims = false;  // [batch, 1, .., channels] instead of [batch, channels]
  std::string name = {};   // empty: "global_max_pool", "global_average_pool"
};

// The maximum of each channel over all places of sequences, images or volumes x [batch, ..,
// channels]: [batch, channels]. Keras's GlobalMaxPooling1D, 2D and 3D.
class LOCKSTEP_EXPORT GlobalMaxPool : public Layer {
 public:
  explicit GlobalMaxPool(const GlobalPoolOptions& options = {},
                         SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[global_max_pool] ..." for a rank below 3 and for an extent of 0 but
  // for the batch.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  bool keep_dims_;
};

// The mean of each channel over all places.
class LOCKSTEP_EXPORT GlobalAveragePool : public Layer {
 public:
  explicit GlobalAveragePool(const GlobalPoolOptions& options = {},
                             SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[global_average_pool] ..." likewise.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  bool keep_dims_;
};

}  // namespace lockstep::nn
