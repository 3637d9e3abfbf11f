// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>

namespace lockstep {

// A normalisation: x seen as [samples, rows, groups, size], with a mean and a variance of each sample
// and group over its rows and size; scale and offset have groups * size elements. `given`: mean and
// variance are arguments, not those of x. Not `centred`: no mean is subtracted; then rows and groups
// are 1.
struct Norm {
  const char* op;
  std::int64_t samples = 1, rows = 1, groups = 1, size = 1;
  double epsilon = 0;
  bool centred = true;
  bool given = false;

  std::int64_t channels() const { return groups * size; }
  std::int64_t statistics() const { return samples * groups; }
  double count() const { return static_cast<double>(rows * size); }
  // Statistics are of whole rows that lie together in memory.
  bool by_row() const { return rows == 1 && groups == 1 && !given; }
};

// Gradients; those not wanted are undefined.
struct NormGradients {
  Tensor x = {}, scale = {}, offset = {}, mean = {}, variance = {};
};

namespace cpu {

// On host tensors of f32 or f64, of which x has elements. scale and offset may be undefined.

// Writes y, and unless given mean (if centred) and variance.
void normalize(const Norm& norm, const Tensor& x, const Tensor& scale, const Tensor& offset,
               Tensor& mean, Tensor& variance, Tensor& y);

// Writes what is defined in `to`. `d` are the gradients of y, mean and variance, which may be
// undefined but for that of y; the latter two are those of statistics of x, for which `to` has none.
void normalize_gradient(const Norm& norm, const NormGradients& d, const Tensor& x,
                        const Tensor& scale, const Tensor& mean, const Tensor& variance,
                        NormGradients& to);

}  // namespace cpu
}  // namespace lockstep
