// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::nn {

// Makes the first value of a layer's variable. Random ones draw from the thread's RandomState: in a
// strategy's scope the strategy's, so that its seed decides. Names and formulas are Keras's.
using Initializer = std::function<Tensor(const Shape& shape, DType dtype)>;

LOCKSTEP_EXPORT Tensor zeros(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor ones(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Initializer constant(double value);
// gain where the row is the column, else 0. Throws InvalidArgument when asked for another rank than
// 2.
LOCKSTEP_EXPORT Initializer identity(double gain = 1);

struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
};
LOCKSTEP_EXPORT Initializer random_normal(const RandomNormalOptions& options = {});
// The same cut at two standard deviations from the mean.
LOCKSTEP_EXPORT Initializer truncated_normal(const RandomNormalOptions& options = {});

struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
};
LOCKSTEP_EXPORT Initializer random_uniform(const RandomUniformOptions& options = {});

// gain times a matrix [product of the extents before the last, last] whose columns, or rows where
// they are fewer, are orthonormal: the QR decomposition of a normal one (arXiv:1312.6120). Throws
// InvalidArgument when asked for a rank below 2.
LOCKSTEP_EXPORT Initializer orthogonal(double gain = 1);

// The fans of a kernel [.., in, out] are in and out, times the extents before them: [in, out] of a
// dense layer, [height, width, in, out] of a convolution. A shape of rank 1 counts as both.
enum class FanMode { fan_in, fan_out, fan_avg };
// Normal distributions are truncated at two standard deviations of the normal that is cut, and
// have the standard deviation asked for after that.
enum class ScaledDistribution { truncated_normal, untruncated_normal, uniform };
struct VarianceScalingOptions {
  double scale = 1;
  FanMode mode = FanMode::fan_in;
  ScaledDistribution distribution = ScaledDistribution::truncated_normal;
};
// With mean 0 and variance scale / fan. Throws InvalidArgument unless scale is positive, and when
// asked for a scalar or an empty shape.
LOCKSTEP_EXPORT Initializer variance_scaling(const VarianceScalingOptions& options = {});

// Uniform in [-limit, limit], limit = sqrt(6 / (fan_in + fan_out)), and truncated normal with
// variance 2 / (fan_in + fan_out) (Glorot and Bengio, 2010).
LOCKSTEP_EXPORT Tensor glorot_uniform(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor glorot_normal(const Shape& shape, DType dtype = DType::f32);
// With variance 2 / fan_in (He et al., arXiv:1502.01852).
LOCKSTEP_EXPORT Tensor he_uniform(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor he_normal(const Shape& shape, DType dtype = DType::f32);
// With variance 1 / fan_in (LeCun et al., 1998).
LOCKSTEP_EXPORT Tensor lecun_uniform(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor lecun_normal(const Shape& shape, DType dtype = DType::f32);

namespace initializers {

// By name, with its default options: "he_normal", also as Keras's class is called, "HeNormal".
// Throws InvalidArgument with all names for one that is not known.
LOCKSTEP_EXPORT Initializer get(std::string_view name,
                                SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT std::vector<std::string> names();

}  // namespace initializers

}  // namespace lockstep::nn
