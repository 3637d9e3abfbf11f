// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <cstdint>

namespace lockstep::cpu {

// The first k of each sorted row of x [rows, n], and the places that they come from: [rows, k].
// Either may be undefined.
void sort_rows(const Tensor& x, std::int64_t n, std::int64_t k, bool descending, Tensor& values,
               Tensor& indices);

}  // namespace lockstep::cpu
