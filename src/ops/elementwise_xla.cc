// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/binary_list.h"
#include "ops/hlo.h"
#include "ops/traced.h"
#include "ops/unary_list.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;

using UnaryBody = Expr (*)(const Expr& x);
using BinaryBody = Expr (*)(const Expr& a, const Expr& b);

#define LOCKSTEP_TRACED_UNARY(name, Functor) Functor::traced<Expr>,
#define LOCKSTEP_TRACED_BINARY(name, Functor) Functor::traced<Expr>,
constexpr UnaryBody kUnary[] = {LOCKSTEP_UNARY_OPS(LOCKSTEP_TRACED_UNARY)};
constexpr BinaryBody kBinary[] = {LOCKSTEP_BINARY_OPS(LOCKSTEP_TRACED_BINARY)};
constexpr BinaryBody kCompare[] = {LOCKSTEP_COMPARE_OPS(LOCKSTEP_TRACED_BINARY)};
constexpr UnaryBody kPredicate[] = {LOCKSTEP_PREDICATE_OPS(LOCKSTEP_TRACED_UNARY)};

// Half floats are computed in f32, unless the op only moves them.
Expr wide(const Expr& x) {
  return hlo::is_half(x.element()) ? hlo::convert(x, hlo::Element::f32) : x;
}

struct Operands {
  Expr a, b;
};

// A number is a literal of the program, which becomes an argument if it changes.
Expr operand_of(const Operand& operand, const void* data, const OperandPair& pair) {
  if (!operand.is_number()) return hlo::operand("elementwise", operand.tensor(), pair.at);
  std::uint64_t bits = 0;
  std::memcpy(&bits, data, size_of(pair.dtype));
  return Expr(xla::current_trace()->literal(xla::element_of(pair.dtype), bits));
}

Operands operands_of(const Operand& a, const Operand& b, const OperandPair& pair) {
  // In this order, whichever is a number: without a trace the tensor says so.
  if (!a.is_number()) {
    const Expr first = operand_of(a, pair.data_a, pair);
    return {first, operand_of(b, pair.data_b, pair)};
  }
  const Expr second = operand_of(b, pair.data_b, pair);
  return {operand_of(a, pair.data_a, pair), second};
}

}  // namespace

Tensor unary(UnaryOp op, const Tensor& x, SourceLocation at) {
  return hlo::tensor(kUnary[static_cast<int>(op)](hlo::wide_operand("elementwise", x, at)),
                     x.dtype());
}

Tensor binary(BinaryOp op, const Operand& a, const Operand& b, const OperandPair& pair) {
  const Operands operands = operands_of(a, b, pair);
  return hlo::tensor(kBinary[static_cast<int>(op)](wide(operands.a), wide(operands.b)), pair.dtype);
}

Tensor compare(CompareOp op, const Operand& a, const Operand& b, const OperandPair& pair) {
  const Operands operands = operands_of(a, b, pair);
  return hlo::tensor(kCompare[static_cast<int>(op)](wide(operands.a), wide(operands.b)),
                     DType::boolean);
}

Tensor logical(std::string_view instruction, const Operand& a, const Operand& b,
               const OperandPair& pair) {
  const Operands operands = operands_of(a, b, pair);
  return hlo::tensor(hlo::apply(instruction, operands.a, operands.b), DType::boolean);
}

Tensor predicate(PredicateOp op, const Tensor& x, SourceLocation at) {
  return hlo::tensor(kPredicate[static_cast<int>(op)](hlo::wide_operand("elementwise", x, at)),
                     DType::boolean);
}

Tensor select(const Tensor& condition, const Operand& a, const Operand& b,
              const OperandPair& pair) {
  const Expr flags = hlo::operand("select", condition, pair.at);
  const Operands operands = operands_of(a, b, pair);
  return hlo::tensor(hlo::select(flags, operands.a, operands.b), pair.dtype);
}

Tensor cast(const Tensor& x, DType dtype) { return hlo::tensor(hlo::operand("cast", x), dtype); }

}  // namespace lockstep::traced
