// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>

namespace lockstep {

// The extents of scaled dot product attention: `heads` times q [queries, dim], k [keys, dim], v [keys,
// out]. A mask is read through axes before queries and keys that it may lack or have with extent 1.
struct Attention {
  Shape lead = {};  // its product is `heads`
  std::int64_t heads = 1, queries = 0, keys = 0, dim = 0, out = 0;
  double scale = 1;
  bool causal = false;
};

// Gradients; those not wanted are undefined.
struct AttentionGradients {
  Tensor q = {}, k = {}, v = {}, mask = {};
};

namespace cpu {

// On host tensors of f32 or f64 without gaps; mask may be undefined. Any extent may be zero. Scratch
// memory comes from the pool of y's device.

// Writes y and log_sums [heads, queries], which the gradient takes.
void attend(const Attention& attention, const Tensor& q, const Tensor& k, const Tensor& v,
            const Tensor& mask, Tensor& log_sums, Tensor& y);
// Writes what is defined in `to`; a gradient of a mask only where it is added.
void attend_gradient(const Attention& attention, const Tensor& dy, const Tensor& q, const Tensor& k,
                     const Tensor& v, const Tensor& mask, const Tensor& log_sums, const Tensor& y,
                     AttentionGradients& to);

}  // namespace cpu
}  // namespace lockstep
