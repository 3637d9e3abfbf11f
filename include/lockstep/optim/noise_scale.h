// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/replica/replica_context.h>
#include <lockstep/replica/variable.h>

#include <cstdint>
#include <memory>

namespace lockstep::optim {

struct GradientNoiseScaleOptions {
  double momentum = 0.95;  // in [0, 1), of the moving averages of what steps tell
};

// How noisy gradients are, and so which global batch is useful: the simple noise scale of McCandlish et
// al. (arXiv:1812.06162, appendix A.1), B = tr(Sigma) / |G|^2, in examples, where G is the gradient of
// the whole data and Sigma the covariance of an example's. A batch far below B takes nearly as few more
// steps as it is smaller; one far above it wastes examples.
//
//   optim::GradientNoiseScale noise;
//   optimizer.measure(noise);         // after making both in the strategy's scope
//   ... noise.result().item<double>()
//
// Estimated from the norms of the replicas' gradients against that of their sum, so it needs two replicas
// with rows, and a distributed batch, which knows the rows of each; the loss is to be their mean
// (nn::compute_average_loss). The rows may differ from step to step, also between those whose gradients
// accumulate. It costs a look at each gradient and a small collective per step.
class LOCKSTEP_EXPORT GradientNoiseScale {
 public:
  // Throws InvalidArgument for a momentum out of range.
  explicit GradientNoiseScale(const GradientNoiseScaleOptions& options = {},
                              SourceLocation at = SourceLocation::current());

  // What optimizers do: takes the squared norms, f64 scalars, of the calling replica's part of a
  // step's gradient and of the sum of all parts. A collective, unless `skip` (a boolean scalar) is
  // known to hold; then, and with fewer than two replicas with rows, nothing changes. The gradient is
  // the mean of those of `calls` steps, of which this is the last: where there are several, count_call is
  // told of each, of the last after update. Throws FailedPrecondition without a distributed batch.
  void update(const Tensor& own_square, const Tensor& sum_square, const Tensor& skip,
              std::int64_t calls = 1, SourceLocation at = SourceLocation::current());
  // One of `calls` steps that make up a gradient: as if it had not been where it is `voted` out, followed
  // by others where it `waits`, the last otherwise; both boolean scalars.
  void count_call(std::int64_t calls, const Tensor& voted, const Tensor& waits);

  // B; NaN before the first step that told something. Negative or infinite where the estimates of
  // |G|^2, which may be below 0 by chance, are.
  Tensor result() const;
  // The moving averages of tr(Sigma) and |G|^2, f64 scalars, which start at 0.
  const Variable& noise() const { return noise_; }
  const Variable& signal() const { return signal_; }

  void visit_state(StateVisitor& visitor);

 private:
  friend class Optimizer;
  // Throws FailedPrecondition unless it belongs to the group and the batch's rows are known.
  void check_step(const std::shared_ptr<ReplicaGroup>& group, SourceLocation at) const;

  const double momentum_;
  Variable noise_, signal_;
  Variable share_, share_square_;  // of the calls up to now, see update
};

}  // namespace lockstep::optim
