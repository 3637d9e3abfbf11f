// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/reduce.h>

#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>

#include "ops/cuda/kernels.h"
#include "ops/launch.h"
#include "ops/products_of_others.h"
#include "ops/reduce_cpu.h"
#include "ops/reduce_plan.h"
#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

using cpu::Reduction;

// The reduction's name in StableHLO.
std::string_view instruction(Reduction reduction, DType dtype) {
  if (reduction == Reduction::sum) return "add";
  if (reduction == Reduction::prod) return "multiply";
  if (dtype == DType::boolean) return reduction == Reduction::max ? "or" : "and";
  return reduction == Reduction::max ? "maximum" : "minimum";
}

Tensor reduced(const char* op, Reduction reduction, const Tensor& x, const ReducePlan& plan,
               SourceLocation at, std::int64_t divisor = 1) {
  const Device device = common_device(op, {&x}, at);
  if (traced::on(device))
    return traced::reduce(instruction(reduction, x.dtype()), x, plan.axes<std::int64_t>(),
                          plan.result, divisor);
  Tensor y = make_result(device, x.dtype(), plan.result);
  launch(
      op, device, writes(y), reads(x),
      [reduction, plan, divisor](Tensor& to, const Tensor& from) {
        cpu::reduce(reduction, from.dtype(), from.raw_data(), write<void>(to), from.shape(),
                    plan.reduced, divisor);
      },
      [reduction, plan, divisor](Tensor& to, const Tensor& from) {
        cuda::reduce(reduction, from.dtype(), from.raw_data(), write<void>(to), from.shape(),
                     plan.reduced, divisor, to.device());
      });
  return y;
}

// dy / ties where x is the extreme value of its group, else 0.
Tensor extreme_gradient(const Tensor& dy, const Tensor& x, const Tensor& y,
                        const ReducePlan& plan) {
  const Tensor chosen = equal(x, reshape(y, plan.kept));
  const Tensor one_each = cast(chosen, x.dtype());
  const ReduceOptions options{.axes = plan.axes<int>(), .keep_dims = true};
  const Tensor ties = options.axes.empty() ? one_each : sum(one_each, options);
  return select(chosen, reshape(dy, plan.kept) / ties, 0);
}

Tensor extreme(const char* op, Reduction reduction, const Tensor& x, const ReduceOptions& options,
               SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(x.dtype() != DType::boolean, op, x, "a floating or integer dtype", at);
  const ReducePlan plan(op, x.shape(), options, at);
  require(plan.count > 0 || plan.result.num_elements() == 0, at, op, "of no elements, for shape ",
          x.shape(), ", is not defined; expected at least one");
  Tensor y = reduced(op, reduction, x, plan, at);
  if (is_floating(x.dtype()))
    record(op, {&x}, y, [x, y, plan](const Tensor& dy, GradientSink& sink) {
      if (sink.wants(0)) sink.put(0, [&] { return extreme_gradient(dy, x, y, plan); });
    });
  return y;
}

Tensor boolean(const char* op, Reduction reduction, const Tensor& x, const ReduceOptions& options,
               SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(x.dtype() == DType::boolean, op, x, "dtype bool", at);
  const ReducePlan plan(op, x.shape(), options, at);
  if (plan.count > 0 || traced::on(x.device())) return reduced(op, reduction, x, plan, at);
  const Device device = common_device(op, {&x}, at);
  Tensor y = make_result(device, DType::boolean, plan.result);
  launch(op, device, writes(y), reads(), [reduction](Tensor& to) {
    std::fill_n(write<bool>(to), to.num_elements(), reduction == Reduction::min);
  });
  return y;
}

Tensor arg_extreme(const char* op, bool largest, const Tensor& x, int axis, SourceLocation at) {
  require_defined(op, "x", x, at);
  const Device device = common_device(op, {&x}, at);
  const Shape& shape = x.shape();
  const int along = checked_axis(op, axis, shape, at);
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < along; ++i) outer *= shape[i];
  for (int i = along + 1; i < shape.rank(); ++i) inner *= shape[i];
  require(shape[along] > 0 || outer * inner == 0, at, op, "axis ", axis, " of shape ", shape,
          " is empty; expected at least one element");
  if (traced::on(device)) return traced::arg_extreme(x, along, largest);
  Tensor y = make_result(device, DType::i64, shape.without_axis(along));
  launch(
      op, device, writes(y), reads(x),
      [largest, outer, n = shape[along], inner](Tensor& to, const Tensor& from) {
        cpu::arg_extreme(largest, from.dtype(), from.raw_data(), write<std::int64_t>(to), outer, n,
                         inner);
      },
      [largest, outer, n = shape[along], inner](Tensor& to, const Tensor& from) {
        cuda::arg_extreme(largest, from.dtype(), from.raw_data(), write<std::int64_t>(to), outer, n,
                          inner, to.device());
      });
  return y;
}

// Of dtypes that are added and multiplied.
ReducePlan arithmetic_plan(const char* op, const Tensor& x, const ReduceOptions& options,
                           SourceLocation at) {
  require_defined(op, "x", x, at);
  require_dtype(is_floating(x.dtype()) || x.dtype() == DType::i32 || x.dtype() == DType::i64, op, x,
                "a floating dtype, i32 or i64 (cast others first)", at);
  return ReducePlan(op, x.shape(), options, at);
}

}  // namespace

Tensor sum(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  const ReducePlan plan = arithmetic_plan("sum", x, options, at);
  Tensor y = reduced("sum", Reduction::sum, x, plan, at);
  if (is_floating(x.dtype()))
    record("sum", {&x}, y,
           [shape = x.shape(), kept = plan.kept](const Tensor& dy, GradientSink& sink) {
             if (sink.wants(0)) sink.put(0, [&] { return broadcast_to(reshape(dy, kept), shape); });
           });
  return y;
}

Tensor mean(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  require_defined("mean", "x", x, at);
  require_dtype(is_floating(x.dtype()), "mean", x, "a floating dtype (cast others first)", at);
  const ReducePlan plan("mean", x.shape(), options, at);
  Tensor y = reduced("mean", Reduction::sum, x, plan, at, plan.count);
  record("mean", {&x}, y,
         [shape = x.shape(), kept = plan.kept, count = plan.count](const Tensor& dy,
                                                                   GradientSink& sink) {
           if (!sink.wants(0)) return;
           const Tensor each = reshape(dy, kept) / count;
           sink.put(0, [&] { return broadcast_to(each, shape); });
         });
  return y;
}

Tensor prod(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  const ReducePlan plan = arithmetic_plan("prod", x, options, at);
  Tensor y = reduced("prod", Reduction::prod, x, plan, at);
  if (is_floating(x.dtype()))
    record("prod", {&x}, y, [x, plan](const Tensor& dy, GradientSink& sink) {
      if (!sink.wants(0)) return;
      const Tensor each = reshape(dy, plan.kept), factors = products_of_others(x, plan.reduced);
      sink.put(0, [&] { return each * factors; });
    });
  return y;
}

Tensor max(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  return extreme("max", Reduction::max, x, options, at);
}

Tensor min(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  return extreme("min", Reduction::min, x, options, at);
}

Tensor any(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  return boolean("any", Reduction::max, x, options, at);
}

Tensor all(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  return boolean("all", Reduction::min, x, options, at);
}

Tensor argmax(const Tensor& x, int axis, SourceLocation at) {
  return arg_extreme("argmax", true, x, axis, at);
}

Tensor argmin(const Tensor& x, int axis, SourceLocation at) {
  return arg_extreme("argmin", false, x, axis, at);
}

Tensor sum_to_shape(const Tensor& x, const Shape& shape, SourceLocation at) {
  require_defined("sum_to_shape", "x", x, at);
  require_dtype(is_floating(x.dtype()) || x.dtype() == DType::i32 || x.dtype() == DType::i64,
                "sum_to_shape", x, "a floating dtype, i32 or i64 (cast others first)", at);
  const Shape& wide = x.shape();
  if (wide == shape) return x;
  const int added = wide.rank() - shape.rank();
  ReduceOptions options{.keep_dims = true};
  bool fits = added >= 0;
  for (int axis = 0; axis < wide.rank() && fits; ++axis) {
    const std::int64_t own = axis < added ? 1 : shape[axis - added];
    fits = own == wide[axis] || own == 1;
    if (own != wide[axis] || axis < added) options.axes.push_back(axis);
  }
  require(fits, at, "sum_to_shape", "shape ", shape, " does not broadcast to ", wide);
  if (options.axes.empty()) return reshape(x, shape);
  return reshape(sum(x, options, at), shape);
}

}  // namespace lockstep
