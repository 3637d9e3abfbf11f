// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "ops/hlo.h"
#include "ops/traced.h"

namespace lockstep::traced {
namespace {

using hlo::Element;
using hlo::Expr;

// "{ ^bb0(...): ... }": whether value %x comes before value %y; the places beside them are not
// looked at, as the sort is stable.
std::string order(Element element, bool descending) {
  const std::string value = hlo::Type{element, Shape{}}.text();
  const std::string place = hlo::Type{Element::i32, Shape{}}.text();
  const auto compared = [&](const char* result, const char* a, const char* b,
                            const char* direction) {
    return std::string(result) + " = \"stablehlo.compare\"(" + a + ", " + b +
           ") <{comparison_direction = #stablehlo<comparison_direction " + direction + ">}> : (" +
           value + ", " + value + ") -> tensor<i1> ";
  };
  const auto both = [](const char* result, const char* instruction, const char* a, const char* b) {
    return std::string(result) + " = \"stablehlo." + instruction + "\"(" + a + ", " + b +
           ") : (tensor<i1>, tensor<i1>) -> tensor<i1> ";
  };
  std::string text = "{ ^bb0(%x: " + value + ", %y: " + value + ", %i: " + place +
                     ", %j: " + place +
                     "): " + compared("%l", "%x", "%y", descending ? "GT" : "LT");
  const char* result = "%l";
  if (hlo::is_floating(element)) {  // NaN is the largest
    const char* const larger = descending ? "%x" : "%y";
    const char* const smaller = descending ? "%y" : "%x";
    text += compared("%n", larger, larger, "NE") + compared("%m", smaller, smaller, "EQ") +
            both("%b", "and", "%n", "%m") + both("%z", "or", "%l", "%b");
    result = "%z";
  }
  return text + "\"stablehlo.return\"(" + result + ") : (tensor<i1>) -> () }";
}

}  // namespace

Sorted sort(const Tensor& x, int axis, std::int64_t k, bool descending) {
  const Expr values = hlo::operand("sort", x);
  const Expr places = hlo::iota({Element::i32, x.shape()}, axis);
  const xla::Node operands[] = {values.node(), places.node()};
  const hlo::Type types[] = {values.type(), places.type()};
  const auto sorted =
      xla::current_trace()->emit("stablehlo.sort", operands,
                                 "dimension = " + std::to_string(axis) + " : i64, is_stable = true",
                                 types, order(values.element(), descending));
  const Shape shape = x.shape().with_dim(axis, k);
  const std::vector<std::int64_t> begin(static_cast<std::size_t>(x.rank()));
  const auto first = [&](const xla::Node& node) {
    const Expr all(node);
    return all.shape() == shape ? all : hlo::slice(all, begin, shape.dims());
  };
  return {hlo::tensor(first(sorted[0]), x.dtype()), hlo::tensor(first(sorted[1]), DType::i32)};
}

}  // namespace lockstep::traced
