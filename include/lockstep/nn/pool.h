// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>
#include <lockstep/ops/pool.h>

#include <optional>
#include <string>

namespace lockstep::nn {

template <int axes>
struct PoolNDOptions {
  SizeNd<axes> pool_size = 2;
  std::optional<SizeNd<axes>> strides = {};  // unset: the pool size
  Padding padding = Padding::valid;
  std::string name = {};  // empty: "max_pool2d", "average_pool2d", with the number of axes
};

// The maximum of each window of sequences, images or volumes x [batch, extents.., channels], per
// channel (ops/pool.h).
template <int axes>
class LOCKSTEP_EXPORT MaxPoolND : public Layer {
 public:
  explicit MaxPoolND(const PoolNDOptions<axes>& options = {},
                     SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[<name>] ..." for another rank than axes + 2.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  PoolNdOptions<axes> options_;
};

// The mean of each window, over its elements inside what is padded.
template <int axes>
class LOCKSTEP_EXPORT AveragePoolND : public Layer {
 public:
  explicit AveragePoolND(const PoolNDOptions<axes>& options = {},
                         SourceLocation at = SourceLocation::current());
  // Throws InvalidArgument "[<name>] ..." for another rank than axes + 2.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

 private:
  PoolNdOptions<axes> options_;
};

using MaxPool1D = MaxPoolND<1>;
using MaxPool2D = MaxPoolND<2>;
using MaxPool3D = MaxPoolND<3>;
using AveragePool1D = AveragePoolND<1>;
using AveragePool2D = AveragePoolND<2>;
using AveragePool3D = AveragePoolND<3>;
using Pool1DOptions = PoolNDOptions<1>;
using Pool2DOptions = PoolNDOptions<2>;
using Pool3DOptions = PoolNDOptions<3>;

extern template class MaxPoolND<1>;
extern template class MaxPoolND<2>;
extern template class MaxPoolND<3>;
extern template class AveragePoolND<1>;
extern template class AveragePoolND<2>;
extern template class AveragePoolND<3>;

}  // namespace lockstep::nn
