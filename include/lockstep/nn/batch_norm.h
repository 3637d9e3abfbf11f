// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>
#include <lockstep/replica/replica_context.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct BatchNormOptions {
  double momentum = 0.99;  // of the moving statistics
  double epsilon = 1e-3;   // added to the variance
  bool center = true;      // learns an offset, beta
  bool scale = true;       // learns a factor, gamma
  // Normalises by the rows of all replicas: two all_reduces of channels + 1 numbers forward and two
  // backward, instead of one forward.
  bool synchronized = false;
  Initializer beta_initializer = zeros;
  Initializer gamma_initializer = ones;
  Initializer moving_mean_initializer = zeros;
  Initializer moving_variance_initializer = ones;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "batch_norm";
};

// (x - mean) / sqrt(variance + epsilon) * gamma + beta of x [.., channels], each channel over all
// other axes (arXiv:1502.03167). In training mean and variance (not corrected for the count) are
// the batch's; otherwise they are moving averages, which each call in training moves:
// moving * momentum + batch * (1 - momentum).
//
// A replica normalises by its own rows, or with `synchronized` by those of all replicas, each of
// which counts alike however unevenly they are dealt, and gradients flow to all that they came
// from. The moving averages are equal on all replicas, to the last bit: `synchronized` they follow
// the statistics of all rows, otherwise the mean of the replicas' statistics weighted by their
// rows. So a call in training is a collective: every replica makes it, with rows or without. Rows
// that are padding (distribute/tpu.h) count nowhere, where the first axis of x is the batch's;
// without any rows the averages stay.
//
// Variables: "<name>/gamma" and "<name>/beta", and not trainable "<name>/moving_mean" and
// "<name>/moving_variance", all [channels], f32 where x is of 16 bits.
class LOCKSTEP_EXPORT BatchNorm : public Layer {
 public:
  // Throws InvalidArgument for channels below 1, a momentum outside 0 to 1, an epsilon below 0, or
  // a dtype that is not floating.
  explicit BatchNorm(std::int64_t channels, const BatchNormOptions& options = {},
                     SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[batch_norm] ..." when x is of rank below 2, of other channels or
  // another dtype. In cross-replica context the rows of x are all there are.
  Tensor operator()(const Tensor& x, CallOptions options = {},
                    SourceLocation at = SourceLocation::current()) const;

  const std::optional<Variable>& gamma() const { return gamma_; }
  const std::optional<Variable>& beta() const { return beta_; }
  const Variable& moving_mean() const { return moving_mean_; }
  const Variable& moving_variance() const { return moving_variance_; }
  std::int64_t input_size() const { return moving_mean_.shape()[0]; }
  std::int64_t output_size(std::int64_t) const { return input_size(); }

 private:
  // Of each channel, [channels], and of how many elements, a scalar; all 0 of none.
  struct Statistics {
    Tensor mean, variance, count;
  };
  std::optional<Variable> add_if(bool wanted, const char* role, std::int64_t channels,
                                 const Initializer& initializer);
  static Statistics statistics_of(const Tensor& x,
                                  const std::optional<ReplicaContext::CountedRows>& counted,
                                  ReplicaContext* replica, SourceLocation at);
  Tensor in_training(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                     SourceLocation at) const;
  void move_averages(Statistics batch, ReplicaContext* replica, SourceLocation at) const;

  double momentum_, epsilon_;
  bool synchronized_;
  std::optional<Variable> gamma_, beta_;
  Variable moving_mean_, moving_variance_;
};

}  // namespace lockstep::nn
