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
#include "ops/reduce_cpu.h"
#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

using cpu::Reduction;

// Options applied to a shape.
struct ReducePlan {
  bool reduced[Shape::kMaxRank] = {};
  Shape kept;          // reduced axes have extent 1
  Shape result;        // by keep_dims
  std::int64_t count;  // elements reduced to one

  ReducePlan(const char* op, const Shape& shape, const ReduceOptions& options, SourceLocation at)
      : kept(shape), count(1) {
    for (int axis = 0; axis < shape.rank(); ++axis) reduced[axis] = options.axes.empty();
    for (const int named : options.axes) {
      const int axis = checked_axis(op, named, shape, at);
      require(!reduced[axis], at, op, "axis ", named, " of shape ", shape, " is named twice");
      reduced[axis] = true;
    }
    std::int64_t dims[Shape::kMaxRank];
    std::size_t rank = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (reduced[axis]) {
        count *= shape[axis];
        kept = kept.with_dim(axis, 1);
      } else {
        dims[rank++] = shape[axis];
      }
    }
    result = options.keep_dims ? kept : Shape(std::span<const std::int64_t>(dims, rank));
  }

  std::vector<std::int64_t> axes() const {
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < kept.rank(); ++axis)
      if (reduced[axis]) axes.push_back(axis);
    return axes;
  }
};

// The reduction's name in StableHLO.
std::string_view instruction(Reduction reduction, DType dtype) {
  if (reduction == Reduction::sum) return "add";
  if (dtype == DType::boolean) return reduction == Reduction::max ? "or" : "and";
  return reduction == Reduction::max ? "maximum" : "minimum";
}

Tensor reduced(const char* op, Reduction reduction, const Tensor& x, const ReducePlan& plan,
               SourceLocation at, std::int64_t divisor = 1) {
  const Device device = common_device(op, {&x}, at);
  if (traced::on(device))
    return traced::reduce(instruction(reduction, x.dtype()), x, plan.axes(), plan.result, divisor);
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
  ReduceOptions options{.keep_dims = true};
  for (int axis = 0; axis < x.rank(); ++axis)
    if (plan.reduced[axis]) options.axes.push_back(axis);
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

}  // namespace

Tensor sum(const Tensor& x, const ReduceOptions& options, SourceLocation at) {
  require_defined("sum", "x", x, at);
  require_dtype(is_floating(x.dtype()) || x.dtype() == DType::i32 || x.dtype() == DType::i64, "sum",
                x, "a floating dtype, i32 or i64 (cast others first)", at);
  const ReducePlan plan("sum", x.shape(), options, at);
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
  require_defined("argmax", "x", x, at);
  const Device device = common_device("argmax", {&x}, at);
  const Shape& shape = x.shape();
  const int along = checked_axis("argmax", axis, shape, at);
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < along; ++i) outer *= shape[i];
  for (int i = along + 1; i < shape.rank(); ++i) inner *= shape[i];
  require(shape[along] > 0 || outer * inner == 0, at, "argmax", "axis ", axis, " of shape ", shape,
          " is empty; expected at least one element");
  if (traced::on(device)) return traced::argmax(x, along);
  Tensor y = make_result(device, DType::i64, shape.without_axis(along));
  launch(
      "argmax", device, writes(y), reads(x),
      [outer, n = shape[along], inner](Tensor& to, const Tensor& from) {
        cpu::argmax(from.dtype(), from.raw_data(), write<std::int64_t>(to), outer, n, inner);
      },
      [outer, n = shape[along], inner](Tensor& to, const Tensor& from) {
        cuda::argmax(from.dtype(), from.raw_data(), write<std::int64_t>(to), outer, n, inner,
                     to.device());
      });
  return y;
}

Tensor sum_to_shape(const Tensor& x, const Shape& shape, SourceLocation at) {
  require_defined("sum_to_shape", "x", x, at);
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
