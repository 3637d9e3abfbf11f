// SPDX-License-Identifier: Apache-2.0
#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Expr;
using xla::Node;

std::string all_replicas(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i ? ", " : "") + std::to_string(i);
  return "replica_groups = dense<[[" + list + "]]> : tensor<1x" + std::to_string(count) + "xi64>";
}

// Collectives of a program come one after the other: each waits for the last one's result. Devices
// that share threads would otherwise wait in different ones for each other.
std::vector<Node> after_others(std::vector<Node> operands) {
  const std::optional<Node>& last = xla::current_trace()->last_collective;
  if (!last) return operands;
  operands.push_back(*last);
  std::vector<hlo::Type> types;
  types.reserve(operands.size());
  for (const Node& operand : operands) types.push_back(operand.type);
  operands = xla::current_trace()->emit("stablehlo.optimization_barrier", operands, "", types);
  operands.pop_back();
  return operands;
}

std::vector<Node> collective(std::string_view instruction, std::vector<Node> operands,
                             const std::string& attributes, std::span<const hlo::Type> types,
                             const std::string& region = {}) {
  auto results = xla::current_trace()->emit(instruction, after_others(std::move(operands)),
                                            attributes, types, region);
  xla::current_trace()->last_collective = results[0];
  return results;
}

}  // namespace

std::vector<Tensor> all_reduce(std::span<const Tensor> values, int replicas, ReduceOp op) {
  std::vector<Node> operands;
  std::vector<hlo::Type> types;
  operands.reserve(values.size());
  types.reserve(values.size());
  for (const Tensor& value : values) {
    // A mean of 16-bit floats is taken in f32.
    operands.push_back((op == ReduceOp::mean ? hlo::wide_operand("all_reduce", value)
                                             : hlo::operand("all_reduce", value))
                           .node());
    types.push_back(operands.back().type);
  }
  const auto sums = collective("stablehlo.all_reduce", std::move(operands), all_replicas(replicas),
                               types, hlo::reducer("add", types[0].element));
  std::vector<Tensor> results;
  results.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Expr sum(sums[i]);
    results.push_back(hlo::tensor(op == ReduceOp::mean ? sum / replicas : sum, values[i].dtype()));
  }
  return results;
}

Tensor all_gather(const Tensor& value, int replicas) {
  const Expr rows = hlo::operand("all_gather", value);
  const hlo::Type type{rows.element(), value.shape().with_dim(0, value.dim(0) * replicas)};
  return hlo::tensor(
      Expr(collective("stablehlo.all_gather", {rows.node()},
                      "all_gather_dim = 0 : i64, " + all_replicas(replicas), {&type, 1})[0]),
      value.dtype());
}

Tensor reduce_scatter(const Tensor& value, int replicas) {
  const Expr rows = hlo::operand("reduce_scatter", value);
  const hlo::Type type{rows.element(), value.shape().with_dim(0, value.dim(0) / replicas)};
  return hlo::tensor(Expr(collective("stablehlo.reduce_scatter", {rows.node()},
                                     all_replicas(replicas) + ", scatter_dimension = 0 : i64",
                                     {&type, 1}, hlo::reducer("add", rows.element()))[0]),
                     value.dtype());
}

Tensor first_rows(std::int64_t rows, std::int64_t count) {
  const Expr limit(
      xla::current_trace()->literal(hlo::Element::i64, static_cast<std::uint64_t>(count), true));
  return hlo::tensor(hlo::iota({hlo::Element::i64, Shape{rows}}, 0) < limit, DType::boolean);
}

Tensor varying_number(std::int64_t value) {
  return hlo::tensor(Expr(xla::current_trace()->literal(hlo::Element::i64,
                                                        static_cast<std::uint64_t>(value), true)),
                     DType::i64);
}

}  // namespace lockstep::traced
