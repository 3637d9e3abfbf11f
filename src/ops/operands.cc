// SPDX-License-Identifier: Apache-2.0
#include "ops/operands.h"

#include <cstring>
#include <limits>

#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

template <class T>
bool holds(double number) {
  if constexpr (std::is_integral_v<T>) {
    // 2^63 is the least double above every int64.
    constexpr T kHalfOfEnd = std::numeric_limits<T>::max() / 2 + 1;
    constexpr double kEnd = static_cast<double>(kHalfOfEnd) * 2;
    return number >= static_cast<double>(std::numeric_limits<T>::min()) && number < kEnd &&
           number == static_cast<double>(static_cast<std::int64_t>(number));
  }
  return true;
}

// Writes `number` as one element of `dtype`.
void convert_number(const char* op, double number, DType dtype, SourceLocation at, void* element) {
  visit_dtype(dtype, [&]<class T>(T) {
    require(holds<T>(number), at, op, "the number ", number, " beside a tensor of ", name_of(dtype),
            " is not one of its values; cast the tensor to a floating dtype first");
    T value;
    if constexpr (std::is_arithmetic_v<T>)
      value = static_cast<T>(number);
    else
      value = T(static_cast<float>(number));
    std::memcpy(element, &value, sizeof(T));
  });
}

}  // namespace

OperandPair::OperandPair(const char* op, const Operand& a, const Operand& b) : at(a.location()) {
  require(!a.is_number() || !b.is_number(), at, op, "expected a tensor, got two numbers");
  if (!a.is_number()) require_defined(op, "the first operand", a.tensor(), at);
  if (!b.is_number()) require_defined(op, "the second operand", b.tensor(), at);
  const Tensor& known = a.is_number() ? b.tensor() : a.tensor();
  dtype = known.dtype();
  device = common_device(op, {&a.tensor(), &b.tensor()}, at);
  const auto prepare = [&](const Operand& operand, Shape& own, const void*& data) {
    if (operand.is_number()) {
      convert_number(op, operand.number(), dtype, at, number_);
      data = number_;
    } else {
      own = operand.tensor().shape();
      data = operand.tensor().raw_data();
    }
  };
  if (!a.is_number() && !b.is_number()) require_same_dtype(op, a.tensor(), b.tensor(), at);
  prepare(a, shape_a, data_a);
  prepare(b, shape_b, data_b);
  shape = shape_a == shape_b ? shape_a : broadcast_shapes(shape_a, shape_b, op, at);
}

Tensor as_tensor(const char* op, const Operand& operand, DType dtype) {
  if (!operand.is_number()) return operand.tensor();
  unsigned char element[8];
  convert_number(op, operand.number(), dtype, operand.location(), element);
  Buffer buffer = Buffer::allocate(Device{}, size_of(dtype));
  std::memcpy(buffer.data(), element, size_of(dtype));
  return Tensor(std::move(buffer), dtype, Shape{});
}

}  // namespace lockstep
