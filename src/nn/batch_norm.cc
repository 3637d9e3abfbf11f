// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/batch_norm.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/norm.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include <numeric>

#include "nn/norm_layers.h"
#include "replica/counted_rows.h"

namespace lockstep::nn {

namespace {

using Counted = std::optional<ReplicaContext::CountedRows>;

ReduceOptions all_but_last(const Tensor& x) {
  std::vector<int> axes(static_cast<std::size_t>(x.rank() - 1));
  std::iota(axes.begin(), axes.end(), 0);
  return {.axes = std::move(axes)};
}

// The elements of a channel that count.
Tensor count_of(const Tensor& x, const Counted& counted, DType dtype) {
  const std::int64_t rows = x.dim(0);
  const std::int64_t all = x.num_elements() / x.dim(-1);
  if (!counted || rows == 0) return full(Shape{}, static_cast<double>(all), dtype);
  return sum(cast(counted->own, dtype)) * static_cast<double>(all / rows);
}

// These sums over all replicas, by one collective; the sums themselves without a replica.
std::vector<Tensor> over_replicas(const std::vector<Tensor>& sums, ReplicaContext* replica,
                                  SourceLocation at) {
  if (!replica || replica->num_replicas_in_sync() == 1) return sums;
  std::vector<Tensor> parts;
  std::vector<std::int64_t> extents;
  for (const Tensor& part : sums) {
    extents.push_back(part.num_elements());
    parts.push_back(reshape(part, {part.num_elements()}));
  }
  std::vector<Tensor> all =
      split(replica->all_reduce(ReduceOp::sum, concat(parts, 0), at), extents, 0);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = reshape(all[i], sums[i].shape());
  return all;
}

Tensor divisor(const Tensor& count) { return select(equal(count, 0), 1, count); }

const BatchNormOptions& checked(std::int64_t channels, const BatchNormOptions& options,
                                SourceLocation at) {
  check_norm("BatchNorm", channels, options.epsilon, at);
  require(options.momentum >= 0 && options.momentum <= 1, at, "BatchNorm",
          "expected a momentum from 0 to 1, got ", options.momentum);
  return options;
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t channels, const BatchNormOptions& options, SourceLocation at)
    : Layer(options.name, options.dtype, at),
      momentum_(checked(channels, options, at).momentum),
      epsilon_(options.epsilon),
      synchronized_(options.synchronized),
      gamma_(add_if(options.scale, "gamma", channels, options.gamma_initializer)),
      beta_(add_if(options.center, "beta", channels, options.beta_initializer)),
      moving_mean_(add_norm_variable("moving_mean", Shape{channels},
                                     options.moving_mean_initializer, false)),
      moving_variance_(add_norm_variable("moving_variance", Shape{channels},
                                         options.moving_variance_initializer, false)) {}

std::optional<Variable> BatchNorm::add_if(bool wanted, const char* role, std::int64_t channels,
                                          const Initializer& initializer) {
  if (!wanted) return std::nullopt;
  return add_norm_variable(role, Shape{channels}, initializer);
}

Tensor BatchNorm::operator()(const Tensor& x, CallOptions options, SourceLocation at) const {
  const Tensor input = computed(x, {.min_rank = 2, .size = input_size()}, at);
  const Tensor gamma = gamma_ ? gamma_->read(at) : Tensor();
  const Tensor beta = beta_ ? beta_->read(at) : Tensor();
  if (options.training) return in_training(input, gamma, beta, at);
  return batch_norm_inference(input, moving_mean_.read(at), moving_variance_.read(at), gamma, beta,
                              {.epsilon = epsilon_}, at);
}

// Sums are those of this replica's rows that count, and of all replicas' where `replica` is given.
// The mean is known before squares are summed, so that no digits cancel.
BatchNorm::Statistics BatchNorm::statistics_of(const Tensor& x, const Counted& counted,
                                               ReplicaContext* replica, SourceLocation at) {
  const auto kept = [&](const Tensor& t) { return counted ? without_padding(t, *counted) : t; };
  const ReduceOptions axes = all_but_last(x);
  const auto totals =
      over_replicas({sum(kept(x), axes, at), count_of(x, counted, x.dtype())}, replica, at);
  const Tensor count = stop_gradient(totals[1], at);
  const Tensor mean = totals[0] / divisor(count);
  const Tensor squares = sum(kept(squared_difference(Operand(x, at), mean)), axes, at);
  return {mean, over_replicas({squares}, replica, at)[0] / divisor(count), count};
}

Tensor BatchNorm::in_training(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                              SourceLocation at) const {
  const Counted counted = counted_rows_of(x);
  ReplicaContext* const replica = get_replica_context();
  if (!synchronized_ && !counted) {
    const BatchNormResult normal = lockstep::batch_norm(x, gamma, beta, {.epsilon = epsilon_}, at);
    move_averages({normal.mean, normal.variance, count_of(x, counted, moving_mean_.dtype())},
                  replica, at);
    return normal.y;
  }
  const Statistics batch = statistics_of(cast(x, moving_mean_.dtype(), at), counted,
                                         synchronized_ ? replica : nullptr, at);
  move_averages(batch, synchronized_ ? nullptr : replica, at);
  return batch_norm_inference(x, batch.mean, batch.variance, gamma, beta, {.epsilon = epsilon_},
                              at);
}

// `replica`: whose statistics differ from the other replicas'; null when all have these.
void BatchNorm::move_averages(Statistics batch, ReplicaContext* replica, SourceLocation at) const {
  const RecorderScope suspended(nullptr);
  if (replica && replica->num_replicas_in_sync() > 1) {
    const auto totals = over_replicas(
        {batch.mean * batch.count, batch.variance * batch.count, batch.count}, replica, at);
    batch = {totals[0] / divisor(totals[2]), totals[1] / divisor(totals[2]), totals[2]};
  }
  const auto move = [&](Variable average, const Tensor& now) {
    const Tensor before = average.read(at);
    const Tensor after = before * momentum_ + now * (1 - momentum_);
    average.assign(select(equal(batch.count, 0), before, after), at);
  };
  move(moving_mean_, batch.mean);
  move(moving_variance_, batch.variance);
}

}  // namespace lockstep::nn
