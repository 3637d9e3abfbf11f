// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/softmax.h>
#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::nn {

// Losses per example: labels first, as in TensorFlow (ops/softmax.h).
using lockstep::sigmoid_cross_entropy;
using lockstep::softmax_cross_entropy;
using lockstep::sparse_softmax_cross_entropy;

// Keras's losses per example, by its formulas: targets t and predictions p [.., n] of one shape
// give losses [..]; what is not said to be a sum is a mean over the last axis. Targets, of any
// dtype, are converted to that of the predictions, which is floating; predictions of 16 bits are
// cast to f32, and so is the loss. No rows give no losses. All have gradients for predictions and
// floating targets. Throw InvalidArgument "[<name>] ..." for undefined tensors, shapes that differ,
// a scalar, predictions that are not floating, and options out of range.

// (t - p)^2, |t - p| and 100 |t - p| / max(|t|, 1e-7).
LOCKSTEP_EXPORT Tensor mean_squared_error(const Tensor& targets, const Tensor& predictions,
                                          SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor mean_absolute_error(const Tensor& targets, const Tensor& predictions,
                                           SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor
mean_absolute_percentage_error(const Tensor& targets, const Tensor& predictions,
                               SourceLocation at = SourceLocation::current());
// (log(1 + t) - log(1 + p))^2, of what is above 1e-7.
LOCKSTEP_EXPORT Tensor
mean_squared_logarithmic_error(const Tensor& targets, const Tensor& predictions,
                               SourceLocation at = SourceLocation::current());

struct HuberOptions {
  double delta = 1;
};
// (t - p)^2 / 2 where |t - p| is at most delta, else delta |t - p| - delta^2 / 2.
LOCKSTEP_EXPORT Tensor huber(const Tensor& targets, const Tensor& predictions,
                             const HuberOptions& options = {},
                             SourceLocation at = SourceLocation::current());
// log(cosh(p - t))
LOCKSTEP_EXPORT Tensor log_cosh(const Tensor& targets, const Tensor& predictions,
                                SourceLocation at = SourceLocation::current());

struct CrossentropyOptions {
  // Predictions are logits; otherwise probabilities, which are kept 1e-7 away from 0 and 1.
  bool from_logits = false;
  // From 0 to 1: this part of each target is spread equally over all classes, of two or n.
  double label_smoothing = 0;
};
// -t log(p) - (1 - t) log(1 - p): of classes that do not exclude each other.
LOCKSTEP_EXPORT Tensor binary_crossentropy(const Tensor& targets, const Tensor& predictions,
                                           const CrossentropyOptions& options = {},
                                           SourceLocation at = SourceLocation::current());
// The sum of -t log(p / sum(p)): targets are weights of n classes, 1 for the right one.
LOCKSTEP_EXPORT Tensor categorical_crossentropy(const Tensor& targets, const Tensor& predictions,
                                                const CrossentropyOptions& options = {},
                                                SourceLocation at = SourceLocation::current());
struct SparseCrossentropyOptions {
  bool from_logits = false;
};
// The same for targets [..] of an integer dtype that number the right class. Throws InvalidArgument
// where a number is no class (ops/softmax.h).
LOCKSTEP_EXPORT Tensor sparse_categorical_crossentropy(
    const Tensor& targets, const Tensor& predictions, const SparseCrossentropyOptions& options = {},
    SourceLocation at = SourceLocation::current());

// max(1 - t p, 0) and its square, targets being -1 or 1; where all of them are 0 or 1, 0 stands for
// -1. categorical_hinge: max(1 + max((1 - t) p) - sum(t p), 0) for targets of 0 and 1.
LOCKSTEP_EXPORT Tensor hinge(const Tensor& targets, const Tensor& predictions,
                             SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor squared_hinge(const Tensor& targets, const Tensor& predictions,
                                     SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor categorical_hinge(const Tensor& targets, const Tensor& predictions,
                                         SourceLocation at = SourceLocation::current());
// The sum of t log(t / p), of what is above 1e-7 and at most 1.
LOCKSTEP_EXPORT Tensor kl_divergence(const Tensor& targets, const Tensor& predictions,
                                     SourceLocation at = SourceLocation::current());
// p - t log(p + 1e-7)
LOCKSTEP_EXPORT Tensor poisson(const Tensor& targets, const Tensor& predictions,
                               SourceLocation at = SourceLocation::current());
// Minus the sum of t p, both divided by their norms: -1 for vectors of one direction, 1 for
// opposite.
LOCKSTEP_EXPORT Tensor cosine_similarity(const Tensor& targets, const Tensor& predictions,
                                         SourceLocation at = SourceLocation::current());

using Loss = std::function<Tensor(const Tensor& targets, const Tensor& predictions)>;

namespace losses {

// By name, with its default options: "mean_squared_error", also "mse" and "MeanSquaredError".
// Throws InvalidArgument with all names for one that is not known.
LOCKSTEP_EXPORT Loss get(std::string_view name, SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT std::vector<std::string> names();

}  // namespace losses

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
