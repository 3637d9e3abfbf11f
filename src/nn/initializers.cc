// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/initializers.h>
#include <lockstep/ops/random.h>
#include <lockstep/tensor/factory.h>

#include <cmath>

namespace lockstep::nn {
namespace {

struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape, const char* op) {
  require(shape.rank() > 0 && shape.num_elements() > 0, SourceLocation{}, op,
          "expected a kernel's shape, got ", shape);
  const auto out = static_cast<double>(shape.dim(-1));
  if (shape.rank() == 1) return {out, out};
  const auto in = static_cast<double>(shape.dim(-2));
  const double taps = static_cast<double>(shape.num_elements()) / (in * out);
  return {in * taps, out * taps};
}

}  // namespace

Tensor glorot_uniform(const Shape& shape, DType dtype) {
  const Fans fans = fans_of(shape, "glorot_uniform");
  const double limit = std::sqrt(6 / (fans.in + fans.out));
  return uniform(shape, -limit, limit, dtype);
}

Tensor he_normal(const Shape& shape, DType dtype) {
  // The standard deviation of a standard normal that is cut at -2 and 2.
  constexpr double kTruncated = 0.87962566103423978;
  const Fans fans = fans_of(shape, "he_normal");
  return truncated_normal(shape, 0, std::sqrt(2 / fans.in) / kTruncated, dtype);
}

Tensor zeros(const Shape& shape, DType dtype) { return lockstep::zeros(shape, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return lockstep::ones(shape, dtype); }

Initializer constant(double value) {
  return [value](const Shape& shape, DType dtype) { return full(shape, value, dtype); };
}

}  // namespace lockstep::nn
