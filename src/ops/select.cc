// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>

#include "ops/broadcast.h"
#include "ops/cuda/kernels.h"
#include "ops/launch.h"
#include "ops/operands.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

constexpr const char* kOp = "select";

// The condition is a byte of 0 or 1; as a mask it needs no branch.
template <class T>
T chosen(std::uint8_t condition, T a, T b) {
  const T mask = static_cast<T>(T(0) - T(condition));
  return static_cast<T>((a & mask) | (b & ~mask));
}

// One row. Whatever the element type, it is moved as an unsigned integer of its size.
template <class T>
void select_row(const std::uint8_t* condition, std::int64_t condition_step, const T* a,
                std::int64_t a_step, const T* b, std::int64_t b_step, T* __restrict y,
                std::int64_t n) {
  const T first_a = *a, first_b = *b;
  if (condition_step == 1 && a_step == 1 && b_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = chosen(condition[i], a[i], b[i]);
  } else if (condition_step == 1 && a_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = chosen(condition[i], a[i], first_b);
  } else if (condition_step == 1 && b_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = chosen(condition[i], first_a, b[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      y[i] = chosen(condition[i * condition_step], a[i * a_step], b[i * b_step]);
  }
}

template <class T>
void select_cpu(const std::uint8_t* condition, const void* a, const void* b, void* y,
                const Broadcast<3>& plan) {
  const auto* from_a = static_cast<const T*>(a);
  const auto* from_b = static_cast<const T*>(b);
  plan.for_each_block([&](const std::int64_t(&from)[3], std::int64_t to) {
    for (std::int64_t row = 0; row < plan.rows(); ++row)
      select_row(condition + from[0] + row * plan.row_stride(0), plan.col_stride(0),
                 from_a + from[1] + row * plan.row_stride(1), plan.col_stride(1),
                 from_b + from[2] + row * plan.row_stride(2), plan.col_stride(2),
                 static_cast<T*>(y) + to + row * plan.cols(), plan.cols());
  });
}

void select_cpu(const void* condition, const void* a, const void* b, Tensor& y,
                const Broadcast<3>& plan) {
  const auto run = [&]<class T>(T) {
    select_cpu<T>(static_cast<const std::uint8_t*>(condition), a, b, write<void>(y), plan);
  };
  switch (size_of(y.dtype())) {
    case 1:
      return run(std::uint8_t{});
    case 2:
      return run(std::uint16_t{});
    case 4:
      return run(std::uint32_t{});
    default:
      return run(std::uint64_t{});
  }
}

void put_gradient(int input, const Tensor& condition, const Tensor& dy, const Shape& shape,
                  GradientSink& sink) {
  if (!sink.wants(input)) return;
  const auto masked = [&] {
    return input == 1 ? select(condition, dy, 0) : select(condition, 0, dy);
  };
  if (dy.shape() == shape) {
    sink.put(input, masked);
  } else {
    const Tensor wide = masked();
    sink.put(input, [&] { return sum_to_shape(wide, shape); });
  }
}

}  // namespace

Tensor select(const Tensor& condition, const Operand& a, const Operand& b) {
  require_defined(kOp, "the condition", condition, a.location());
  require_dtype(condition.dtype() == DType::boolean, kOp, condition, "dtype bool as the condition",
                a.location());
  const OperandPair pair(kOp, a, b);
  const Device device = common_device(kOp, {&condition, &a.tensor(), &b.tensor()}, pair.at);
  const Shape shape = broadcast_shapes(condition.shape(), pair.shape, kOp, pair.at);
  Tensor y;
  if (!traced::on(device)) {
    const Broadcast<3> plan(shape, {&condition.shape(), &pair.shape_a, &pair.shape_b});
    y = make_result(device, pair.dtype, shape);
    if (device.is_host())
      select_cpu(condition.raw_data(), pair.data_a, pair.data_b, y, plan);
    else
      launch(
          kOp, device, writes(y),
          reads(condition, as_tensor(kOp, a, pair.dtype), as_tensor(kOp, b, pair.dtype)),
          [plan](Tensor& to, const Tensor& flags, const Tensor& from_a, const Tensor& from_b) {
            select_cpu(flags.raw_data(), from_a.raw_data(), from_b.raw_data(), to, plan);
          },
          [plan](Tensor& to, const Tensor& flags, const Tensor& from_a, const Tensor& from_b) {
            cuda::select(size_of(to.dtype()), flags.raw_data(), from_a.raw_data(),
                         from_b.raw_data(), write<void>(to), plan, to.num_elements(), to.device());
          });
  } else {
    y = traced::select(condition, a, b, pair);
  }
  if (is_floating(pair.dtype))
    record(kOp, {&condition, &a.tensor(), &b.tensor()}, y,
           [condition, shape_a = pair.shape_a, shape_b = pair.shape_b](const Tensor& dy,
                                                                       GradientSink& sink) {
             put_gradient(1, condition, dy, shape_a, sink);
             put_gradient(2, condition, dy, shape_b, sink);
           });
  return y;
}

}  // namespace lockstep
