// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/optim/noise_scale.h>
#include <lockstep/replica/context.h>

#include <algorithm>
#include <array>

namespace lockstep::optim {
namespace {

constexpr const char* kOp = "GradientNoiseScale";

constexpr double kRounding = 1e-6, kTiny = 1e-300;

Variable average(const char* name, SourceLocation at) {
  return Variable(Tensor(0.0), {.name = name, .trainable = false}, at);
}

// A number of each replica.
Variable own(const char* name, SourceLocation at) {
  return Variable(Tensor(0.0),
                  {.name = name,
                   .trainable = false,
                   .synchronization = VariableSynchronization::on_read,
                   .aggregation = VariableAggregation::sum},
                  at);
}

template <class F>
void change(const Variable& variable, F&& next) {
  update_values(std::array{variable},
                [&](std::array<Tensor, 1>& value) { value[0] = next(value[0]); });
}

// What the replica's rows of this call weigh in the gradient, and the sum of the squared weights.
struct Weights {
  Tensor share, square;
};

Weights weights_of_rows(ReplicaContext& replica, std::int64_t calls, SourceLocation at) {
  const auto rows = replica.batch_rows();
  if (!rows)
    throw FailedPrecondition(
        message(kOp, "expected a step with a distributed batch, whose rows are known"), at);
  const double own = static_cast<double>(rows->local);
  const double weight = 1 / (static_cast<double>(calls) *
                             static_cast<double>(std::max<std::int64_t>(rows->global, 1)));
  return {Tensor(own * weight), Tensor(own * weight * weight)};
}

}  // namespace

GradientNoiseScale::GradientNoiseScale(const GradientNoiseScaleOptions& options, SourceLocation at)
    : momentum_(options.momentum),
      noise_(average("gradient_noise", at)),
      signal_(average("gradient_signal", at)),
      share_(own("gradient_share", at)),
      share_square_(own("gradient_share_square", at)) {
  require(momentum_ >= 0 && momentum_ < 1, at, kOp,
          "expected a momentum of 0 or more and below 1, got ", momentum_);
}

void GradientNoiseScale::check_step(const std::shared_ptr<ReplicaGroup>& group,
                                    SourceLocation at) const {
  if (noise_.group() != group)
    throw FailedPrecondition(
        message(kOp,
                "was made outside the scope of the strategy that runs this step; make it after "
                "`auto scope = strategy.scope();`"),
        at);
  if (!require_replica_context(kOp, at).batch_rows())
    throw FailedPrecondition(
        message(kOp,
                "expected a step with a distributed batch, whose rows are known; give "
                "Strategy::run one"),
        at);
}

// An example of one of n calls with B rows weighs v = 1 / (n B). With s_r the sum of v over replica r's
// examples, and q_r that of v^2, r's part c_r of the gradient g, and the sums s = 1 and q over replicas:
//   E|c_r|^2 = s_r^2 |G|^2 + q_r tr(Sigma),   so that  A = sum of |c_r|^2 / s_r
//   E|g|^2   = |G|^2 + q tr(Sigma)            has      E A = |G|^2 + (sum of q_r / s_r) tr(Sigma)
// share_ and share_square_ are s_r and q_r of the calls before.
void GradientNoiseScale::update(const Tensor& own_square, const Tensor& sum_square,
                                const Tensor& skip, std::int64_t calls, SourceLocation at) {
  const RecorderScope suspended(nullptr);
  if (skip.device().is_host() && skip.item<bool>()) return;
  ReplicaContext& replica = require_replica_context(kOp, at);
  const Weights now = weights_of_rows(replica, calls, at);
  const Tensor share = share_.read() + now.share, of_squares = share_square_.read() + now.square;
  const Tensor inverse = select(greater(share, 0), 1.0 / maximum(share, kTiny), 0);
  const Tensor sums = replica.all_reduce(
      ReduceOp::sum,
      concat({reshape(own_square * inverse, {1}), reshape(of_squares * inverse, {1}),
              reshape(of_squares, {1}), reshape(share, {1})},
             0),
      at);
  const auto sum = [&](std::int64_t i) { return reshape(slice(sums, {i}, {1}), {}); };
  const Tensor squares = sum(2), spread = sum(1) - squares;
  const Tensor unknown = logical_or(
      skip, logical_or(less_equal(spread, squares * kRounding),  // one replica has all the rows
                       greater(abs(sum(3) - 1.0), kRounding)));  // some call was not counted
  const Tensor noise = (sum(0) - sum_square) / maximum(spread, kTiny);
  const auto move = [&](const Variable& variable, const Tensor& now) {
    change(variable, [&](const Tensor& before) {
      return select(unknown, before, before * momentum_ + now * (1 - momentum_));
    });
  };
  move(noise_, noise);
  move(signal_, sum_square - noise * squares);
}

void GradientNoiseScale::count_call(std::int64_t calls, const Tensor& voted, const Tensor& waits) {
  const Weights now = weights_of_rows(require_replica_context(kOp, {}), calls, {});
  const auto count = [&](const Variable& variable, const Tensor& more) {
    change(variable, [&](const Tensor& before) {
      return select(voted, before, select(waits, before + more, 0));
    });
  };
  count(share_, now.share);
  count(share_square_, now.square);
}

Tensor GradientNoiseScale::result() const { return noise_.read() / signal_.read(); }

void GradientNoiseScale::visit_state(StateVisitor& visitor) {
  for (Variable* variable : {&noise_, &signal_, &share_, &share_square_})
    variable->visit_state(visitor);
}

}  // namespace lockstep::optim
