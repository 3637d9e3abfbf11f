// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <optional>

namespace lockstep {

struct AttentionOptions {
  bool causal = false;               // query i sees the keys up to the i-th only
  std::optional<double> scale = {};  // of the products; 1 / sqrt(dim) unless given
};

// softmax(scale q k' + mask) v (arXiv:1706.03762): q [.., queries, dim], k [.., keys, dim], v [..,
// keys, out], the same axes before, such as batch and heads; the result is [.., queries, out].
// `mask` may be undefined; it broadcasts to [.., queries, keys] and is boolean, true where a query
// sees a key, or of the dtype of q and added, where minus infinity hides a key. A query that sees no
// key, as when there are none, gives zeros.
//
// Floating dtypes, the same for all; 16 bits are computed in float and rounded once. Gradients reach
// q, k, v and a mask that is added. On the host, memory beside arguments and results is a few hundred
// KiB and one number per query: no more products than fit there exist at a time. Where the device has
// no kernels for this, the result is composed of other ops. Throws InvalidArgument, naming the shapes
// or dtypes, for what does not fit.
LOCKSTEP_EXPORT Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k,
                                                    const Tensor& v, const Tensor& mask = Tensor(),
                                                    const AttentionOptions& options = {},
                                                    SourceLocation at = SourceLocation::current());

}  // namespace lockstep
