// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>

#include "ops/broadcast.h"
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

// On the host; `shape` is that of the result.
Tensor selected(const Tensor& condition, const OperandPair& pair, Device device,
                const Shape& shape) {
  const Broadcast<3> plan(shape, {&condition.shape(), &pair.shape_a, &pair.shape_b});
  Tensor y = make_result(device, pair.dtype, shape);
  const auto* flags = static_cast<const std::uint8_t*>(condition.raw_data());
  const auto run = [&]<class T>(T) {
    select_cpu<T>(flags, pair.data_a, pair.data_b, write<void>(y), plan);
  };
  switch (size_of(pair.dtype)) {
    case 1:
      run(std::uint8_t{});
      break;
    case 2:
      run(std::uint16_t{});
      break;
    case 4:
      run(std::uint32_t{});
      break;
    default:
      run(std::uint64_t{});
      break;
  }
  return y;
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
  if (traced::on(device))
    y = traced::select(condition, a, b, pair);
  else
    y = selected(condition, pair, device, shape);
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
