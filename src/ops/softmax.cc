// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/softmax.h>

#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <cstddef>
#include <span>
#include <vector>

#include "ops/cuda/kernels.h"
#include "ops/half_kernels.h"
#include "ops/indices.h"
#include "ops/launch.h"
#include "ops/operands.h"
#include "ops/softmax_kernels.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

const SoftmaxKernel<float>& kernel_of(float) { return softmax_kernels().f32; }
const SoftmaxKernel<double>& kernel_of(double) { return softmax_kernels().f64; }

// f(T{}) with the type that `dtype` is computed in.
template <class F>
decltype(auto) visit_real(DType dtype, F&& f) {
  return dtype == DType::f64 ? f(double{}) : f(float{});
}

SoftmaxExtents extents_of(const Shape& shape, int axis) {
  SoftmaxExtents extents{1, shape[axis], 1};
  for (int i = 0; i < axis; ++i) extents.outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) extents.inner *= shape[i];
  return extents;
}

// Softmax or its logarithm; which one is all that the two ops differ in.
struct Function {
  const char* name;
  bool log;
};
constexpr Function kSoftmax{"softmax", false};
constexpr Function kLogSoftmax{"log_softmax", true};

// 16-bit tensors are computed in float.
Tensor widened(const Tensor& x) { return is_half(x.dtype()) ? cast(x, DType::f32) : x; }

Tensor forward(Function f, const Tensor& x, int axis) {
  const RecorderScope unrecorded(nullptr);
  if (traced::on(x.device())) return traced::softmax(x, axis, f.log);
  if (is_half(x.dtype())) return cast(forward(f, widened(x), axis), x.dtype());
  const Device device = common_device(f.name, {&x}, {});
  Tensor y = make_result(device, x.dtype(), x.shape());
  if (x.num_elements() == 0) return y;
  launch(
      f.name, device, writes(y), reads(x),
      [f, axis](Tensor& to, const Tensor& from) {
        visit_real(from.dtype(), [&]<class T>(T t) {
          const auto& kernel = kernel_of(t);
          (f.log ? kernel.log_softmax : kernel.softmax)(extents_of(from.shape(), axis),
                                                        read<T>(from), write<T>(to));
        });
      },
      [f, extents = extents_of(x.shape(), axis)](Tensor& to, const Tensor& from) {
        cuda::softmax(f.log, to.dtype(), from.raw_data(), write<void>(to),
                      extents.outer * extents.inner, extents.n, extents.inner, to.device());
      });
  return y;
}

Tensor fused_gradient(Function f, const Tensor& dy, const Tensor& y, int axis) {
  if (is_half(y.dtype())) return cast(fused_gradient(f, widened(dy), widened(y), axis), y.dtype());
  const Device device = common_device(f.name, {&dy, &y}, {});
  Tensor dx = make_result(device, y.dtype(), y.shape());
  if (y.num_elements() == 0) return dx;
  launch(
      f.name, device, writes(dx), reads(dy, y),
      [f, axis](Tensor& to, const Tensor& from, const Tensor& value) {
        visit_real(value.dtype(), [&]<class T>(T t) {
          const auto& kernel = kernel_of(t);
          (f.log ? kernel.log_softmax_gradient : kernel.softmax_gradient)(
              extents_of(value.shape(), axis), read<T>(from), read<T>(value), write<T>(to));
        });
      },
      [f, extents = extents_of(y.shape(), axis)](Tensor& to, const Tensor& from,
                                                 const Tensor& value) {
        cuda::softmax_gradient(f.log, to.dtype(), from.raw_data(), value.raw_data(),
                               write<void>(to), extents.outer * extents.inner, extents.n,
                               extents.inner, to.device());
      });
  return dx;
}

void put_gradient(Function f, const Tensor& dy, const Tensor& y, int axis, GradientSink& sink) {
  if (!sink.wants(0)) return;
  if (!recording({&dy, &y}) && !traced::any({&dy, &y})) {
    sink.put(0, [&] { return fused_gradient(f, dy, y, axis); });
  } else if (f.log) {
    const Tensor part = exp(y) * sum(dy, {.axes = {axis}, .keep_dims = true});
    sink.put(0, [&] { return dy - part; });
  } else {
    const Tensor part = dy - sum(dy * y, {.axes = {axis}, .keep_dims = true});
    sink.put(0, [&] { return y * part; });
  }
}

Tensor apply(Function f, const Tensor& x, int axis, SourceLocation at) {
  require_defined(f.name, "x", x, at);
  require_dtype(is_floating(x.dtype()), f.name, x, "a floating dtype", at);
  require(x.rank() >= 1, at, f.name, "expected a tensor of rank 1 or more, got a scalar");
  const int along = checked_axis(f.name, axis, x.shape(), at);
  common_device(f.name, {&x}, at);
  Tensor y = forward(f, x, along);
  record(f.name, {&x}, y, [f, y, along](const Tensor& dy, GradientSink& sink) {
    put_gradient(f, dy, y, along, sink);
  });
  return y;
}

// ---- cross entropy: rows of logits, the last axis, with a loss each

struct Rows {
  std::int64_t rows, classes;
};

Rows rows_of(const Tensor& logits) {
  const std::int64_t classes = logits.dim(-1);
  return {classes ? logits.num_elements() / classes : 0, classes};
}

void check_logits(const char* op, const Tensor& labels, const Tensor& logits, SourceLocation at) {
  require_defined(op, "labels", labels, at);
  require_defined(op, "logits", logits, at);
  require_dtype(is_floating(logits.dtype()), op, logits, "a floating dtype as logits", at);
  require(logits.rank() >= 1 && logits.dim(-1) > 0, at, op,
          "expected logits of shape [.., classes] with 1 class or more, got ", logits.shape());
}

// The label of a row, whichever integer type it has.
std::int64_t label_at(const Tensor& labels, std::int64_t row) {
  return labels.dtype() == DType::i32 ? read<std::int32_t>(labels)[row]
                                      : read<std::int64_t>(labels)[row];
}

void check_label_values(const char* op, const Tensor& labels, const Tensor& logits,
                        SourceLocation at) {
  const Rows size = rows_of(logits);
  bool inside = true;
  visit_indices(labels, [&](const auto* first, std::int64_t count) {
    inside = all_inside(first, count, size.classes);
  });
  for (std::int64_t row = 0; !inside && row < size.rows; ++row) {
    const std::int64_t label = label_at(labels, row);
    require(label >= 0 && label < size.classes, at, op, "label ", label, " of row ", row,
            " is outside 0 <= label < ", size.classes, ", the class count of logits ",
            logits.shape());
  }
}

// Labels on an accelerator are looked at when the losses are computed.
void check_labels(const char* op, const Tensor& labels, const Tensor& logits, SourceLocation at) {
  require_dtype(labels.dtype() == DType::i32 || labels.dtype() == DType::i64, op, labels,
                "i32 or i64 as labels", at);
  require(labels.shape() == logits.shape().without_axis(-1), at, op,
          "expected labels [..] for logits [.., classes], got ", labels.shape(), " and ",
          logits.shape());
  if (labels.device().is_host()) check_label_values(op, labels, logits, at);
}

// What the gradient needs of the softmax of the logits, in the type computed in: exps[r, i]
// scale[r]. Left undivided, since the gradient multiplies each row by a number anyway.
struct Undivided {
  Tensor exps, scale;
};

struct Losses {
  Tensor loss;
  Undivided softmax;
};

// `labels` hold a class for each row, or where `dense` a weight for each class. `exps` and `scale`
// may be undefined.
void losses_cpu(const Tensor& labels, const Tensor& logits, bool dense, Tensor& losses,
                Tensor& exps, Tensor& scale) {
  const Rows size = rows_of(logits);
  const std::size_t column = static_cast<std::size_t>(size.rows) * size_of(logits.dtype());
  const Buffer scratch = Buffer::allocate(logits.device(), 2 * column);
  visit_real(logits.dtype(), [&]<class T>(T t) {
    T* max = static_cast<T*>(scratch.data());
    T* log_sum = max + size.rows;
    T* loss = write<T>(losses);
    const T* x = read<T>(logits);
    kernel_of(t).log_sums(x, size.rows, size.classes, max, log_sum,
                          exps.defined() ? write<T>(exps) : nullptr,
                          scale.defined() ? write<T>(scale) : nullptr);
    if (dense)
      kernel_of(t).cross_entropy(read<T>(labels), x, max, log_sum, size.rows, size.classes, loss);
    else
      for (std::int64_t row = 0; row < size.rows; ++row)
        loss[row] = log_sum[row] + (max[row] - x[row * size.classes + label_at(labels, row)]);
  });
}

Losses losses(const char* op, const Tensor& labels, const Tensor& logits, bool dense, bool keep) {
  const RecorderScope unrecorded(nullptr);
  const Device device = common_device(op, {&labels, &logits}, {});
  if (traced::on(device))
    return {dense ? traced::cross_entropy(labels, logits)
                  : traced::sparse_cross_entropy(labels, logits),
            {}};
  if (is_half(logits.dtype())) {
    Losses wide = losses(op, dense ? widened(labels) : labels, widened(logits), dense, keep);
    wide.loss = cast(wide.loss, logits.dtype());
    return wide;
  }
  const DType dtype = logits.dtype();
  Losses result{make_result(device, dtype, logits.shape().without_axis(-1)), {}};
  const std::size_t column = static_cast<std::size_t>(rows_of(logits).rows) * size_of(dtype);
  if (keep)
    result.softmax = {Tensor(Buffer::allocate(device, logits.bytes()), dtype, logits.shape()),
                      Tensor(Buffer::allocate(device, column), dtype, Shape{rows_of(logits).rows})};
  launch(
      op, device, writes(result.loss, result.softmax.exps, result.softmax.scale),
      reads(labels, logits),
      [op, dense, checked = labels.device().is_host()](Tensor& to, Tensor& exps, Tensor& scale,
                                                       const Tensor& targets, const Tensor& from) {
        if (!dense && !checked) check_label_values(op, targets, from, {});
        losses_cpu(targets, from, dense, to, exps, scale);
      },
      [](Tensor& to, Tensor& exps, Tensor& scale, const Tensor& targets, const Tensor& from) {
        const Rows size = rows_of(from);
        cuda::losses(to.dtype(), targets.dtype(), targets.raw_data(), from.raw_data(),
                     write<void>(to), exps.defined() ? write<void>(exps) : nullptr,
                     scale.defined() ? write<void>(scale) : nullptr, size.rows, size.classes,
                     to.device());
      });
  return result;
}

Tensor fused_gradient(const char* op, const Tensor& d, const Tensor& labels,
                      const Undivided& softmax, bool dense) {
  if (is_half(d.dtype()))
    return cast(fused_gradient(op, widened(d), dense ? widened(labels) : labels, softmax, dense),
                d.dtype());
  const auto& [exps, scale] = softmax;
  const Device device = common_device(op, {&d, &exps}, {});
  Tensor dx = make_result(device, d.dtype(), exps.shape());
  launch(
      op, device, writes(dx), reads(d, labels, exps, scale),
      [dense, size = rows_of(exps)](Tensor& to, const Tensor& from, const Tensor& targets,
                                    const Tensor& parts, const Tensor& factor) {
        visit_real(from.dtype(), [&]<class T>(T t) {
          kernel_of(t).cross_entropy_gradient(read<T>(from), read<T>(parts), read<T>(factor),
                                              dense ? read<T>(targets) : nullptr, size.rows,
                                              size.classes, write<T>(to));
          if (!dense)
            for (std::int64_t row = 0; row < size.rows; ++row)
              write<T>(to)[row * size.classes + label_at(targets, row)] -= read<T>(from)[row];
        });
      },
      [size = rows_of(exps)](Tensor& to, const Tensor& from, const Tensor& targets,
                             const Tensor& parts, const Tensor& factor) {
        cuda::losses_gradient(to.dtype(), targets.dtype(), from.raw_data(), targets.raw_data(),
                              parts.raw_data(), factor.raw_data(), write<void>(to), size.rows,
                              size.classes, to.device());
      });
  return dx;
}

// d (softmax(logits) sum(labels) - labels), in public ops, for gradients of it.
void put_recorded_gradient(int input, const Tensor& d, const Tensor& labels, const Tensor& logits,
                           GradientSink& sink) {
  const ReduceOptions last{.axes = {-1}, .keep_dims = true};
  const Tensor part = softmax(logits) * sum(labels, last) - labels;
  sink.put(input, [&] { return reshape(d, d.shape().with_axis(d.rank())) * part; });
}

}  // namespace

Tensor softmax(const Tensor& x, int axis, SourceLocation at) {
  return apply(kSoftmax, x, axis, at);
}

Tensor log_softmax(const Tensor& x, int axis, SourceLocation at) {
  return apply(kLogSoftmax, x, axis, at);
}

Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits, SourceLocation at) {
  constexpr const char* kOp = "sparse_softmax_cross_entropy";
  check_logits(kOp, labels, logits, at);
  common_device(kOp, {&labels, &logits}, at);
  check_labels(kOp, labels, logits, at);
  const Losses result = losses(kOp, labels, logits, false, recording({&logits}));
  record(kOp, {&labels, &logits}, result.loss,
         [labels, logits, softmax = result.softmax](const Tensor& d, GradientSink& sink) {
           if (!sink.wants(1)) return;
           if (recording({&d, &logits}) || traced::any({&d, &labels, &logits}))
             put_recorded_gradient(1, d, one_hot(labels, logits.dim(-1), logits.dtype()), logits,
                                   sink);
           else
             sink.put(1, [&] { return fused_gradient(kOp, d, labels, softmax, false); });
         });
  return result.loss;
}

Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits, SourceLocation at) {
  constexpr const char* kOp = "softmax_cross_entropy";
  check_logits(kOp, labels, logits, at);
  require_same_dtype(kOp, labels, logits, at);
  require(labels.shape() == logits.shape(), at, kOp, "expected labels of the logits' shape, got ",
          labels.shape(), " and ", logits.shape());
  common_device(kOp, {&labels, &logits}, at);
  const Losses result = losses(kOp, labels, logits, true, recording({&labels, &logits}));
  record(kOp, {&labels, &logits}, result.loss,
         [labels, logits, softmax = result.softmax](const Tensor& d, GradientSink& sink) {
           if (sink.wants(1)) {
             if (recording({&d, &labels, &logits}) || traced::any({&d, &labels, &logits}))
               put_recorded_gradient(1, d, labels, logits, sink);
             else
               sink.put(1, [&] { return fused_gradient(kOp, d, labels, softmax, true); });
           }
           if (sink.wants(0)) {
             const Tensor part = -log_softmax(logits);
             sink.put(0, [&] { return reshape(d, d.shape().with_axis(d.rank())) * part; });
           }
         });
  return result.loss;
}

Tensor sigmoid_cross_entropy(const Tensor& labels, const Tensor& logits, SourceLocation at) {
  constexpr const char* kOp = "sigmoid_cross_entropy";
  require_defined(kOp, "labels", labels, at);
  require_defined(kOp, "logits", logits, at);
  require_dtype(is_floating(logits.dtype()), kOp, logits, "a floating dtype as logits", at);
  require_same_dtype(kOp, labels, logits, at);
  require(labels.shape() == logits.shape(), at, kOp, "expected labels of the logits' shape, got ",
          labels.shape(), " and ", logits.shape());
  return binary_op(BinaryOp::sigmoid_cross_entropy, Operand(labels, at), Operand(logits, at));
}

}  // namespace lockstep
