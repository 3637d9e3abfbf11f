// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/attention.h>

#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/ops/softmax.h>
#include <lockstep/tensor/factory.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/attention_cpu.h"
#include "ops/composed.h"
#include "ops/launch.h"

namespace lockstep {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";

struct AttentionInputs {
  Tensor q, k, v, mask;

  Device device(SourceLocation at = {}) const {
    return common_device(kOp, {&q, &k, &v, &mask}, at);
  }
};

AttentionInputs widened(const AttentionInputs& in) {
  return {widened(in.q), widened(in.k), widened(in.v), widened(in.mask)};
}

bool is_added(const Tensor& mask) { return mask.defined() && is_floating(mask.dtype()); }

// ---- composed of other ops: for gradients of gradients, and where there are no kernels

// Where queries see keys; undefined: everywhere.
Tensor seen(const Attention& a, const Tensor& mask) {
  Tensor visible;
  if (is_added(mask))
    visible = not_equal(mask, -std::numeric_limits<double>::infinity());
  else if (mask.defined())
    visible = mask;
  if (!a.causal) return visible;
  const Tensor past = less_equal(range(0, a.keys), reshape(range(0, a.queries), {a.queries, 1}));
  return visible.defined() ? logical_and(visible, past) : past;
}

Tensor probabilities(const Attention& a, const AttentionInputs& in) {
  Tensor scores = matmul(in.q, in.k, {.transpose_b = true}) * a.scale;
  if (is_added(in.mask)) scores = scores + in.mask;
  const Tensor visible = seen(a, in.mask);
  if (!visible.defined()) return softmax(scores);
  // A finite number, so that rows that see nothing stay numbers; all of these become 0.
  constexpr double kFar = -1e30;
  return select(visible, softmax(select(visible, scores, kFar)), 0);
}

AttentionGradients composed_gradient(const Attention& a, const Tensor& dy,
                                     const AttentionInputs& in) {
  const Tensor p = probabilities(a, in);
  const Tensor dp = matmul(dy, in.v, {.transpose_b = true});
  const Tensor ds = p * (dp - sum(p * dp, {.axes = {-1}, .keep_dims = true}));
  AttentionGradients to{.q = matmul(ds, in.k) * a.scale,
                        .k = matmul(ds, in.q, {.transpose_a = true}) * a.scale,
                        .v = matmul(p, dy, {.transpose_a = true})};
  if (is_added(in.mask)) to.mask = sum_to_shape(ds, in.mask.shape());
  return to;
}

// ---- by kernels

Tensor unwritten(Device device, DType dtype, const Shape& shape) {
  const auto count = static_cast<std::size_t>(shape.num_elements());
  return Tensor(Buffer::allocate(device, count * size_of(dtype)), dtype, shape);
}

struct Attended {
  Tensor y = {}, log_sums = {};  // in the dtype computed in; undefined where there are no kernels
};

Shape result_shape(const Attention& a) {
  const int rank = a.lead.rank();
  return a.lead.with_axis(rank, a.queries).with_axis(rank + 1, a.out);
}

Attended fused(const Attention& a, const AttentionInputs& in) {
  const Device device = in.device();
  Attended result{make_result(device, in.q.dtype(), result_shape(a)),
                  unwritten(device, in.q.dtype(), {a.heads, a.queries})};
  launch(kOp, device, writes(result.y, result.log_sums), reads(in.q, in.k, in.v, in.mask),
         [a](Tensor& y, Tensor& log_sums, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& mask) { cpu::attend(a, q, k, v, mask, log_sums, y); });
  return result;
}

AttentionGradients fused_gradient(const Attention& a, const Tensor& dy, const AttentionInputs& in,
                                  const Attended& result, const std::array<bool, 4>& wanted) {
  const Device device = in.device();
  const auto make = [&](bool want, const Tensor& like) {
    return want ? unwritten(device, in.q.dtype(), like.shape()) : Tensor();
  };
  AttentionGradients to{make(wanted[0], in.q), make(wanted[1], in.k), make(wanted[2], in.v),
                        make(wanted[3], in.mask)};
  launch(kOp, device, writes(to.q, to.k, to.v, to.mask),
         reads(dy, in.q, in.k, in.v, in.mask, result.log_sums, result.y),
         [a](Tensor& dq, Tensor& dk, Tensor& dv, Tensor& dmask, const Tensor& from, const Tensor& q,
             const Tensor& k, const Tensor& v, const Tensor& mask, const Tensor& log_sums,
             const Tensor& y) {
           AttentionGradients written{dq, dk, dv, dmask};
           cpu::attend_gradient(a, from, q, k, v, mask, log_sums, y, written);
         });
  return to;
}

// ---- the op

// The result, and what its gradient takes.
std::pair<Tensor, Attended> forward(const Attention& a, const AttentionInputs& in) {
  const RecorderScope unrecorded(nullptr);
  const AttentionInputs wide = widened(in);
  if (!has_kernels(in.device()))
    return {narrowed(matmul(probabilities(a, wide), wide.v), in.q.dtype()), {}};
  const Attended result = fused(a, wide);
  return {narrowed(result.y, in.q.dtype()), result};
}

void put_gradients(const Attention& a, const AttentionInputs& in, const Attended& result,
                   const Tensor& dy, GradientSink& sink) {
  const std::array inputs{&in.q, &in.k, &in.v, &in.mask};
  const std::array<bool, 4> wanted{sink.wants(0), sink.wants(1), sink.wants(2),
                                   is_added(in.mask) && sink.wants(3)};
  const bool kernels = has_kernels(in.device()) && !recording({&dy, &in.q, &in.k, &in.v, &in.mask});
  const AttentionGradients gradients =
      kernels ? fused_gradient(a, widened(dy), widened(in), result, wanted)
              : composed_gradient(a, widened(dy), widened(in));
  const std::array all{&gradients.q, &gradients.k, &gradients.v, &gradients.mask};
  for (const int input : {3, 2, 1, 0}) {
    const auto i = static_cast<std::size_t>(input);
    if (wanted[i]) sink.put(input, [&] { return narrowed(*all[i], inputs[i]->dtype()); });
  }
}

// ---- checks

Shape without_matrix(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2)));
}

void check_mask(const Tensor& mask, const Tensor& q, const Shape& scores, SourceLocation at) {
  if (!mask.defined()) return;
  require(mask.dtype() == DType::boolean || mask.dtype() == q.dtype(), at, kOp,
          "expected a mask of dtype bool, or ", name_of(q.dtype()), " as q, got ",
          name_of(mask.dtype()), mask.shape());
  bool fits = mask.rank() <= scores.rank();
  for (int back = 1; back <= mask.rank() && fits; ++back) {
    const std::int64_t extent = mask.shape()[mask.rank() - back];
    fits = extent == 1 || extent == scores[scores.rank() - back];
  }
  require(fits, at, kOp, "expected a mask that broadcasts to [.., queries, keys] = ", scores,
          ", got ", mask.shape());
}

Attention checked(const AttentionInputs& in, const AttentionOptions& options, SourceLocation at) {
  const auto& [q, k, v, mask] = in;
  require_defined(kOp, "q", q, at);
  require_defined(kOp, "k", k, at);
  require_defined(kOp, "v", v, at);
  require_dtype(is_floating(q.dtype()), kOp, q, "a floating dtype", at);
  require_same_dtype(kOp, q, k, at);
  require_same_dtype(kOp, q, v, at);
  require(q.rank() >= 2 && k.rank() == q.rank() && v.rank() == q.rank() && k.dim(-1) == q.dim(-1) &&
              v.dim(-2) == k.dim(-2) && without_matrix(k.shape()) == without_matrix(q.shape()) &&
              without_matrix(v.shape()) == without_matrix(q.shape()),
          at, kOp,
          "expected q [.., queries, dim], k [.., keys, dim] and v [.., keys, out] of the same axes "
          "before, got ",
          q.shape(), ", ", k.shape(), " and ", v.shape());
  Attention a{.lead = without_matrix(q.shape()),
              .queries = q.dim(-2),
              .keys = k.dim(-2),
              .dim = q.dim(-1),
              .out = v.dim(-1),
              .causal = options.causal};
  a.heads = a.lead.num_elements();
  a.scale = options.scale.value_or(a.dim > 0 ? 1 / std::sqrt(static_cast<double>(a.dim)) : 1);
  require(std::isfinite(a.scale), at, kOp, "expected a finite scale, got ", a.scale);
  check_mask(mask, q,
             a.lead.with_axis(a.lead.rank(), a.queries).with_axis(a.lead.rank() + 1, a.keys), at);
  return a;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, const AttentionOptions& options,
                                    SourceLocation at) {
  const AttentionInputs in{q, k, v, mask};
  const Attention attention = checked(in, options, at);
  in.device(at);
  const auto [y, kept] = forward(attention, in);
  record(kOp, {&q, &k, &v, &mask}, y,
         [attention, in, kept = kept](const Tensor& dy, GradientSink& sink) {
           put_gradients(attention, in, kept, dy, sink);
         });
  return y;
}

}  // namespace lockstep
