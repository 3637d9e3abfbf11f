// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/optim/noise_scale.h>
#include <lockstep/replica/context.h>

#include <array>

namespace lockstep::optim {
namespace {

constexpr const char* kOp = "GradientNoiseScale";

Variable average(const char* name, SourceLocation at) {
  return Variable(Tensor(0.0), {.name = name, .trainable = false}, at);
}

}  // namespace

GradientNoiseScale::GradientNoiseScale(const GradientNoiseScaleOptions& options, SourceLocation at)
    : momentum_(options.momentum),
      noise_(average("gradient_noise", at)),
      signal_(average("gradient_signal", at)) {
  require(momentum_ >= 0 && momentum_ < 1, at, kOp,
          "expected a momentum of 0 or more and below 1, got ", momentum_);
}

// With b_r rows on replica r of R, B in all, whose part of the gradient is c_r = b_r / B g_r:
//   E|g_r|^2 = |G|^2 + tr(Sigma) / b_r,   so that  A = sum of b_r / B |g_r|^2 = B sum of |c_r|^2 / b_r
//   E|g|^2   = |G|^2 + tr(Sigma) / B      has      E A = |G|^2 + R tr(Sigma) / B
void GradientNoiseScale::update(const Tensor& own_square, const Tensor& sum_square,
                                const Tensor& skip, std::int64_t calls, SourceLocation at) {
  const RecorderScope suspended(nullptr);
  ReplicaContext& replica = require_replica_context(kOp, at);
  const auto rows = replica.batch_rows();
  if (!rows)
    throw FailedPrecondition(
        message(kOp, "expected a step with a distributed batch, whose rows are known"), at);
  if (skip.device().is_host() && skip.item<bool>()) return;
  const bool takes_part = rows->local > 0;
  const Tensor weight(takes_part ? 1 / static_cast<double>(rows->local) : 0.0),
      part(takes_part ? 1.0 : 0.0), all(static_cast<double>(rows->global));
  const Tensor sums = replica.all_reduce(
      ReduceOp::sum, concat({reshape(own_square * weight, {1}), reshape(part, {1})}, 0), at);
  const Tensor a = reshape(slice(sums, {0}, {1}), {}) * all,
               replicas = reshape(slice(sums, {1}, {1}), {});
  const Tensor unknown = logical_or(skip, less(replicas, 2.0));
  const Tensor of_batch = (a - sum_square) / maximum(replicas - 1.0, 1.0);  // tr(Sigma) / B
  const auto move = [&](const Variable& variable, const Tensor& now) {
    update_values(std::array{variable}, [&](std::array<Tensor, 1>& value) {
      value[0] = select(unknown, value[0], value[0] * momentum_ + now * (1 - momentum_));
    });
  };
  move(noise_, of_batch * all * static_cast<double>(calls));
  move(signal_, sum_square - of_batch);
}

Tensor GradientNoiseScale::result() const { return noise_.read() / signal_.read(); }

void GradientNoiseScale::visit_state(StateVisitor& visitor) {
  noise_.visit_state(visitor);
  signal_.visit_state(visitor);
}

}  // namespace lockstep::optim
