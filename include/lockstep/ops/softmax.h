// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// exp(x) / sum(exp(x)) along an axis, and its logarithm x - log(sum(exp(x))). The largest element
// is subtracted first, so that nothing overflows. Of a floating dtype and any shape; an axis of
// extent 0 gives an empty result. Throws InvalidArgument for a scalar, another dtype, or an axis
// out of range.
LOCKSTEP_EXPORT Tensor softmax(const Tensor& x, int axis = -1,
                               SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor log_softmax(const Tensor& x, int axis = -1,
                                   SourceLocation at = SourceLocation::current());

// The loss of each example, -log(softmax(logits)[label]): labels [..] of i32 or i64, logits [..,
// classes] of a floating dtype, the result [..] of that dtype; argument order as in TensorFlow. A
// label outside 0 <= label < classes throws InvalidArgument naming it, its row and the class count;
// so do shapes and dtypes that do not fit. No rows give no losses.
LOCKSTEP_EXPORT Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits,
                                                    SourceLocation at = SourceLocation::current());

// The same for labels that are weights of the classes: -sum(labels * log(softmax(logits))) over the
// last axis; labels [.., classes] of the dtype and shape of the logits. Has gradients for both.
LOCKSTEP_EXPORT Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits,
                                             SourceLocation at = SourceLocation::current());

// For classes that do not exclude each other: the loss of each label, a probability, element by
// element: -labels log(sigmoid(logits)) - (1 - labels) log(sigmoid(-logits)), which is computed as
// max(logits, 0) - labels logits + log(1 + exp(-|logits|)) and does not overflow. Labels are of the
// dtype and shape of the logits. Has gradients for both.
LOCKSTEP_EXPORT Tensor sigmoid_cross_entropy(const Tensor& labels, const Tensor& logits,
                                             SourceLocation at = SourceLocation::current());

}  // namespace lockstep
