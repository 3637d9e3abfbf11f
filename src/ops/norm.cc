// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/norm.h>

#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <array>
#include <span>
#include <utility>

#include "ops/composed.h"
#include "ops/launch.h"
#include "ops/norm_cpu.h"

namespace lockstep {
namespace {

// What a normalisation computes with; scale, offset, mean and variance may be undefined.
struct NormInputs {
  Tensor x, scale, offset, mean, variance;

  Device device(const char* op, SourceLocation at = {}) const {
    return common_device(op, {&x, &scale, &offset, &mean, &variance}, at);
  }
};

NormInputs widened(const NormInputs& in) {
  return {widened(in.x), widened(in.scale), widened(in.offset), widened(in.mean),
          widened(in.variance)};
}

// ---- composed of other ops: for gradients of gradients, and where there are no kernels

struct Views {
  Shape x, channels, statistics;
  explicit Views(const Norm& n)
      : x{n.samples, n.rows, n.groups, n.size},
        channels{n.groups, n.size},
        statistics{n.samples, 1, n.groups, 1} {}
};

const ReduceOptions kStatistic{.axes = {1, 3}, .keep_dims = true};

// `centre` is undefined without one; away = x - centre, factor = 1 / sqrt(variance + epsilon).
struct Parts {
  Tensor centre, variance, away, factor;
};

Parts parts_of(const Norm& n, const NormInputs& in) {
  const Views views(n);
  const Tensor x = reshape(in.x, views.x);
  Parts parts;
  if (n.given)
    parts.centre = reshape(in.mean, views.statistics);
  else if (n.centred)
    parts.centre = mean(x, kStatistic);
  parts.away = parts.centre.defined() ? x - parts.centre : x;
  parts.variance =
      n.given ? reshape(in.variance, views.statistics) : mean(square(parts.away), kStatistic);
  parts.factor = rsqrt(parts.variance + n.epsilon);
  return parts;
}

BatchNormResult composed(const Norm& n, const NormInputs& in) {
  const Views views(n);
  const Parts parts = parts_of(n, in);
  Tensor y = parts.away * parts.factor;
  if (in.scale.defined()) y = y * reshape(in.scale, views.channels);
  if (in.offset.defined()) y = y + reshape(in.offset, views.channels);
  const Shape list{n.statistics()};
  return {reshape(y, in.x.shape()), parts.centre.defined() ? reshape(parts.centre, list) : Tensor(),
          reshape(parts.variance, list)};
}

// With g = dy scale and xhat = away factor:
//   dx = factor (g - mean(g) - xhat mean(g xhat)) + dmean / count + dvariance 2 away / count
// or for given statistics
//   dx = factor g,  dmean = -sum(factor g),  dvariance = -sum(factor^2 g xhat) / 2
// (arXiv:1502.03167, section 3; the sums meet by sum(away) = 0).
NormGradients composed_gradient(const Norm& n, const NormGradients& d, const NormInputs& in) {
  const Views views(n);
  const Parts parts = parts_of(n, in);
  const Tensor normal = parts.away * parts.factor;
  NormGradients to;
  Tensor dx;
  if (d.x.defined()) {
    const Tensor dy = reshape(d.x, views.x);
    const Shape channels{n.channels()};
    to.scale = reshape(sum(dy * normal, {.axes = {0, 1}}), channels);
    to.offset = reshape(sum(dy, {.axes = {0, 1}}), channels);
    const Tensor g = in.scale.defined() ? dy * reshape(in.scale, views.channels) : dy;
    dx = g * parts.factor;
    if (n.given) {
      to.mean = reshape(-sum(dx, kStatistic), {n.statistics()});
      to.variance = reshape(sum(dx * parts.factor * normal, kStatistic) * -0.5, {n.statistics()});
    } else {
      const Tensor less = normal * mean(g * normal, kStatistic);
      dx = parts.factor * ((n.centred ? g - mean(g, kStatistic) : g) - less);
    }
  }
  const auto add = [&](const Tensor& part) { dx = dx.defined() ? dx + part : part; };
  if (d.mean.defined()) add(broadcast_to(reshape(d.mean, views.statistics) / n.count(), views.x));
  if (d.variance.defined())
    add(reshape(d.variance, views.statistics) * (2 / n.count()) * parts.away);
  to.x = reshape(dx, in.x.shape());
  return to;
}

// ---- by kernels

Tensor unwritten(Device device, DType dtype, const Shape& shape) {
  const auto count = static_cast<std::size_t>(shape.num_elements());
  return Tensor(Buffer::allocate(device, count * size_of(dtype)), dtype, shape);
}

BatchNormResult fused(const Norm& n, const NormInputs& in) {
  const Device device = in.device(n.op);
  const DType dtype = in.x.dtype();
  BatchNormResult result{make_result(device, dtype, in.x.shape()), in.mean, in.variance};
  if (n.given) {
    launch(n.op, device, writes(result.y), reads(in.x, in.scale, in.offset, in.mean, in.variance),
           [n](Tensor& y, const Tensor& x, const Tensor& scale, const Tensor& offset, Tensor mean,
               Tensor variance) { cpu::normalize(n, x, scale, offset, mean, variance, y); });
    return result;
  }
  if (n.centred) result.mean = unwritten(device, dtype, {n.statistics()});
  result.variance = unwritten(device, dtype, {n.statistics()});
  launch(n.op, device, writes(result.y, result.mean, result.variance),
         reads(in.x, in.scale, in.offset),
         [n](Tensor& y, Tensor& mean, Tensor& variance, const Tensor& x, const Tensor& scale,
             const Tensor& offset) { cpu::normalize(n, x, scale, offset, mean, variance, y); });
  return result;
}

// The gradients that `wanted` names, in the order of NormInputs. The first but that of x is written
// where the Placement says.
NormGradients fused_gradient(const Norm& n, const NormGradients& d, const NormInputs& in,
                             const std::array<bool, 5>& wanted) {
  const Device device = in.device(n.op);
  bool placed = false;
  const auto make = [&](bool want, const Shape& shape) {
    if (!want) return Tensor();
    if (std::exchange(placed, true)) return unwritten(device, in.x.dtype(), shape);
    return make_result(device, in.x.dtype(), shape);
  };
  NormGradients to;
  to.scale = make(wanted[1], {n.channels()});
  to.offset = make(wanted[2], {n.channels()});
  to.mean = make(wanted[3], {n.statistics()});
  to.variance = make(wanted[4], {n.statistics()});
  to.x = make(wanted[0], in.x.shape());
  launch(n.op, device, writes(to.x, to.scale, to.offset, to.mean, to.variance),
         reads(d.x, d.mean, d.variance, in.x, in.scale, in.mean, in.variance),
         [n](Tensor& dx, Tensor& dscale, Tensor& doffset, Tensor& dmean, Tensor& dvariance,
             const Tensor& dy, const Tensor& from_mean, const Tensor& from_variance,
             const Tensor& x, const Tensor& scale, const Tensor& mean, const Tensor& variance) {
           NormGradients written{dx, dscale, doffset, dmean, dvariance};
           cpu::normalize_gradient(n, {.x = dy, .mean = from_mean, .variance = from_variance}, x,
                                   scale, mean, variance, written);
         });
  return to;
}

// ---- the op

BatchNormResult forward(const Norm& n, const NormInputs& in) {
  const RecorderScope unrecorded(nullptr);
  const NormInputs wide = widened(in);
  if (in.x.num_elements() == 0) {
    const Tensor none = zeros({n.statistics()}, wide.x.dtype());
    return {in.x.with_identity(new_tensor_key(), false), none, none};
  }
  BatchNormResult result = has_kernels(in.device(n.op)) ? fused(n, wide) : composed(n, wide);
  result.y = narrowed(result.y, in.x.dtype());
  return result;
}

// `statistics`: those of x, unless given.
void put_gradients(const Norm& n, const NormInputs& in, const BatchNormResult& statistics,
                   std::span<const Tensor> d, GradientSink& sink) {
  constexpr std::array<int, 5> kOrder{1, 2, 3, 4, 0};
  constexpr std::array kParts{&NormGradients::x, &NormGradients::scale, &NormGradients::offset,
                              &NormGradients::mean, &NormGradients::variance};
  const std::array inputs{&in.x, &in.scale, &in.offset, &in.mean, &in.variance};
  NormGradients dy{.x = widened(d[0])};
  if (d.size() > 1) dy.mean = d[1], dy.variance = d[2];
  NormInputs wide = widened(in);
  NormGradients computed;
  std::array<bool, 5> wanted;
  for (const int i : kOrder)
    wanted[static_cast<std::size_t>(i)] =
        inputs[static_cast<std::size_t>(i)]->defined() && sink.wants(i);
  const bool kernels =
      has_kernels(in.device(n.op)) && d[0].defined() && in.x.num_elements() > 0 &&
      !recording({&dy.x, &dy.mean, &dy.variance, &in.x, &in.scale, &in.mean, &in.variance});
  if (kernels && !n.given) wide.mean = statistics.mean, wide.variance = statistics.variance;
  bool done = false;
  for (const int input : kOrder) {
    const auto i = static_cast<std::size_t>(input);
    if (!wanted[i]) continue;
    const auto compute = [&] {
      if (!std::exchange(done, true))
        computed = kernels ? fused_gradient(n, dy, wide, wanted) : composed_gradient(n, dy, wide);
      return computed.*kParts[i];
    };
    if (!kernels && !compute().defined()) continue;
    sink.put(input, [&] {
      const Tensor gradient = compute();
      return narrowed(reshape(gradient, inputs[i]->shape()), inputs[i]->dtype());
    });
  }
}

BatchNormResult normalized(const Norm& n, const NormInputs& in) {
  BatchNormResult result = forward(n, in);
  record(n.op, {&in.x, &in.scale, &in.offset, &in.mean, &in.variance}, result.y,
         [n, in, statistics = BatchNormResult{{}, result.mean, result.variance}](
             const Tensor& dy, GradientSink& sink) {
           put_gradients(n, in, statistics, {&dy, 1}, sink);
         });
  return result;
}

// ---- checks

void check_x(const char* op, const Tensor& x, int rank, double epsilon, SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(is_floating(x.dtype()), op, x, "a floating dtype", at);
  require(x.rank() >= rank, at, op, "expected a tensor of rank ", rank, " or more, got ",
          x.shape());
  require(epsilon >= 0, at, op, "expected an epsilon of 0 or more, got ", epsilon);
}

void check_parameter(const char* op, const char* name, const Tensor& p, const Tensor& x,
                     const Shape& shape, SourceLocation at) {
  if (!p.defined()) return;
  require(p.dtype() == x.dtype() || (is_half(x.dtype()) && p.dtype() == DType::f32), at, op,
          "expected ", name, " of the dtype of x, or f32 beside 16 bits, got ", name_of(p.dtype()),
          p.shape(), " and ", name_of(x.dtype()), x.shape(), "; convert one with cast()");
  require(p.shape() == shape, at, op, "expected ", name, " of shape ", shape, " for x ", x.shape(),
          ", got ", p.shape());
}

Norm by_rows(const char* op, const Tensor& x, const Tensor& scale, const Tensor& offset, int axis,
             double epsilon, SourceLocation at) {
  check_x(op, x, 1, epsilon, at);
  const int first = checked_axis(op, axis, x.shape(), at);
  const Shape shape(x.shape().dims().subspan(static_cast<std::size_t>(first)));
  check_parameter(op, "a scale", scale, x, shape, at);
  check_parameter(op, "an offset", offset, x, shape, at);
  Norm norm{.op = op, .size = shape.num_elements(), .epsilon = epsilon};
  for (int i = 0; i < first; ++i) norm.samples *= x.shape()[i];
  return norm;
}

Norm by_channels(const char* op, const Tensor& x, const Tensor& scale, const Tensor& offset,
                 double epsilon, SourceLocation at) {
  check_x(op, x, 1, epsilon, at);
  const std::int64_t channels = x.dim(-1);
  check_parameter(op, "a scale", scale, x, {channels}, at);
  check_parameter(op, "an offset", offset, x, {channels}, at);
  return {.op = op,
          .rows = channels ? x.num_elements() / channels : 0,
          .groups = channels,
          .epsilon = epsilon};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                  const LayerNormOptions& options, SourceLocation at) {
  const Norm norm = by_rows("layer_norm", x, scale, offset, options.axis, options.epsilon, at);
  const NormInputs in{x, scale, offset, {}, {}};
  in.device(norm.op, at);
  return normalized(norm, in).y;
}

Tensor rms_norm(const Tensor& x, const Tensor& scale, const RmsNormOptions& options,
                SourceLocation at) {
  Norm norm = by_rows("rms_norm", x, scale, Tensor(), options.axis, options.epsilon, at);
  norm.centred = false;
  const NormInputs in{x, scale, {}, {}, {}};
  in.device(norm.op, at);
  return normalized(norm, in).y;
}

Tensor group_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                  const GroupNormOptions& options, SourceLocation at) {
  constexpr const char* kOp = "group_norm";
  check_x(kOp, x, 2, options.epsilon, at);
  Norm norm = by_channels(kOp, x, scale, offset, options.epsilon, at);
  require(options.groups >= 1 && norm.groups % options.groups == 0, at, kOp,
          "expected groups that divide the ", norm.groups, " channels of x ", x.shape(), ", got ",
          options.groups);
  norm.samples = x.dim(0);
  norm.rows = norm.samples ? norm.rows / norm.samples : 0;
  norm.size = norm.groups / options.groups;
  norm.groups = options.groups;
  const NormInputs in{x, scale, offset, {}, {}};
  in.device(kOp, at);
  return normalized(norm, in).y;
}

BatchNormResult batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                           const BatchNormOptions& options, SourceLocation at) {
  const Norm norm = by_channels("batch_norm", x, scale, offset, options.epsilon, at);
  const NormInputs in{x, scale, offset, {}, {}};
  in.device(norm.op, at);
  BatchNormResult result = forward(norm, in);
  if (!recording({&x, &scale, &offset})) return result;
  const std::array inputs{&in.x, &in.scale, &in.offset};
  const std::array outputs{result.y, result.mean, result.variance};
  current_recorder()->record(
      norm.op, inputs, outputs,
      [norm, in, statistics = BatchNormResult{{}, result.mean, result.variance}](
          std::span<const Tensor> d, GradientSink& sink) {
        put_gradients(norm, in, statistics, d, sink);
      });
  return result;
}

Tensor batch_norm_inference(const Tensor& x, const Tensor& mean, const Tensor& variance,
                            const Tensor& scale, const Tensor& offset,
                            const BatchNormOptions& options, SourceLocation at) {
  Norm norm = by_channels("batch_norm_inference", x, scale, offset, options.epsilon, at);
  norm.given = true;
  require_defined(norm.op, "mean", mean, at);
  require_defined(norm.op, "variance", variance, at);
  check_parameter(norm.op, "a mean", mean, x, {norm.groups}, at);
  check_parameter(norm.op, "a variance", variance, x, {norm.groups}, at);
  const NormInputs in{x, scale, offset, mean, variance};
  in.device(norm.op, at);
  return normalized(norm, in).y;
}

}  // namespace lockstep
