// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/softmax.h>
#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <cstdint>
#include <optional>

namespace lockstep::nn {

// Losses per example: labels first, as in TensorFlow (ops/softmax.h).
using lockstep::sigmoid_cross_entropy;
using lockstep::softmax_cross_entropy;
using lockstep::sparse_softmax_cross_entropy;

// The mean over the last axis of (targets - predictions)^2: [.., n] to [..]. Throws InvalidArgument
// when shapes or dtypes differ, for a scalar and for a dtype that is not floating.
LOCKSTEP_EXPORT Tensor mean_squared_error(const Tensor& targets, const Tensor& predictions,
                                          SourceLocation at = SourceLocation::current());

// A number of examples: any integer; floating numbers and tensors do not compile.
class ExampleCount {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr ExampleCount(T count) : count_(static_cast<std::int64_t>(count)) {}  // NOLINT: a number
  constexpr std::int64_t value() const { return count_; }

 private:
  std::int64_t count_;
};

struct AverageLossOptions {
  // Multiplies the losses, of their shape or broadcast to it; a last axis of extent 1 that only one
  // of the two has is ignored. It does not enter the divisor.
  Tensor sample_weight = {};
  // What the sum is divided by: at most one of these.
  std::optional<ExampleCount> global_batch_size = {};  // a fixed number, as in TensorFlow
  Tensor count = {};  // a scalar, for example ReplicaContext::global_count(rows that count here)
};

// This replica's part of the mean loss over the global batch: the sum of all elements of
// `per_example`, [rows, ..], divided by the number of rows on all replicas. Summed over the
// replicas (which is what optimizers do with its gradients) it is the mean, however unevenly the
// rows are dealt. 16-bit losses are summed and divided in f32.
//
// The divisor is the actual number of rows of this step's distributed batch, whose rows
// `per_example` must be; in a step without one the replicas agree on the number of all rows on the
// spot, a collective. (TensorFlow takes its own rows times the number of replicas, which is wrong
// when rows are dealt unevenly.) An explicit divisor is used as it is. A divisor of 0 gives 0.
//
// Throws InvalidArgument for a scalar loss or a dtype that is not floating, for a number of rows
// that is not the batch's (say which count is meant), a negative size, a count that is no scalar or
// two divisors; FailedPrecondition in cross-replica context without an explicit divisor.
LOCKSTEP_EXPORT Tensor compute_average_loss(const Tensor& per_example,
                                            const AverageLossOptions& options = {},
                                            SourceLocation at = SourceLocation::current());

// The sum of `loss` divided by the number of replicas: for penalties that do not depend on the
// data, so that they count once when the replicas' losses are summed. Throws FailedPrecondition in
// cross-replica context.
LOCKSTEP_EXPORT Tensor scale_regularization_loss(const Tensor& loss,
                                                 SourceLocation at = SourceLocation::current());

}  // namespace lockstep::nn
