// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// The derivative of a product for each of its factors: the product, over the axes where `reduced` is
// true, of all elements but this one; of x's shape. Right where factors are 0, and made of public
// ops, so that it has gradients itself.
Tensor products_of_others(const Tensor& x, const bool (&reduced)[Shape::kMaxRank]);

}  // namespace lockstep
