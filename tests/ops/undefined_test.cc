// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/declared_ops.h"
#include "support/elementwise_rows.h"
#include "support/errors.h"

namespace lockstep {
namespace {

using testing::caught;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using T = const Tensor&;

Tensor indices() { return Tensor({2}, {0, 1}); }

void update(const UpdateRule& rule, std::vector<Tensor> state, const Tensor& gradient,
            const UpdateStep& step, SourceLocation at = SourceLocation::current()) {
  apply_update(rule, state, gradient, step, at);
}

struct Call {
  const char* op;
  const char* argument;
  void (*run)(T x, T u);  // u is undefined
  int line;
};

// A call and its __LINE__ stand on one line.
// clang-format off
const Call kCalls[] = {
    {"equal", "the first operand", [](T x, T u) { equal(u, x); }, __LINE__},
    {"equal", "the second operand", [](T x, T u) { equal(x, u); }, __LINE__},
    {"not_equal", "the first operand", [](T x, T u) { not_equal(u, x); }, __LINE__},
    {"not_equal", "the second operand", [](T x, T u) { not_equal(x, u); }, __LINE__},
    {"less", "the first operand", [](T x, T u) { less(u, x); }, __LINE__},
    {"less", "the second operand", [](T x, T u) { less(x, u); }, __LINE__},
    {"less_equal", "the first operand", [](T x, T u) { less_equal(u, x); }, __LINE__},
    {"less_equal", "the second operand", [](T x, T u) { less_equal(x, u); }, __LINE__},
    {"greater", "the first operand", [](T x, T u) { greater(u, x); }, __LINE__},
    {"greater", "the second operand", [](T x, T u) { greater(x, u); }, __LINE__},
    {"greater_equal", "the first operand", [](T x, T u) { greater_equal(u, x); }, __LINE__},
    {"greater_equal", "the second operand", [](T x, T u) { greater_equal(x, u); }, __LINE__},
    {"add", "the second operand", [](T x, T u) { x + u; }, __LINE__},
    {"mul", "the first operand", [](T, T u) { u * 2; }, __LINE__},
    {"neg", "x", [](T, T u) { -u; }, __LINE__},
    {"logical_and", "the first operand", [](T, T u) { logical_and(u, Tensor(true)); }, __LINE__},
    {"logical_xor", "the first operand", [](T, T u) { logical_xor(u, Tensor(true)); }, __LINE__},
    {"logical_or", "the first operand", [](T, T u) { logical_or(u, Tensor(true)); }, __LINE__},
    {"logical_not", "x", [](T, T u) { logical_not(u); }, __LINE__},
    {"is_finite", "x", [](T, T u) { is_finite(u); }, __LINE__},
    {"is_nan", "x", [](T, T u) { is_nan(u); }, __LINE__},
    {"is_inf", "x", [](T, T u) { is_inf(u); }, __LINE__},
    {"select", "the condition", [](T x, T u) { select(u, x, x); }, __LINE__},
    {"select", "the first operand", [](T x, T u) { select(Tensor(true), u, x); }, __LINE__},
    {"clamp", "x", [](T, T u) { clamp(u, 0, 1); }, __LINE__},
    {"clamp", "the second operand", [](T x, T u) { clamp(x, 0, u); }, __LINE__},
    {"activate", "x", [](T, T u) { activate(u, Activation::none); }, __LINE__},
    {"sum", "x", [](T, T u) { sum(u); }, __LINE__},
    {"mean", "x", [](T, T u) { mean(u); }, __LINE__},
    {"max", "x", [](T, T u) { max(u); }, __LINE__},
    {"min", "x", [](T, T u) { min(u); }, __LINE__},
    {"any", "x", [](T, T u) { any(u); }, __LINE__},
    {"all", "x", [](T, T u) { all(u); }, __LINE__},
    {"argmin", "x", [](T, T u) { argmin(u); }, __LINE__},
    {"prod", "x", [](T, T u) { prod(u); }, __LINE__},
    {"variance", "x", [](T, T u) { variance(u); }, __LINE__},
    {"stddev", "x", [](T, T u) { stddev(u); }, __LINE__},
    {"logsumexp", "x", [](T, T u) { logsumexp(u); }, __LINE__},
    {"cumsum", "x", [](T, T u) { cumsum(u); }, __LINE__},
    {"categorical", "logits", [](T, T u) { categorical(u, 1); }, __LINE__},
    {"max_pool3d", "x", [](T, T u) { max_pool3d(u); }, __LINE__},
    {"avg_pool1d", "x", [](T, T u) { avg_pool1d(u); }, __LINE__},
    {"conv1d_input_gradient", "w", [](T x, T u) { conv1d_input_gradient(x, u, {1, 1, 1}); }, __LINE__},
    {"conv3d_weight_gradient", "dy", [](T x, T u) { conv3d_weight_gradient(u, x, {1, 1, 1, 1, 1}); }, __LINE__},
    {"to_dense", "indices", [](T x, T u) { to_dense({x, u, {3, 2}}); }, __LINE__},
    {"to_dense", "values", [](T, T u) { to_dense({u, indices(), {3, 2}}); }, __LINE__},
    {"coalesce", "indices", [](T x, T u) { coalesce({x, u, {3, 2}}); }, __LINE__},
    {"coalesce", "values", [](T, T u) { coalesce({u, indices(), {3, 2}}); }, __LINE__},
    {"shuffle", "x", [](T, T u) { shuffle(u); }, __LINE__},
    {"argmax", "x", [](T, T u) { argmax(u); }, __LINE__},
    {"transpose", "x", [](T, T u) { transpose(u); }, __LINE__},
    {"softmax", "x", [](T, T u) { softmax(u); }, __LINE__},
    {"log_softmax", "x", [](T, T u) { log_softmax(u); }, __LINE__},
    {"squeeze", "x", [](T, T u) { squeeze(u); }, __LINE__},
    {"flatten_from", "x", [](T, T u) { flatten_from(u); }, __LINE__},
    {"stop_gradient", "x", [](T, T u) { stop_gradient(u); }, __LINE__},
    {"max_pool2d", "x", [](T, T u) { max_pool2d(u); }, __LINE__},
    {"avg_pool2d", "x", [](T, T u) { avg_pool2d(u); }, __LINE__},
    {"max_pool1d", "x", [](T, T u) { max_pool1d(u); }, __LINE__},
    {"avg_pool3d", "x", [](T, T u) { avg_pool3d(u); }, __LINE__},
    {"global_max_pool", "x", [](T, T u) { global_max_pool(u); }, __LINE__},
    {"global_avg_pool", "x", [](T, T u) { global_avg_pool(u); }, __LINE__},
    {"einsum", "an operand", [](T x, T u) { einsum("ij,jk", {x, u}); }, __LINE__},
    {"sum_to_shape", "x", [](T, T u) { sum_to_shape(u, {2}); }, __LINE__},
    {"reshape", "x", [](T, T u) { reshape(u, Shape{2}); }, __LINE__},
    {"reshape", "x", [](T, T u) { reshape(u, {2, -1}); }, __LINE__},
    {"expand_dims", "x", [](T, T u) { expand_dims(u, 0); }, __LINE__},
    {"broadcast_to", "x", [](T, T u) { broadcast_to(u, {2}); }, __LINE__},
    {"concat", "a part", [](T x, T u) { concat({x, u}, 0); }, __LINE__},
    {"stack", "a part", [](T x, T u) { stack({u, x}); }, __LINE__},
    {"split", "x", [](T, T u) { split(u, 2, 0); }, __LINE__},
    {"slice", "x", [](T, T u) { slice(u, {0}, {1}); }, __LINE__},
    {"pad", "x", [](T, T u) { pad(u, {0}, {1}); }, __LINE__},
    {"unstack", "x", [](T, T u) { unstack(u); }, __LINE__},
    {"strided_slice", "x", [](T, T u) { strided_slice(u, {}); }, __LINE__},
    {"strided_slice_gradient", "dy", [](T, T u) { strided_slice_gradient(u, {2}, {}); }, __LINE__},
    {"reverse", "x", [](T, T u) { reverse(u, {0}); }, __LINE__},
    {"roll", "x", [](T, T u) { roll(u, {1}, {0}); }, __LINE__},
    {"tile", "x", [](T, T u) { tile(u, {2}); }, __LINE__},
    {"sort", "x", [](T, T u) { sort(u); }, __LINE__},
    {"argsort", "x", [](T, T u) { argsort(u); }, __LINE__},
    {"top_k", "x", [](T, T u) { top_k(u, 1); }, __LINE__},
    {"cast", "x", [](T, T u) { cast(u, DType::f64); }, __LINE__},
    {"gather", "x", [](T, T u) { gather(u, indices()); }, __LINE__},
    {"gather", "indices", [](T x, T u) { gather(x, u); }, __LINE__},
    {"scatter_add", "indices", [](T x, T u) { scatter_add(u, x, 2); }, __LINE__},
    {"scatter_add", "updates", [](T, T u) { scatter_add(indices(), u, 2); }, __LINE__},
    {"gather_nd", "x", [](T, T u) { gather_nd(u, indices()); }, __LINE__},
    {"gather_nd", "indices", [](T x, T u) { gather_nd(x, u); }, __LINE__},
    {"take_along_axis", "x", [](T, T u) { take_along_axis(u, indices()); }, __LINE__},
    {"take_along_axis", "indices", [](T x, T u) { take_along_axis(x, u); }, __LINE__},
    {"embedding_lookup", "x", [](T, T u) { embedding_lookup(u, indices()); }, __LINE__},
    {"embedding_lookup", "indices", [](T x, T u) { embedding_lookup(x, u); }, __LINE__},
    {"where", "the condition", [](T, T u) { where(u); }, __LINE__},
    {"scatter_nd", "indices", [](T x, T u) { scatter_nd(u, x, {2}); }, __LINE__},
    {"scatter_nd", "updates", [](T, T u) { scatter_nd(indices(), u, {2}); }, __LINE__},
    {"tensor_scatter_add", "x", [](T x, T u) { tensor_scatter_add(u, indices(), x); }, __LINE__},
    {"tensor_scatter_add", "indices", [](T x, T u) { tensor_scatter_add(x, u, x); }, __LINE__},
    {"tensor_scatter_add", "updates", [](T x, T u) { tensor_scatter_add(x, indices(), u); }, __LINE__},
    {"segment_sum", "x", [](T, T u) { segment_sum(u, indices()); }, __LINE__},
    {"segment_sum", "indices", [](T x, T u) { segment_sum(x, u); }, __LINE__},
    {"unsorted_segment_sum", "x", [](T, T u) { unsorted_segment_sum(u, indices(), 2); }, __LINE__},
    {"unsorted_segment_sum", "indices", [](T x, T u) { unsorted_segment_sum(x, u, 2); }, __LINE__},
    {"one_hot", "indices", [](T, T u) { one_hot(u, 3); }, __LINE__},
    {"matmul", "a", [](T x, T u) { matmul(u, x); }, __LINE__},
    {"matmul", "b", [](T x, T u) { matmul(x, u); }, __LINE__},
    {"dense", "x", [](T x, T u) { dense(u, x, u); }, __LINE__},
    {"dense", "w", [](T x, T u) { dense(x, u, u); }, __LINE__},
    {"sparse_softmax_cross_entropy", "labels", [](T x, T u) { sparse_softmax_cross_entropy(u, x); }, __LINE__},
    {"sparse_softmax_cross_entropy", "logits", [](T, T u) { sparse_softmax_cross_entropy(indices(), u); }, __LINE__},
    {"sigmoid_cross_entropy", "labels", [](T x, T u) { sigmoid_cross_entropy(u, x); }, __LINE__},
    {"sigmoid_cross_entropy", "logits", [](T x, T u) { sigmoid_cross_entropy(x, u); }, __LINE__},
    {"softmax_cross_entropy", "labels", [](T x, T u) { softmax_cross_entropy(u, x); }, __LINE__},
    {"softmax_cross_entropy", "logits", [](T x, T u) { softmax_cross_entropy(x, u); }, __LINE__},
    {"scaled_dot_product_attention", "v", [](T x, T u) { scaled_dot_product_attention(x, x, u); }, __LINE__},
    {"layer_norm", "x", [](T, T u) { layer_norm(u, u, u); }, __LINE__},
    {"rms_norm", "x", [](T, T u) { rms_norm(u, u); }, __LINE__},
    {"group_norm", "x", [](T, T u) { group_norm(u, u, u); }, __LINE__},
    {"batch_norm", "x", [](T, T u) { batch_norm(u, u, u); }, __LINE__},
    {"batch_norm_inference", "mean", [](T x, T u) { batch_norm_inference(x, u, x, u, u); }, __LINE__},
    {"conv1d", "x", [](T x, T u) { conv1d(u, x, u); }, __LINE__},
    {"conv3d", "w", [](T x, T u) { conv3d(x, u, u); }, __LINE__},
    {"depthwise_conv2d", "w", [](T x, T u) { depthwise_conv2d(x, u, u); }, __LINE__},
    {"conv1d_transpose", "x", [](T x, T u) { conv1d_transpose(u, x, u); }, __LINE__},
    {"conv2d_transpose", "w", [](T x, T u) { conv2d_transpose(x, u, u); }, __LINE__},
    {"conv3d_transpose", "x", [](T x, T u) { conv3d_transpose(u, x, u); }, __LINE__},
    {"conv3d_input_gradient", "w", [](T x, T u) { conv3d_input_gradient(x, u, {1, 1, 1, 1, 1}); }, __LINE__},
    {"conv1d_weight_gradient", "dy", [](T x, T u) { conv1d_weight_gradient(u, x, {1, 1, 1}); }, __LINE__},
    {"conv2d", "x", [](T x, T u) { conv2d(u, x, u); }, __LINE__},
    {"conv2d", "w", [](T x, T u) { conv2d(x, u, u); }, __LINE__},
    {"conv2d_input_gradient", "dy", [](T x, T u) { conv2d_input_gradient(u, x, {1, 1, 1, 1}); }, __LINE__},
    {"conv2d_weight_gradient", "x", [](T x, T u) { conv2d_weight_gradient(x, u, {1, 1, 1, 1}); }, __LINE__},
    {"apply_update", "weights", [](T x, T u) { update(SgdRule{}, {u}, x, {.learning_rate = x, .number = x}); }, __LINE__},
    {"apply_update", "the gradient", [](T x, T u) { update(SgdRule{}, {x}, u, {.learning_rate = x, .number = x}); }, __LINE__},
    {"apply_update", "learning_rate", [](T x, T u) { update(SgdRule{}, {x}, x, {.learning_rate = u, .number = x}); }, __LINE__},
    {"apply_update", "slot 'm'", [](T x, T u) { update(AdamRule{}, {x, u, x}, x, {.learning_rate = x, .number = x}); }, __LINE__},
    {"global_norm", "a tensor", [](T x, T u) { global_norm(std::vector{x, u}); }, __LINE__},
    {"is_finite_all", "a tensor", [](T, T u) { is_finite_all(std::vector{u}); }, __LINE__},
};
// clang-format on

void expect_error(const std::optional<InvalidArgument>& error, const char* op, const char* argument,
                  int line) {
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message(), StartsWith("[" + std::string(op) + "] "));
  EXPECT_THAT(error->message(), HasSubstr(std::string(argument) + " is undefined"));
  EXPECT_THAT(error->location().file, HasSubstr("undefined_test.cc"));
  EXPECT_EQ(error->location().line, line);
}

TEST(Undefined, ElementwiseOpsNameTheirOperandAndTheCallersLine) {
  const Tensor x = ones({2, 2}), u;
  for (const auto& row : testing::kUnaryRows) {
    const auto at = SourceLocation::current();
    expect_error(caught<InvalidArgument>([&] { row.op(u, at); }), row.name, "x", at.line);
  }
  for (const auto& row : testing::kBinaryRows) {
    const int line = __LINE__ + 1;
    const auto first = caught<InvalidArgument>([&] { row.op(u, x); });
    const auto second = caught<InvalidArgument>([&] { row.op(x, u); });
    expect_error(first, row.name, "the first operand", line);
    expect_error(second, row.name, "the second operand", line + 1);
  }
}

TEST(Undefined, NamesTheOpTheArgumentAndTheCallersLine) {
  const Tensor x = ones({2, 2});
  for (const Call& call : kCalls) {
    SCOPED_TRACE(call.op);
    const auto error = caught<InvalidArgument>([&] { call.run(x, Tensor()); });
    expect_error(error, call.op, call.argument, call.line);
  }
}

TEST(Undefined, IsARowOfEveryOp) {
  std::set<std::string> there;
  for (const auto& row : testing::kUnaryRows) there.insert(row.name);
  for (const auto& row : testing::kBinaryRows) there.insert(row.name);
  for (const Call& call : kCalls) there.insert(call.op);
  for (const testing::DeclaredOp& op : testing::declared_ops()) {
    const bool of_tensors = op.parameters.find("Tensor") != std::string::npos ||
                            op.parameters.find("Operand") != std::string::npos ||
                            op.parameters.find("IndexedSlices") != std::string::npos;
    EXPECT_TRUE(!of_tensors || there.contains(op.name)) << "add a call of " << op.name;
  }
}

}  // namespace
}  // namespace lockstep
