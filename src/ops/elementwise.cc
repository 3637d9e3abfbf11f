// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>

#include "ops/composed.h"
#include "ops/cuda/kernels.h"
#include "ops/elementwise_cpu.h"
#include "ops/launch.h"
#include "ops/operands.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

struct UnaryRule {
  const char* name;
  const char* dtypes;
  unsigned keeps;
  Tensor (*derivative)(const Tensor& kept);  // null where no gradient flows
};

struct BinaryRule {
  const char* name;
  const char* dtypes;
  unsigned a_keeps, b_keeps;
  using Gradient = Tensor (*)(const Tensor& dy, const Tensor& a, const Tensor& b, const Tensor& y);
  Gradient gradient_a, gradient_b;
};

template <class F>
Tensor derivative_of(const Tensor& kept) {
  if constexpr (F::kKeeps == kNothing)
    return Tensor(F::derivative(kept));
  else
    return F::derivative(kept);
}

template <class F>
constexpr UnaryRule unary_rule(const char* name) {
  if constexpr (requires { F::kKeeps; })
    return {name, F::kDTypes, F::kKeeps, derivative_of<F>};
  else
    return {name, F::kDTypes, kNothing, nullptr};
}

template <class F>
constexpr BinaryRule binary_rule(const char* name) {
  return {name,
          F::kDTypes,
          F::kGradientAKeeps,
          F::kGradientBKeeps,
          F::template gradient_a<Tensor>,
          F::template gradient_b<Tensor>};
}

#define LOCKSTEP_UNARY_RULE(name, Functor) unary_rule<Functor>(#name),
#define LOCKSTEP_BINARY_RULE(name, Functor) binary_rule<Functor>(#name),
constexpr UnaryRule kUnaryRules[] = {LOCKSTEP_UNARY_OPS(LOCKSTEP_UNARY_RULE)};
constexpr BinaryRule kBinaryRules[] = {LOCKSTEP_BINARY_OPS(LOCKSTEP_BINARY_RULE)};

Tensor fused_gradient(UnaryOp op, const Tensor& dy, const Tensor& kept) {
  const char* const name = kUnaryRules[static_cast<int>(op)].name;
  const Device device = common_device(name, {&dy, &kept}, {});
  Tensor dx = make_result(device, dy.dtype(), dy.shape());
  launch(
      name, device, writes(dx), reads(dy, kept),
      [op](Tensor& to, const Tensor& from, const Tensor& value) {
        cpu::unary_gradient(op, from.dtype(), from.raw_data(),
                            value.defined() ? value.raw_data() : nullptr, write<void>(to),
                            from.num_elements());
      },
      [op](Tensor& to, const Tensor& from, const Tensor& value) {
        cuda::unary_gradient(op, from.dtype(), from.raw_data(),
                             value.defined() ? value.raw_data() : nullptr, write<void>(to),
                             from.num_elements(), to.device());
      });
  return dx;
}

void put_unary_gradient(UnaryOp op, const Tensor& dy, const Tensor& kept, GradientSink& sink) {
  if (!sink.wants(0)) return;
  if (!recording({&dy, &kept}) && !traced::any({&dy, &kept})) {
    sink.put(0, [&] { return fused_gradient(op, dy, kept); });
  } else {  // for a gradient of the gradient, and where compilers fuse
    const Tensor derivative = kUnaryRules[static_cast<int>(op)].derivative(kept);
    sink.put(0, [&] { return dy * cast(derivative, dy.dtype()); });
  }
}

Tensor unary(UnaryOp op, const Tensor& x, SourceLocation at) {
  const UnaryRule& rule = kUnaryRules[static_cast<int>(op)];
  require_defined(rule.name, "x", x, at);
  const Device device = common_device(rule.name, {&x}, at);
  require_dtype(cpu::offers(op, x.dtype()), rule.name, x, rule.dtypes, at);
  Tensor y;
  if (traced::on(device)) {
    y = traced::unary(op, x, at);
  } else {
    y = make_result(device, x.dtype(), x.shape());
    launch(
        rule.name, device, writes(y), reads(x),
        [op](Tensor& to, const Tensor& from) {
          cpu::unary(op, from.dtype(), from.raw_data(), write<void>(to), from.num_elements());
        },
        [op](Tensor& to, const Tensor& from) {
          cuda::unary(op, from.dtype(), from.raw_data(), write<void>(to), from.num_elements(),
                      to.device());
        });
  }
  if (rule.derivative && is_floating(x.dtype()) && recording({&x})) {
    Tensor kept = rule.keeps == kArgument ? x : rule.keeps == kResult ? y : Tensor();
    record(rule.name, {&x}, y, [op, kept](const Tensor& dy, GradientSink& sink) {
      put_unary_gradient(op, dy, kept, sink);
    });
  }
  return y;
}

// What a binary op's rule holds on to.
struct BinaryRecord {
  BinaryOp op;
  Shape shape_a, shape_b;
  Tensor a, b, y;  // undefined where no wanted gradient reads them

  void put(int input, const Tensor& dy, GradientSink& sink) const {
    if (!sink.wants(input)) return;
    const BinaryRule& rule = kBinaryRules[static_cast<int>(op)];
    const auto gradient = input == 0 ? rule.gradient_a : rule.gradient_b;
    const Shape& shape = input == 0 ? shape_a : shape_b;
    if (fuses(input, dy)) {
      sink.put(input, [&] { return fused(input, dy); });
    } else if (dy.shape() == shape) {
      sink.put(input, [&] { return gradient(dy, a, b, y); });
    } else {
      const Tensor wide = gradient(dy, a, b, y);
      sink.put(input, [&] { return sum_to_shape(wide, shape); });
    }
  }

 private:
  // In one pass on the host, where the input is not broadcast and the other at most from one element.
  bool fuses(int input, const Tensor& dy) const {
    const Shape& shape = input == 0 ? shape_a : shape_b;
    const Shape& other = input == 0 ? shape_b : shape_a;
    const auto on_host = [](const Tensor& x) { return !x.defined() || x.device().is_host(); };
    return cpu::has_gradient(op, input, dy.dtype()) && dy.shape() == shape &&
           (other == shape || other.num_elements() == 1) && on_host(dy) && on_host(a) &&
           on_host(b) && on_host(y) && !recording({&dy, &a, &b, &y});
  }

  Tensor fused(int input, const Tensor& dy) const {
    const auto data = [](const Tensor& x) { return x.defined() ? x.raw_data() : nullptr; };
    const char* const name = kBinaryRules[static_cast<int>(op)].name;
    Tensor dx = make_result(common_device(name, {&dy, &a, &b, &y}, {}), dy.dtype(), dy.shape());
    cpu::binary_gradient(op, input, dy.dtype(),
                         {.dy = dy.raw_data(),
                          .a = data(a),
                          .b = data(b),
                          .y = data(y),
                          .both_move = shape_a == shape_b},
                         write<void>(dx), dy.num_elements());
    return dx;
  }
};

void record_binary(BinaryOp op, const Operand& a, const Operand& b, const OperandPair& pair,
                   const Tensor& y) {
  const BinaryRule& rule = kBinaryRules[static_cast<int>(op)];
  const bool wants_a = recording({&a.tensor()}), wants_b = recording({&b.tensor()});
  if (!wants_a && !wants_b) return;
  const unsigned keeps = (wants_a ? rule.a_keeps : 0u) | (wants_b ? rule.b_keeps : 0u);
  BinaryRecord kept{.op = op,
                    .shape_a = pair.shape_a,
                    .shape_b = pair.shape_b,
                    .a = keeps & kA ? as_tensor(rule.name, a, pair.dtype) : Tensor(),
                    .b = keeps & kB ? as_tensor(rule.name, b, pair.dtype) : Tensor(),
                    .y = keeps & kResult ? y : Tensor()};
  record(rule.name, {&a.tensor(), &b.tensor()}, y,
         [kept = std::move(kept)](const Tensor& dy, GradientSink& sink) {
           // The operand that was broadcast is the smaller: a bias before an activation.
           const int first = kept.shape_b == dy.shape() ? 0 : 1;
           kept.put(first, dy, sink);
           kept.put(1 - first, dy, sink);
         });
}

}  // namespace

Tensor binary_op(BinaryOp op, const Operand& a, const Operand& b) {
  const BinaryRule& rule = kBinaryRules[static_cast<int>(op)];
  const OperandPair pair(rule.name, a, b);
  require_dtype(cpu::offers(op, pair.dtype), rule.name, a.is_number() ? b.tensor() : a.tensor(),
                rule.dtypes, pair.at);
  Tensor y;
  if (traced::on(pair.device)) {
    y = traced::binary(op, a, b, pair);
  } else {
    y = make_result(pair.device, pair.dtype, pair.shape);
    const Broadcast<2> plan(pair.shape, {&pair.shape_a, &pair.shape_b});
    if (pair.device.is_host())
      cpu::binary(op, pair.dtype, pair.data_a, pair.data_b, write<void>(y), plan);
    else
      launch(
          rule.name, pair.device, writes(y),
          reads(as_tensor(rule.name, a, pair.dtype), as_tensor(rule.name, b, pair.dtype)),
          [op, plan](Tensor& to, const Tensor& from_a, const Tensor& from_b) {
            cpu::binary(op, from_a.dtype(), from_a.raw_data(), from_b.raw_data(), write<void>(to),
                        plan);
          },
          [op, plan](Tensor& to, const Tensor& from_a, const Tensor& from_b) {
            cuda::binary(op, to.dtype(), from_a.raw_data(), from_b.raw_data(), write<void>(to),
                         plan, to.num_elements(), to.device());
          });
  }
  if (is_floating(pair.dtype)) record_binary(op, a, b, pair, y);
  return y;
}

#define LOCKSTEP_DEFINE_UNARY(name, Functor) \
  Tensor name(const Tensor& x, SourceLocation at) { return unary(UnaryOp::name, x, at); }
#define LOCKSTEP_DEFINE_BINARY(name, Functor) \
  Tensor name(const Operand& a, const Operand& b) { return binary_op(BinaryOp::name, a, b); }
LOCKSTEP_UNARY_OPS(LOCKSTEP_DEFINE_UNARY)
LOCKSTEP_BROADCASTING_OPS(LOCKSTEP_DEFINE_BINARY)

}  // namespace lockstep
