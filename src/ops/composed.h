// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/cast.h>

#include "ops/half_kernels.h"

namespace lockstep {

// For ops whose only kernels are the host's, and which are composed of other ops on accelerators.
inline bool has_kernels(Device device) {
  return device.is_host() || device.kind == DeviceKind::fake;
}

// x in the dtype that it is computed in, f32 for 16 bits, and back; recorded as any cast.
inline Tensor widened(const Tensor& x) {
  return x.defined() && is_half(x.dtype()) ? cast(x, DType::f32) : x;
}
inline Tensor narrowed(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : cast(x, dtype);
}

}  // namespace lockstep
