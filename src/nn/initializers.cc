// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/initializers.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/random.h>
#include <lockstep/tensor/factory.h>

#include <Eigen/QR>

#include <algorithm>
#include <cmath>

#include "nn/by_name.h"

namespace lockstep::nn {
namespace {

using Distribution = ScaledDistribution;

double fan_of(const Shape& shape, FanMode mode) {
  require(shape.rank() > 0 && shape.num_elements() > 0, SourceLocation{}, "variance_scaling",
          "expected a kernel's shape, got ", shape);
  const auto out = static_cast<double>(shape.dim(-1));
  if (shape.rank() == 1) return out;
  const auto in = static_cast<double>(shape.dim(-2));
  const double taps = static_cast<double>(shape.num_elements()) / (in * out);
  if (mode == FanMode::fan_in) return in * taps;
  return mode == FanMode::fan_out ? out * taps : (in + out) * taps / 2;
}

Tensor scaled(const VarianceScalingOptions& options, const Shape& shape, DType dtype) {
  // The standard deviation of a standard normal that is cut at -2 and 2.
  constexpr double kTruncated = 0.87962566103423978;
  const double variance = options.scale / std::max(1.0, fan_of(shape, options.mode));
  if (options.distribution == Distribution::uniform) {
    const double limit = std::sqrt(3 * variance);
    return uniform(shape, -limit, limit, dtype);
  }
  const double stddev = std::sqrt(variance);
  if (options.distribution == Distribution::untruncated_normal)
    return normal(shape, 0, stddev, dtype);
  return lockstep::truncated_normal(shape, 0, stddev / kTruncated, dtype);
}

// Signs are those for which R has a positive diagonal, so that all orthogonal matrices are equally
// likely (arXiv:math-ph/0609050).
Eigen::MatrixXd orthonormal_columns(std::int64_t rows, std::int64_t columns) {
  const std::vector<double> numbers = normal({columns, rows}, 0, 1, DType::f64).to_vector<double>();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(
      Eigen::Map<const Eigen::MatrixXd>(numbers.data(), rows, columns));
  Eigen::MatrixXd q = qr.householderQ() * Eigen::MatrixXd::Identity(rows, columns);
  for (std::int64_t j = 0; j < columns; ++j)
    if (qr.matrixQR()(j, j) < 0) q.col(j) *= -1;
  return q;
}

Tensor orthogonal_of(double gain, const Shape& shape, DType dtype) {
  require(shape.rank() >= 2, SourceLocation{}, "orthogonal",
          "expected a shape of rank 2 or more, got ", shape);
  const std::int64_t columns = shape.dim(-1);
  const std::int64_t rows = columns ? shape.num_elements() / columns : 0;
  if (shape.num_elements() == 0) return lockstep::zeros(shape, dtype);
  Eigen::MatrixXd q = orthonormal_columns(std::max(rows, columns), std::min(rows, columns));
  if (rows < columns) q = q.transpose().eval();
  const Tensor matrix = make_tensor<double>(shape, [&](std::span<double> elements) {
    Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        elements.data(), rows, columns) = gain * q;
  });
  return cast(matrix, dtype);
}

const ByName<Initializer>& known() {
  static const ByName<Initializer> initializers{
      {"zeros", zeros},
      {"ones", ones},
      {"constant", constant(0)},
      {"identity", identity()},
      {"random_normal", random_normal()},
      {"truncated_normal", truncated_normal()},
      {"random_uniform", random_uniform()},
      {"orthogonal", orthogonal()},
      {"variance_scaling", variance_scaling()},
      {"glorot_uniform", glorot_uniform},
      {"glorot_normal", glorot_normal},
      {"he_uniform", he_uniform},
      {"he_normal", he_normal},
      {"lecun_uniform", lecun_uniform},
      {"lecun_normal", lecun_normal},
  };
  return initializers;
}

}  // namespace

Tensor zeros(const Shape& shape, DType dtype) { return lockstep::zeros(shape, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return lockstep::ones(shape, dtype); }

Initializer constant(double value) {
  return [value](const Shape& shape, DType dtype) { return full(shape, value, dtype); };
}

Initializer identity(double gain) {
  return [gain](const Shape& shape, DType dtype) {
    require(shape.rank() == 2, SourceLocation{}, "identity", "expected a shape of rank 2, got ",
            shape);
    return eye(shape[0], shape[1], dtype) * gain;
  };
}

Initializer random_normal(const RandomNormalOptions& options) {
  return [options](const Shape& shape, DType dtype) {
    return normal(shape, options.mean, options.stddev, dtype);
  };
}

Initializer truncated_normal(const RandomNormalOptions& options) {
  return [options](const Shape& shape, DType dtype) {
    return lockstep::truncated_normal(shape, options.mean, options.stddev, dtype);
  };
}

Initializer random_uniform(const RandomUniformOptions& options) {
  return [options](const Shape& shape, DType dtype) {
    return uniform(shape, options.minval, options.maxval, dtype);
  };
}

Initializer orthogonal(double gain) {
  return [gain](const Shape& shape, DType dtype) { return orthogonal_of(gain, shape, dtype); };
}

Initializer variance_scaling(const VarianceScalingOptions& options) {
  require(options.scale > 0, SourceLocation{}, "variance_scaling", "expected a scale above 0, got ",
          options.scale);
  return [options](const Shape& shape, DType dtype) { return scaled(options, shape, dtype); };
}

Tensor glorot_uniform(const Shape& shape, DType dtype) {
  return scaled({.mode = FanMode::fan_avg, .distribution = Distribution::uniform}, shape, dtype);
}
Tensor glorot_normal(const Shape& shape, DType dtype) {
  return scaled({.mode = FanMode::fan_avg}, shape, dtype);
}
Tensor he_uniform(const Shape& shape, DType dtype) {
  return scaled({.scale = 2, .distribution = Distribution::uniform}, shape, dtype);
}
Tensor he_normal(const Shape& shape, DType dtype) { return scaled({.scale = 2}, shape, dtype); }
Tensor lecun_uniform(const Shape& shape, DType dtype) {
  return scaled({.distribution = Distribution::uniform}, shape, dtype);
}
Tensor lecun_normal(const Shape& shape, DType dtype) { return scaled({}, shape, dtype); }

Initializer initializers::get(std::string_view name, SourceLocation at) {
  return by_name("initializers::get", known(), name, at);
}

std::vector<std::string> initializers::names() { return names_in(known()); }

}  // namespace lockstep::nn
