// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>

#include "ops/cuda/kernels.h"
#include "ops/elementwise_cpu.h"
#include "ops/launch.h"
#include "ops/operands.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

Tensor compare(CompareOp op, const char* name, const Operand& a, const Operand& b) {
  const OperandPair pair(name, a, b);
  if (traced::on(pair.device)) return traced::compare(op, a, b, pair);
  Tensor y = make_result(pair.device, DType::boolean, pair.shape);
  const Broadcast<2> plan(pair.shape, {&pair.shape_a, &pair.shape_b});
  if (pair.device.is_host())
    cpu::compare(op, pair.dtype, pair.data_a, pair.data_b, write<bool>(y), plan);
  else
    launch(
        name, pair.device, writes(y),
        reads(as_tensor(name, a, pair.dtype), as_tensor(name, b, pair.dtype)),
        [op, plan](Tensor& to, const Tensor& from_a, const Tensor& from_b) {
          cpu::compare(op, from_a.dtype(), from_a.raw_data(), from_b.raw_data(), write<bool>(to),
                       plan);
        },
        [op, plan](Tensor& to, const Tensor& from_a, const Tensor& from_b) {
          cuda::compare(op, from_a.dtype(), from_a.raw_data(), from_b.raw_data(), write<bool>(to),
                        plan, to.num_elements(), to.device());
        });
  return y;
}

void require_booleans(const char* name, const Operand& a, const Operand& b,
                      const OperandPair& pair) {
  require_dtype(pair.dtype == DType::boolean, name, a.is_number() ? b.tensor() : a.tensor(),
                "dtype bool", pair.at);
}

// Booleans are bytes 0 and 1, of which the smaller is "and" and the larger "or".
Tensor logical(BinaryOp op, const char* name, const Operand& a, const Operand& b) {
  const OperandPair pair(name, a, b);
  require_booleans(name, a, b, pair);
  if (traced::on(pair.device))
    return traced::logical(op == BinaryOp::minimum ? "and" : "or", a, b, pair);
  Tensor y = make_result(pair.device, DType::boolean, pair.shape);
  const Broadcast<2> plan(pair.shape, {&pair.shape_a, &pair.shape_b});
  if (pair.device.is_host())
    cpu::binary(op, DType::u8, pair.data_a, pair.data_b, write<void>(y), plan);
  else
    launch(
        name, pair.device, writes(y),
        reads(as_tensor(name, a, pair.dtype), as_tensor(name, b, pair.dtype)),
        [op, plan](Tensor& to, const Tensor& from_a, const Tensor& from_b) {
          cpu::binary(op, DType::u8, from_a.raw_data(), from_b.raw_data(), write<void>(to), plan);
        },
        [op, plan](Tensor& to, const Tensor& from_a, const Tensor& from_b) {
          cuda::binary(op, DType::u8, from_a.raw_data(), from_b.raw_data(), write<void>(to), plan,
                       to.num_elements(), to.device());
        });
  return y;
}

Tensor predicate(PredicateOp op, const char* name, const Tensor& x, SourceLocation at) {
  require_defined(name, "x", x, at);
  const Device device = common_device(name, {&x}, at);
  require_dtype(x.dtype() != DType::boolean, name, x, "a floating or integer dtype", at);
  if (traced::on(device)) return traced::predicate(op, x, at);
  Tensor y = make_result(device, DType::boolean, x.shape());
  launch(
      name, device, writes(y), reads(x),
      [op](Tensor& to, const Tensor& from) {
        cpu::predicate(op, from.dtype(), from.raw_data(), write<bool>(to), from.num_elements());
      },
      [op](Tensor& to, const Tensor& from) {
        cuda::predicate(op, from.dtype(), from.raw_data(), write<bool>(to), from.num_elements(),
                        to.device());
      });
  return y;
}

// On the host, in one pass.
Tensor clamp_to_numbers(const Tensor& x, const Operand& low, const Operand& high,
                        const OperandPair& least, const OperandPair& most) {
  Tensor y = make_result(least.device, x.dtype(), x.shape());
  cpu::clamp(x.dtype(), x.raw_data(), least.data_b, most.data_b, write<void>(y), x.num_elements());
  if (is_floating(x.dtype()))
    record("clamp", {&x}, y,
           [x, low = low.number(), high = high.number()](const Tensor& dy, GradientSink& sink) {
             if (!sink.wants(0)) return;
             const Tensor inside = logical_and(greater_equal(x, low), less_equal(x, high));
             sink.put(0, [&] { return select(inside, dy, 0); });
           });
  return y;
}

}  // namespace

#define LOCKSTEP_DEFINE_COMPARE(name, Functor) \
  Tensor name(const Operand& a, const Operand& b) { return compare(CompareOp::name, #name, a, b); }
#define LOCKSTEP_DEFINE_PREDICATE(name, Functor)       \
  Tensor name(const Tensor& x, SourceLocation at) {    \
    return predicate(PredicateOp::name, #name, x, at); \
  }
LOCKSTEP_COMPARE_OPS(LOCKSTEP_DEFINE_COMPARE)
LOCKSTEP_PREDICATE_OPS(LOCKSTEP_DEFINE_PREDICATE)

Tensor logical_and(const Operand& a, const Operand& b) {
  return logical(BinaryOp::minimum, "logical_and", a, b);
}

Tensor logical_or(const Operand& a, const Operand& b) {
  return logical(BinaryOp::maximum, "logical_or", a, b);
}

Tensor logical_xor(const Operand& a, const Operand& b) {
  require_booleans("logical_xor", a, b, OperandPair("logical_xor", a, b));
  return compare(CompareOp::not_equal, "logical_xor", a, b);
}

Tensor logical_not(const Tensor& x, SourceLocation at) {
  require_defined("logical_not", "x", x, at);
  require_dtype(x.dtype() == DType::boolean, "logical_not", x, "dtype bool", at);
  return compare(CompareOp::equal, "logical_not", Operand(x, at), Operand(false, at));
}

Tensor clamp(const Tensor& x, const Operand& low, const Operand& high) {
  constexpr const char* kOp = "clamp";
  const SourceLocation at = low.location();
  require_defined(kOp, "x", x, at);
  const Operand operand(x, at);
  const OperandPair least(kOp, operand, low), most(kOp, operand, high);
  require_dtype(cpu::offers(BinaryOp::maximum, x.dtype()), kOp, x, "a floating or integer dtype",
                at);
  if (low.is_number() && high.is_number() && x.device().is_host())
    return clamp_to_numbers(x, low, high, least, most);
  broadcast_shapes(least.shape, most.shape, kOp, at);
  common_device(kOp, {&x, &low.tensor(), &high.tensor()}, at);
  return minimum(maximum(operand, low), high);
}

}  // namespace lockstep
