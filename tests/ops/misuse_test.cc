// SPDX-License-Identifier: Apache-2.0
// What every op says of arguments that it cannot take. Undefined ones are in undefined_test.cc.
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "device/fake/devices.h"
#include "support/declared_ops.h"
#include "support/elementwise_rows.h"
#include "support/errors.h"

namespace lockstep {
namespace {

using testing::caught;
using testing::DeclaredOp;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

enum class Wrong { dtype, shape, device, option };
using enum Wrong;

struct Misuse {
  const char* op;
  Wrong wrong;
  void (*call)();
  std::vector<std::string> words;  // what was got, and what was expected
  int line;
};

Tensor f(const Shape& shape) { return ones(shape); }
Tensor d(const Shape& shape) { return ones(shape, DType::f64); }
Tensor i(const Shape& shape) { return zeros(shape, DType::i64); }
Tensor b(const Shape& shape) { return zeros(shape, DType::boolean); }
Tensor on0(const Tensor& x) { return copy_to(x, {DeviceKind::fake, 0}); }
Tensor on1(const Tensor& x) { return copy_to(x, {DeviceKind::fake, 1}); }
const Tensor none;

void update(std::vector<Tensor> state, const Tensor& gradient, const UpdateStep& step,
            SourceLocation at = SourceLocation::current()) {
  apply_update(AverageRule{}, state, gradient, step, at);
}
UpdateStep step(const Tensor& rate = Tensor(0.1)) {
  return {.learning_rate = rate, .number = Tensor(1.0)};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<std::string> kTwoDevices = {"FAKE:0", "FAKE:1", "copy one of them"};

// A call and its __LINE__ stand on one line.
// clang-format off
const Misuse kLogic[] = {
    {"logical_and", dtype, [] { logical_and(f({2}), f({2})); }, {"f32[2]", "bool"}, __LINE__},
    {"logical_and", shape, [] { logical_and(b({2}), b({3})); }, {"[2]", "[3]"}, __LINE__},
    {"logical_and", device, [] { logical_and(on0(b({2})), on1(b({2}))); }, kTwoDevices, __LINE__},
    {"logical_or", dtype, [] { logical_or(b({2}), i({2})); }, {"bool[2]", "i64[2]", "one dtype"}, __LINE__},
    {"logical_or", shape, [] { logical_or(b({2}), b({3})); }, {"[2]", "[3]"}, __LINE__},
    {"logical_or", device, [] { logical_or(on0(b({2})), on1(b({2}))); }, kTwoDevices, __LINE__},
    {"logical_xor", dtype, [] { logical_xor(i({2}), i({2})); }, {"i64[2]", "bool"}, __LINE__},
    {"logical_xor", shape, [] { logical_xor(b({2}), b({3})); }, {"[2]", "[3]"}, __LINE__},
    {"logical_xor", device, [] { logical_xor(on0(b({2})), on1(b({2}))); }, kTwoDevices, __LINE__},
    {"logical_not", dtype, [] { logical_not(f({2})); }, {"f32[2]", "bool"}, __LINE__},
    {"is_finite", dtype, [] { is_finite(b({2})); }, {"bool[2]", "floating or integer"}, __LINE__},
    {"is_nan", dtype, [] { is_nan(b({2})); }, {"bool[2]", "floating or integer"}, __LINE__},
    {"is_inf", dtype, [] { is_inf(b({2})); }, {"bool[2]", "floating or integer"}, __LINE__},
    {"select", dtype, [] { select(f({2}), f({2}), f({2})); }, {"f32[2]", "bool"}, __LINE__},
    {"select", dtype, [] { select(b({2}), f({2}), d({2})); }, {"f32[2]", "f64[2]", "one dtype"}, __LINE__},
    {"select", shape, [] { select(b({2}), f({2}), f({3})); }, {"[2]", "[3]"}, __LINE__},
    {"select", shape, [] { select(b({4}), f({2}), f({2})); }, {"[4]", "[2]"}, __LINE__},
    {"select", device, [] { select(on0(b({2})), on1(f({2})), 0); }, kTwoDevices, __LINE__},
    {"clamp", dtype, [] { clamp(f({2}), d({2}), 1); }, {"f32[2]", "f64[2]", "one dtype"}, __LINE__},
    {"clamp", dtype, [] { clamp(b({2}), b({2}), b({2})); }, {"bool[2]", "floating or integer"}, __LINE__},
    {"clamp", shape, [] { clamp(f({2}), 0, f({3})); }, {"[2]", "[3]"}, __LINE__},
    {"clamp", device, [] { clamp(on0(f({2})), 0, on1(f({2}))); }, kTwoDevices, __LINE__},
    {"activate", dtype, [] { activate(i({2}), Activation::tanh); }, {"i64[2]", "floating"}, __LINE__},
};

const Misuse kReductions[] = {
    {"sum", dtype, [] { sum(b({2})); }, {"bool[2]", "floating dtype, i32 or i64"}, __LINE__},
    {"sum", option, [] { sum(f({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"sum", option, [] { sum(f({2, 3}), {.axes = {1, -1}}); }, {"axis", "[2, 3]", "named twice"}, __LINE__},
    {"mean", dtype, [] { mean(i({2})); }, {"i64[2]", "floating"}, __LINE__},
    {"mean", option, [] { mean(f({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"prod", dtype, [] { prod(b({2})); }, {"bool[2]", "floating dtype, i32 or i64"}, __LINE__},
    {"prod", option, [] { prod(f({2, 3}), {.axes = {-3}}); }, {"axis -3", "[2, 3]", "-2 to 1"}, __LINE__},
    {"variance", dtype, [] { variance(i({2})); }, {"i64[2]", "floating"}, __LINE__},
    {"variance", option, [] { variance(f({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"stddev", dtype, [] { stddev(i({2})); }, {"i64[2]", "floating"}, __LINE__},
    {"stddev", option, [] { stddev(f({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"logsumexp", dtype, [] { logsumexp(i({2})); }, {"i64[2]", "floating"}, __LINE__},
    {"logsumexp", option, [] { logsumexp(f({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"max", dtype, [] { max(b({2})); }, {"bool[2]", "floating or integer"}, __LINE__},
    {"max", shape, [] { max(f({2, 0}), {.axes = {1}}); }, {"[2, 0]", "expected"}, __LINE__},
    {"max", option, [] { max(f({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"min", dtype, [] { min(b({2})); }, {"bool[2]", "floating or integer"}, __LINE__},
    {"min", shape, [] { min(f({0})); }, {"[0]", "expected"}, __LINE__},
    {"min", option, [] { min(f({2, 3}), {.axes = {0, 0}}); }, {"axis", "[2, 3]", "named twice"}, __LINE__},
    {"any", dtype, [] { any(f({2})); }, {"f32[2]", "bool"}, __LINE__},
    {"any", option, [] { any(b({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"all", dtype, [] { all(i({2})); }, {"i64[2]", "bool"}, __LINE__},
    {"all", option, [] { all(b({2, 3}), {.axes = {2}}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"argmax", shape, [] { argmax(f({2, 0})); }, {"[2, 0]", "expected"}, __LINE__},
    {"argmax", option, [] { argmax(f({2, 3}), 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"argmin", option, [] { argmin(f({}), 0); }, {"axis 0", "[]", "scalar"}, __LINE__},
    {"sum_to_shape", dtype, [] { sum_to_shape(b({2, 3}), {3}); }, {"bool[2, 3]", "floating dtype, i32 or i64"}, __LINE__},
    {"sum_to_shape", option, [] { sum_to_shape(f({2, 3}), {2}); }, {"[2]", "[2, 3]", "broadcast"}, __LINE__},
    {"cumsum", dtype, [] { cumsum(b({2})); }, {"bool[2]", "floating dtype, i32 or i64"}, __LINE__},
    {"cumsum", option, [] { cumsum(f({2, 3}), {.axis = 2}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"softmax", dtype, [] { softmax(i({2})); }, {"i64[2]", "floating"}, __LINE__},
    {"softmax", option, [] { softmax(f({2, 3}), 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"log_softmax", dtype, [] { log_softmax(i({2})); }, {"i64[2]", "floating"}, __LINE__},
    {"log_softmax", option, [] { log_softmax(f({}), 0); }, {"scalar", "rank 1 or more"}, __LINE__},
    {"sort", option, [] { sort(f({2, 3}), {.axis = 2}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"argsort", option, [] { argsort(f({})); }, {"axis -1", "[]", "scalar"}, __LINE__},
    {"top_k", option, [] { top_k(f({2, 3}), 4); }, {"4", "[2, 3]", "expected"}, __LINE__},
    {"top_k", option, [] { top_k(f({2, 3}), -1); }, {"-1", "[2, 3]", "expected"}, __LINE__},
};

const Misuse kLosses[] = {
    {"sparse_softmax_cross_entropy", dtype, [] { sparse_softmax_cross_entropy(f({2}), f({2, 3})); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"sparse_softmax_cross_entropy", dtype, [] { sparse_softmax_cross_entropy(i({2}), i({2, 3})); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"sparse_softmax_cross_entropy", shape, [] { sparse_softmax_cross_entropy(i({3}), f({2, 4})); }, {"[3]", "[2, 4]", "expected"}, __LINE__},
    {"sparse_softmax_cross_entropy", option, [] { sparse_softmax_cross_entropy(Tensor({1}, {7}), f({1, 4})); }, {"label 7", "row 0", "4"}, __LINE__},
    {"sparse_softmax_cross_entropy", device, [] { sparse_softmax_cross_entropy(on0(i({2})), on1(f({2, 3}))); }, kTwoDevices, __LINE__},
    {"softmax_cross_entropy", dtype, [] { softmax_cross_entropy(f({2, 3}), d({2, 3})); }, {"f32[2, 3]", "f64[2, 3]", "one dtype"}, __LINE__},
    {"softmax_cross_entropy", dtype, [] { softmax_cross_entropy(i({2, 3}), i({2, 3})); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"softmax_cross_entropy", shape, [] { softmax_cross_entropy(f({2, 3}), f({2, 4})); }, {"[2, 3]", "[2, 4]", "expected"}, __LINE__},
    {"softmax_cross_entropy", device, [] { softmax_cross_entropy(on0(f({2, 3})), on1(f({2, 3}))); }, kTwoDevices, __LINE__},
    {"sigmoid_cross_entropy", dtype, [] { sigmoid_cross_entropy(f({2}), d({2})); }, {"f32[2]", "f64[2]", "one dtype"}, __LINE__},
    {"sigmoid_cross_entropy", dtype, [] { sigmoid_cross_entropy(i({2}), i({2})); }, {"i64[2]", "floating"}, __LINE__},
    {"sigmoid_cross_entropy", shape, [] { sigmoid_cross_entropy(f({2}), f({2, 2})); }, {"[2]", "[2, 2]", "expected"}, __LINE__},
    {"sigmoid_cross_entropy", device, [] { sigmoid_cross_entropy(on0(f({2})), on1(f({2}))); }, kTwoDevices, __LINE__},
};

const Misuse kProducts[] = {
    {"matmul", dtype, [] { matmul(f({2, 2}), d({2, 2})); }, {"f32[2, 2]", "f64[2, 2]", "one dtype"}, __LINE__},
    {"matmul", dtype, [] { matmul(b({2, 2}), b({2, 2})); }, {"bool[2, 2]", "floating"}, __LINE__},
    {"matmul", shape, [] { matmul(f({2, 3}), f({2, 4})); }, {"[2, 3]", "[2, 4]", "expected"}, __LINE__},
    {"matmul", shape, [] { matmul(f({3}), f({3, 4})); }, {"[3]", "[3, 4]", "expected"}, __LINE__},
    {"matmul", shape, [] { matmul(f({2, 3, 3}), f({4, 3, 3})); }, {"[2, 3, 3]", "[4, 3, 3]", "broadcast"}, __LINE__},
    {"matmul", device, [] { matmul(on0(f({2, 2})), on1(f({2, 2}))); }, kTwoDevices, __LINE__},
    {"dense", dtype, [] { dense(f({2, 3}), d({3, 4}), none); }, {"f32[2, 3]", "f64[3, 4]", "one dtype"}, __LINE__},
    {"dense", dtype, [] { dense(i({2, 3}), i({3, 4}), none); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"dense", dtype, [] { dense(f({2, 3}), f({3, 4}), d({4})); }, {"f64[4]", "f32[", "one dtype"}, __LINE__},
    {"dense", shape, [] { dense(f({2, 3}), f({4, 3}), none); }, {"[2, 3]", "[4, 3]", "expected"}, __LINE__},
    {"dense", shape, [] { dense(f({}), f({4, 3}), none); }, {"[]", "[4, 3]", "expected"}, __LINE__},
    {"dense", shape, [] { dense(f({2, 3}), f({3, 4}), f({3})); }, {"[3]", "[3, 4]", "expected"}, __LINE__},
    {"dense", device, [] { dense(on0(f({2, 3})), on0(f({3, 4})), on1(f({4}))); }, kTwoDevices, __LINE__},
    {"einsum", dtype, [] { einsum("ij,jk", {f({2, 3}), d({3, 4})}); }, {"f32[2, 3]", "f64[3, 4]", "one dtype"}, __LINE__},
    {"einsum", dtype, [] { einsum("ij", {b({2, 3})}); }, {"bool[2, 3]", "floating dtype, i32 or i64"}, __LINE__},
    {"einsum", shape, [] { einsum("ij,jk", {f({2, 3}), f({4, 5})}); }, {"[2, 3]", "[4, 5]", "ij,jk", "expected one extent"}, __LINE__},
    {"einsum", shape, [] { einsum("ij", {f({2, 3, 4})}); }, {"[2, 3, 4]", "ij", "rank"}, __LINE__},
    {"einsum", option, [] { einsum("i1", {f({2, 3})}); }, {"'1'", "i1", "expected letters"}, __LINE__},
    {"einsum", option, [] { einsum("ij,jk", {f({2, 3})}); }, {"got 1", "ij,jk", "expected 2"}, __LINE__},
    {"einsum", option, [] { einsum("ij->ii", {f({2, 3})}); }, {"twice", "ij->ii"}, __LINE__},
    {"einsum", device, [] { einsum("ij,jk", {on0(f({2, 3})), on1(f({3, 4}))}); }, kTwoDevices, __LINE__},
    {"scaled_dot_product_attention", dtype, [] { scaled_dot_product_attention(f({2, 3}), d({2, 3}), f({2, 3})); }, {"f32[2, 3]", "f64[2, 3]", "one dtype"}, __LINE__},
    {"scaled_dot_product_attention", dtype, [] { scaled_dot_product_attention(i({2, 3}), i({2, 3}), i({2, 3})); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"scaled_dot_product_attention", dtype, [] { scaled_dot_product_attention(f({2, 3}), f({2, 3}), f({2, 3}), d({2, 2})); }, {"f64[2, 2]", "bool, or f32"}, __LINE__},
    {"scaled_dot_product_attention", shape, [] { scaled_dot_product_attention(f({2, 3}), f({2, 4}), f({2, 3})); }, {"[2, 3]", "[2, 4]", "expected"}, __LINE__},
    {"scaled_dot_product_attention", shape, [] { scaled_dot_product_attention(f({2, 3}), f({2, 3}), f({2, 3}), b({3, 2})); }, {"[3, 2]", "[2, 2]", "expected"}, __LINE__},
    {"scaled_dot_product_attention", option, [] { scaled_dot_product_attention(f({2, 3}), f({2, 3}), f({2, 3}), none, {.scale = kInfinity}); }, {"inf", "expected a finite scale"}, __LINE__},
    {"scaled_dot_product_attention", device, [] { scaled_dot_product_attention(on0(f({2, 3})), on1(f({2, 3})), on0(f({2, 3}))); }, kTwoDevices, __LINE__},
};

const Misuse kNorms[] = {
    {"layer_norm", dtype, [] { layer_norm(i({2, 3}), none, none); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"layer_norm", dtype, [] { layer_norm(f({2, 3}), d({3}), none); }, {"f64[3]", "f32", "expected"}, __LINE__},
    {"layer_norm", shape, [] { layer_norm(f({2, 3}), f({2}), none); }, {"[2]", "[3]", "expected"}, __LINE__},
    {"layer_norm", shape, [] { layer_norm(f({2, 3}), none, f({4})); }, {"[4]", "[3]", "expected"}, __LINE__},
    {"layer_norm", option, [] { layer_norm(f({2, 3}), none, none, {.axis = 2}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"layer_norm", option, [] { layer_norm(f({2, 3}), none, none, {.epsilon = -1}); }, {"-1", "expected"}, __LINE__},
    {"layer_norm", device, [] { layer_norm(on0(f({2, 3})), on1(f({3})), none); }, kTwoDevices, __LINE__},
    {"rms_norm", dtype, [] { rms_norm(i({2, 3}), none); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"rms_norm", dtype, [] { rms_norm(f({2, 3}), d({3})); }, {"f64[3]", "f32", "expected"}, __LINE__},
    {"rms_norm", shape, [] { rms_norm(f({2, 3}), f({2})); }, {"[2]", "[3]", "expected"}, __LINE__},
    {"rms_norm", option, [] { rms_norm(f({}), none); }, {"[]", "rank 1 or more"}, __LINE__},
    {"rms_norm", option, [] { rms_norm(f({2, 3}), none, {.epsilon = -1}); }, {"-1", "expected"}, __LINE__},
    {"rms_norm", device, [] { rms_norm(on0(f({2, 3})), on1(f({3}))); }, kTwoDevices, __LINE__},
    {"group_norm", dtype, [] { group_norm(i({2, 4}), none, none, {.groups = 2}); }, {"i64[2, 4]", "floating"}, __LINE__},
    {"group_norm", dtype, [] { group_norm(f({2, 4}), none, d({4}), {.groups = 2}); }, {"f64[4]", "f32", "expected"}, __LINE__},
    {"group_norm", shape, [] { group_norm(f({2, 4}), f({2}), none, {.groups = 2}); }, {"[2]", "[4]", "expected"}, __LINE__},
    {"group_norm", shape, [] { group_norm(f({4}), none, none, {.groups = 2}); }, {"[4]", "expected"}, __LINE__},
    {"group_norm", option, [] { group_norm(f({2, 4}), none, none, {.groups = 3}); }, {"3", "[2, 4]", "divide"}, __LINE__},
    {"group_norm", option, [] { group_norm(f({2, 4}), none, none, {.groups = 0}); }, {"0", "[2, 4]", "expected"}, __LINE__},
    {"group_norm", device, [] { group_norm(on0(f({2, 4})), none, on1(f({4})), {.groups = 2}); }, kTwoDevices, __LINE__},
    {"batch_norm", dtype, [] { batch_norm(i({2, 3}), none, none); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"batch_norm", dtype, [] { batch_norm(f({2, 3}), none, d({3})); }, {"f64[3]", "f32", "expected"}, __LINE__},
    {"batch_norm", shape, [] { batch_norm(f({2, 3}), f({2}), none); }, {"[2]", "[3]", "expected"}, __LINE__},
    {"batch_norm", shape, [] { batch_norm(f({}), none, none); }, {"[]", "expected"}, __LINE__},
    {"batch_norm", option, [] { batch_norm(f({2, 3}), none, none, {.epsilon = -1}); }, {"-1", "expected"}, __LINE__},
    {"batch_norm", device, [] { batch_norm(on0(f({2, 3})), on1(f({3})), none); }, kTwoDevices, __LINE__},
    {"batch_norm_inference", dtype, [] { batch_norm_inference(i({2, 3}), i({3}), i({3}), none, none); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"batch_norm_inference", dtype, [] { batch_norm_inference(f({2, 3}), d({3}), f({3}), none, none); }, {"f64[3]", "f32", "expected"}, __LINE__},
    {"batch_norm_inference", shape, [] { batch_norm_inference(f({2, 3}), f({3}), f({2}), none, none); }, {"[2]", "[3]", "expected"}, __LINE__},
    {"batch_norm_inference", option, [] { batch_norm_inference(f({2, 3}), f({3}), f({3}), none, none, {.epsilon = -1}); }, {"-1", "expected"}, __LINE__},
    {"batch_norm_inference", device, [] { batch_norm_inference(on0(f({2, 3})), on1(f({3})), on0(f({3})), none, none); }, kTwoDevices, __LINE__},
};

const Misuse kIndexing[] = {
    {"gather", dtype, [] { gather(f({4}), f({2})); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"gather", shape, [] { gather(f({}), i({2})); }, {"scalar", "expected"}, __LINE__},
    {"gather", option, [] { gather(f({2, 3}), i({2}), 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"gather", option, [] { gather(f({4}), Tensor({2}, {0, 4})); }, {"index 4", "place 1", "4 rows"}, __LINE__},
    {"gather", device, [] { gather(on0(f({4})), on1(i({2}))); }, kTwoDevices, __LINE__},
    {"gather_nd", dtype, [] { gather_nd(f({4}), f({2, 1})); }, {"f32[2, 1]", "i32 or i64"}, __LINE__},
    {"gather_nd", shape, [] { gather_nd(f({4}), i({5, 2})); }, {"[4]", "[5, 2]", "expected"}, __LINE__},
    {"gather_nd", option, [] { gather_nd(f({4}), Tensor({1, 1}, {-1})); }, {"index -1", "place 0", "axis 0"}, __LINE__},
    {"gather_nd", device, [] { gather_nd(on0(f({4})), on1(i({2, 1}))); }, kTwoDevices, __LINE__},
    {"take_along_axis", dtype, [] { take_along_axis(f({4}), f({2})); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"take_along_axis", shape, [] { take_along_axis(f({2, 3}), i({3, 1})); }, {"[2, 3]", "[3, 1]", "expected"}, __LINE__},
    {"take_along_axis", option, [] { take_along_axis(f({2, 3}), i({2, 1}), 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"take_along_axis", option, [] { take_along_axis(f({4}), Tensor({1}, {4})); }, {"index 4", "place 0", "4"}, __LINE__},
    {"take_along_axis", device, [] { take_along_axis(on0(f({4})), on1(i({2}))); }, kTwoDevices, __LINE__},
    {"embedding_lookup", dtype, [] { embedding_lookup(f({4, 2}), f({2})); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"embedding_lookup", shape, [] { embedding_lookup(f({}), i({2})); }, {"scalar", "expected"}, __LINE__},
    {"embedding_lookup", option, [] { embedding_lookup(f({4, 2}), Tensor({1}, {4})); }, {"index 4", "place 0", "4 rows"}, __LINE__},
    {"embedding_lookup", device, [] { embedding_lookup(on0(f({4, 2})), on1(i({2}))); }, kTwoDevices, __LINE__},
    {"one_hot", dtype, [] { one_hot(f({2}), 3); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"one_hot", option, [] { one_hot(i({2}), -1); }, {"-1", "expected"}, __LINE__},
    {"where", dtype, [] { where(f({2})); }, {"f32[2]", "bool"}, __LINE__},
    {"scatter_add", dtype, [] { scatter_add(f({2}), f({2}), 3); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"scatter_add", dtype, [] { scatter_add(i({2}), b({2}), 3); }, {"bool[2]", "floating dtype, i32 or i64"}, __LINE__},
    {"scatter_add", shape, [] { scatter_add(i({2}), f({3, 4}), 3); }, {"[2]", "[3, 4]", "expected"}, __LINE__},
    {"scatter_add", option, [] { scatter_add(i({2}), f({2}), -1); }, {"-1", "expected 0 or more"}, __LINE__},
    {"scatter_add", option, [] { scatter_add(i({2}), f({2}), 3, 1); }, {"axis 1", "[2]", "expected"}, __LINE__},
    {"scatter_add", option, [] { scatter_add(Tensor({2}, {0, 3}), f({2}), 3); }, {"index 3", "place 1", "3 rows"}, __LINE__},
    {"scatter_add", device, [] { scatter_add(on0(i({2})), on1(f({2})), 3); }, kTwoDevices, __LINE__},
    {"scatter_nd", dtype, [] { scatter_nd(f({2, 1}), f({2}), {4}); }, {"f32[2, 1]", "i32 or i64"}, __LINE__},
    {"scatter_nd", dtype, [] { scatter_nd(i({2, 1}), b({2}), {4}); }, {"bool[2]", "floating dtype, i32 or i64"}, __LINE__},
    {"scatter_nd", shape, [] { scatter_nd(i({2, 1}), f({3}), {4}); }, {"[3]", "[2]", "[4]", "expected"}, __LINE__},
    {"scatter_nd", option, [] { scatter_nd(i({2, 2}), f({2}), {4}); }, {"[2, 2]", "[4]", "expected"}, __LINE__},
    {"scatter_nd", option, [] { scatter_nd(Tensor({1, 1}, {4}), f({1}), {4}); }, {"index 4", "place 0", "axis 0"}, __LINE__},
    {"scatter_nd", device, [] { scatter_nd(on0(i({2, 1})), on1(f({2})), {4}); }, kTwoDevices, __LINE__},
    {"tensor_scatter_add", dtype, [] { tensor_scatter_add(f({4}), f({2, 1}), f({2})); }, {"f32[2, 1]", "i32 or i64"}, __LINE__},
    {"tensor_scatter_add", dtype, [] { tensor_scatter_add(f({4}), i({2, 1}), d({2})); }, {"f32[4]", "f64[2]", "one dtype"}, __LINE__},
    {"tensor_scatter_add", shape, [] { tensor_scatter_add(f({4}), i({2, 1}), f({3})); }, {"[3]", "[2]", "[4]", "expected"}, __LINE__},
    {"tensor_scatter_add", device, [] { tensor_scatter_add(on0(f({4})), i({2, 1}), on1(f({2}))); }, kTwoDevices, __LINE__},
    {"to_dense", dtype, [] { to_dense({f({2, 3}), f({2}), {4, 3}}); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"to_dense", shape, [] { to_dense({f({2, 3}), i({3}), {4, 3}}); }, {"[2, 3]", "[3, 3]", "expected"}, __LINE__},
    {"to_dense", shape, [] { to_dense({f({2}), i({2}), {}}); }, {"[2]", "[]", "expected"}, __LINE__},
    {"to_dense", option, [] { to_dense({f({1, 3}), Tensor({1}, {4}), {4, 3}}); }, {"index 4", "place 0", "4 rows"}, __LINE__},
    {"to_dense", device, [] { to_dense({on0(f({2, 3})), on1(i({2})), {4, 3}}); }, kTwoDevices, __LINE__},
    {"coalesce", dtype, [] { coalesce({f({2, 3}), f({2}), {4, 3}}); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"coalesce", shape, [] { coalesce({f({2, 3}), i({3}), {4, 3}}); }, {"[2, 3]", "[3, 3]", "expected"}, __LINE__},
    {"coalesce", option, [] { coalesce({f({1, 3}), Tensor({1}, {4}), {4, 3}}); }, {"index 4", "place 0", "4 rows"}, __LINE__},
    {"unsorted_segment_sum", dtype, [] { unsorted_segment_sum(f({2}), f({2}), 3); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"unsorted_segment_sum", dtype, [] { unsorted_segment_sum(b({2}), i({2}), 3); }, {"bool[2]", "floating dtype, i32 or i64"}, __LINE__},
    {"unsorted_segment_sum", shape, [] { unsorted_segment_sum(f({2, 3}), i({3}), 3); }, {"[2, 3]", "[3]", "expected"}, __LINE__},
    {"unsorted_segment_sum", option, [] { unsorted_segment_sum(f({2}), i({2}), -1); }, {"-1", "expected 0 or more"}, __LINE__},
    {"unsorted_segment_sum", option, [] { unsorted_segment_sum(f({1}), Tensor({1}, {3}), 3); }, {"index 3", "place 0", "3"}, __LINE__},
    {"unsorted_segment_sum", device, [] { unsorted_segment_sum(on0(f({2})), on1(i({2})), 3); }, kTwoDevices, __LINE__},
    {"segment_sum", dtype, [] { segment_sum(f({2}), f({2})); }, {"f32[2]", "i32 or i64"}, __LINE__},
    {"segment_sum", dtype, [] { segment_sum(b({2}), i({2})); }, {"bool[2]", "floating dtype, i32 or i64"}, __LINE__},
    {"segment_sum", shape, [] { segment_sum(f({2, 3}), i({3})); }, {"[2, 3]", "[3]", "expected"}, __LINE__},
    {"segment_sum", option, [] { segment_sum(f({2}), Tensor({2}, {1, 0})); }, {"0 at place 1", "after 1", "do not decrease"}, __LINE__},
    {"segment_sum", device, [] { segment_sum(on0(f({2})), on1(i({2}))); }, kTwoDevices, __LINE__},
};

const Misuse kShapeOps[] = {
    {"reshape", option, [] { reshape(f({2, 3}), Shape{4}); }, {"[2, 3]", "[4]", "6"}, __LINE__},
    {"reshape", option, [] { reshape(f({2, 3}), {4, -1}); }, {"[2, 3]", "[4, -1]", "6"}, __LINE__},
    {"reshape", option, [] { reshape(f({2, 3}), {-1, -1}); }, {"[-1, -1]", "expected at most one"}, __LINE__},
    {"reshape", option, [] { reshape(f({2, 3}), {-2, 3}); }, {"[-2, 3]", "expected extents of 0 or more"}, __LINE__},
    {"expand_dims", option, [] { expand_dims(f({2, 3}), 3); }, {"axis 3", "[2, 3]", "-3 to 2"}, __LINE__},
    {"squeeze", option, [] { squeeze(f({2, 3}), {2}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"squeeze", option, [] { squeeze(f({2, 3}), {1}); }, {"axis 1", "[2, 3]", "expected 1"}, __LINE__},
    {"flatten_from", option, [] { flatten_from(f({2, 3}), 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"transpose", option, [] { transpose(f({2, 3}), {0}); }, {"got 1", "[2, 3]", "expected a permutation of 2"}, __LINE__},
    {"transpose", option, [] { transpose(f({2, 3}), {0, 0}); }, {"axis 0 of shape [2, 3] twice"}, __LINE__},
    {"transpose", option, [] { transpose(f({2, 3}), {0, 2}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"broadcast_to", option, [] { broadcast_to(f({2}), {2, 3}); }, {"[2]", "[2, 3]", "broadcast"}, __LINE__},
    {"concat", dtype, [] { concat({f({2}), d({2})}, 0); }, {"f32[2]", "f64[2]", "one dtype"}, __LINE__},
    {"concat", shape, [] { concat({f({2, 3}), f({2, 4})}, 0); }, {"[2, 3]", "[2, 4]", "axis 0"}, __LINE__},
    {"concat", option, [] { concat({f({2, 3}), f({2, 3})}, 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"concat", option, [] { concat({}, 0); }, {"got none", "expected at least one"}, __LINE__},
    {"concat", device, [] { concat({on0(f({2})), on1(f({2}))}, 0); }, kTwoDevices, __LINE__},
    {"stack", dtype, [] { stack({f({2}), d({2})}); }, {"f32[2]", "f64[2]", "one dtype"}, __LINE__},
    {"stack", shape, [] { stack({f({2, 3}), f({2, 4})}); }, {"[2, 3]", "[2, 4]", "one shape"}, __LINE__},
    {"stack", option, [] { stack({f({2}), f({2})}, 2); }, {"axis 2", "[2]", "-2 to 1"}, __LINE__},
    {"stack", option, [] { stack({}); }, {"got none", "expected at least one"}, __LINE__},
    {"stack", device, [] { stack({on0(f({2})), on1(f({2}))}); }, kTwoDevices, __LINE__},
    {"unstack", option, [] { unstack(f({2, 3}), 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"split", option, [] { split(f({2, 3}), {1, 1}, 1); }, {"add up to 2", "[2, 3]", "3"}, __LINE__},
    {"split", option, [] { split(f({2, 3}), {4, -1}, 1); }, {"-1", "[2, 3]", "expected extents of 0 or more"}, __LINE__},
    {"split", option, [] { split(f({2, 3}), 2, 1); }, {"[2, 3]", "2 equal parts"}, __LINE__},
    {"split", option, [] { split(f({2, 3}), 1, 2); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"slice", option, [] { slice(f({2, 3}), {0}, {1}); }, {"[2, 3]", "expected"}, __LINE__},
    {"slice", option, [] { slice(f({2, 3}), {0, 2}, {2, 2}); }, {"begin 2 and extent 2", "outside axis 1 of shape [2, 3]"}, __LINE__},
    {"strided_slice", option, [] { strided_slice(f({2}), {{}, {}}); }, {"[2]", "got 2", "expected at most 1"}, __LINE__},
    {"strided_slice", option, [] { strided_slice(f({2}), {{.stride = 0}}); }, {"[2]", "is 0", "expected"}, __LINE__},
    {"strided_slice_gradient", shape, [] { strided_slice_gradient(f({2}), {6}, {{.stride = 2}}); }, {"[2]", "[3]", "expected"}, __LINE__},
    {"strided_slice_gradient", option, [] { strided_slice_gradient(f({2}), {2}, {{.stride = 0}}); }, {"[2]", "is 0", "expected"}, __LINE__},
    {"reverse", option, [] { reverse(f({2, 3}), {2}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"reverse", option, [] { reverse(f({2, 3}), {0, -2}); }, {"axis", "[2, 3]", "twice"}, __LINE__},
    {"roll", option, [] { roll(f({2, 3}), {1}, {2}); }, {"axis 2", "[2, 3]", "-2 to 1"}, __LINE__},
    {"roll", option, [] { roll(f({2, 3}), {1, 2}, {0}); }, {"2 shifts and 1 axes", "expected a shift for each axis"}, __LINE__},
    {"tile", option, [] { tile(f({2, 3}), {2}); }, {"[2, 3]", "expected"}, __LINE__},
    {"tile", option, [] { tile(f({2, 3}), {2, -1}); }, {"-1", "[2, 3]", "expected"}, __LINE__},
    {"pad", option, [] { pad(f({2, 3}), {1}, {1}); }, {"[2, 3]", "expected"}, __LINE__},
    {"pad", option, [] { pad(f({2, 3}), {0, -1}, {0, 0}); }, {"-1", "[2, 3]", "expected"}, __LINE__},
    {"pad", option, [] { pad(f({2, 3}), {0, 3}, {0, 0}, {.mode = PadMode::reflect}); }, {"3", "[2, 3]", "expected"}, __LINE__},
    {"pad", option, [] { pad(i({2}), {1}, {0}, {.value = 0.5}); }, {"0.5", "i64"}, __LINE__},
};

const Misuse kConvolutions[] = {
    {"conv1d", dtype, [] { conv1d(f({1, 4, 2}), d({2, 2, 2}), none); }, {"f32[1, 4, 2]", "f64[2, 2, 2]", "one dtype"}, __LINE__},
    {"conv1d", dtype, [] { conv1d(i({1, 4, 2}), i({2, 2, 2}), none); }, {"i64[1, 4, 2]", "floating"}, __LINE__},
    {"conv1d", shape, [] { conv1d(f({1, 4, 2}), f({2, 3, 2}), none); }, {"[1, 4, 2]", "[2, 3, 2]", "expected"}, __LINE__},
    {"conv1d", shape, [] { conv1d(f({4, 2}), f({2, 2, 2}), none); }, {"[4, 2]", "[2, 2, 2]", "expected"}, __LINE__},
    {"conv1d", option, [] { conv1d(f({1, 4, 2}), f({2, 2, 2}), none, {.strides = 0}); }, {"got 2, 0 and 1", "expected windows"}, __LINE__},
    {"conv1d", device, [] { conv1d(on0(f({1, 4, 2})), on1(f({2, 2, 2})), none); }, kTwoDevices, __LINE__},
    {"conv2d", dtype, [] { conv2d(f({1, 4, 4, 2}), d({2, 2, 2, 2}), none); }, {"f32[1, 4, 4, 2]", "f64[2, 2, 2, 2]", "one dtype"}, __LINE__},
    {"conv2d", dtype, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 2, 2}), d({2})); }, {"f64[2]", "f32[2, 2, 2, 2]", "one dtype"}, __LINE__},
    {"conv2d", dtype, [] { conv2d(i({1, 4, 4, 2}), i({2, 2, 2, 2}), none); }, {"i64[1, 4, 4, 2]", "floating"}, __LINE__},
    {"conv2d", shape, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 3, 2}), none); }, {"[1, 4, 4, 2]", "[2, 2, 3, 2]", "expected"}, __LINE__},
    {"conv2d", shape, [] { conv2d(f({1, 4, 2}), f({2, 2, 2}), none); }, {"[1, 4, 2]", "[2, 2, 2]", "expected"}, __LINE__},
    {"conv2d", shape, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 2, 3}), f({2})); }, {"[2]", "[3]", "expected a bias"}, __LINE__},
    {"conv2d", shape, [] { conv2d(f({1, 4, 4, 2}), f({5, 2, 2, 2}), none); }, {"covers 5x2", "fit into", "[1, 4, 4, 2]"}, __LINE__},
    {"conv2d", option, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 2, 2}), none, {.strides = {0, 1}}); }, {"0", "expected windows"}, __LINE__},
    {"conv2d", option, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 2, 2}), none, {.dilations = -1}); }, {"-1", "expected"}, __LINE__},
    {"conv2d", option, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 1, 3}), none, {.groups = 2}); }, {"got 2", "[2, 2, 1, 3]", "expected groups"}, __LINE__},
    {"conv2d", option, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 2, 2}), none, {.padding = {0, -1, 0, 0}}); }, {"-1", "expected"}, __LINE__},
    {"conv2d", option, [] { conv2d(f({1, 4, 4, 2}), f({2, 2, 2, 2}), none, {.padding = {1, 1}}); }, {"[1, 4, 4, 2]", "expected"}, __LINE__},
    {"conv2d", device, [] { conv2d(on0(f({1, 4, 4, 2})), on0(f({2, 2, 2, 2})), on1(f({2}))); }, kTwoDevices, __LINE__},
    {"conv3d", dtype, [] { conv3d(f({1, 2, 2, 2, 1}), d({1, 1, 1, 1, 1}), none); }, {"f32[1, 2, 2, 2, 1]", "f64[1, 1, 1, 1, 1]", "one dtype"}, __LINE__},
    {"conv3d", shape, [] { conv3d(f({1, 2, 2, 2, 1}), f({1, 1, 1, 2, 1}), none); }, {"[1, 2, 2, 2, 1]", "[1, 1, 1, 2, 1]", "expected"}, __LINE__},
    {"conv3d", option, [] { conv3d(f({1, 2, 2, 2, 1}), f({1, 1, 1, 1, 1}), none, {.groups = 0}); }, {"0", "expected groups"}, __LINE__},
    {"conv3d", device, [] { conv3d(on0(f({1, 2, 2, 2, 1})), on1(f({1, 1, 1, 1, 1})), none); }, kTwoDevices, __LINE__},
    {"depthwise_conv2d", dtype, [] { depthwise_conv2d(f({1, 4, 4, 2}), d({2, 2, 2, 1}), none); }, {"f32[1, 4, 4, 2]", "f64[2, 2, 2, 1]", "one dtype"}, __LINE__},
    {"depthwise_conv2d", shape, [] { depthwise_conv2d(f({1, 4, 4, 2}), f({2, 2, 3, 1}), none); }, {"[1, 4, 4, 2]", "[2, 2, 3, 1]", "expected"}, __LINE__},
    {"depthwise_conv2d", option, [] { depthwise_conv2d(f({1, 4, 4, 2}), f({2, 2, 2, 1}), none, {.strides = 0}); }, {"0", "expected windows"}, __LINE__},
    {"depthwise_conv2d", device, [] { depthwise_conv2d(on0(f({1, 4, 4, 2})), on1(f({2, 2, 2, 1})), none); }, kTwoDevices, __LINE__},
    {"conv1d_input_gradient", dtype, [] { conv1d_input_gradient(f({1, 3, 2}), d({2, 2, 2}), {1, 4, 2}); }, {"f32[1, 3, 2]", "f64[2, 2, 2]", "one dtype"}, __LINE__},
    {"conv1d_input_gradient", shape, [] { conv1d_input_gradient(f({1, 4, 2}), f({2, 2, 2}), {1, 4, 2}); }, {"[1, 4, 2]", "[1, 3, 2]", "expected dy"}, __LINE__},
    {"conv1d_input_gradient", option, [] { conv1d_input_gradient(f({1, 3, 2}), f({2, 2, 2}), {4, 2}); }, {"[4, 2]", "[2, 2, 2]", "expected"}, __LINE__},
    {"conv1d_input_gradient", device, [] { conv1d_input_gradient(on0(f({1, 3, 2})), on1(f({2, 2, 2})), {1, 4, 2}); }, kTwoDevices, __LINE__},
    {"conv2d_input_gradient", dtype, [] { conv2d_input_gradient(i({1, 3, 3, 2}), i({2, 2, 2, 2}), {1, 4, 4, 2}); }, {"i64[1, 3, 3, 2]", "floating"}, __LINE__},
    {"conv2d_input_gradient", shape, [] { conv2d_input_gradient(f({1, 4, 3, 2}), f({2, 2, 2, 2}), {1, 4, 4, 2}); }, {"[1, 4, 3, 2]", "[1, 3, 3, 2]", "expected dy"}, __LINE__},
    {"conv2d_input_gradient", option, [] { conv2d_input_gradient(f({1, 3, 3, 2}), f({2, 2, 2, 2}), {1, 4, 4, 2}, {.strides = 0}); }, {"0", "expected windows"}, __LINE__},
    {"conv2d_input_gradient", device, [] { conv2d_input_gradient(on0(f({1, 3, 3, 2})), on1(f({2, 2, 2, 2})), {1, 4, 4, 2}); }, kTwoDevices, __LINE__},
    {"conv3d_input_gradient", dtype, [] { conv3d_input_gradient(f({1, 2, 2, 2, 1}), d({1, 1, 1, 1, 1}), {1, 2, 2, 2, 1}); }, {"f32[1, 2, 2, 2, 1]", "f64[1, 1, 1, 1, 1]", "one dtype"}, __LINE__},
    {"conv3d_input_gradient", shape, [] { conv3d_input_gradient(f({1, 3, 2, 2, 1}), f({1, 1, 1, 1, 1}), {1, 2, 2, 2, 1}); }, {"[1, 3, 2, 2, 1]", "[1, 2, 2, 2, 1]", "expected dy"}, __LINE__},
    {"conv3d_input_gradient", option, [] { conv3d_input_gradient(f({1, 2, 2, 2, 1}), f({1, 1, 1, 1, 1}), {1, 2, 2, 2, 1}, {.groups = 0}); }, {"0", "expected groups"}, __LINE__},
    {"conv3d_input_gradient", device, [] { conv3d_input_gradient(on0(f({1, 2, 2, 2, 1})), on1(f({1, 1, 1, 1, 1})), {1, 2, 2, 2, 1}); }, kTwoDevices, __LINE__},
    {"conv1d_weight_gradient", dtype, [] { conv1d_weight_gradient(f({1, 3, 2}), d({1, 4, 2}), {2, 2, 2}); }, {"f32[1, 3, 2]", "f64[1, 4, 2]", "one dtype"}, __LINE__},
    {"conv1d_weight_gradient", shape, [] { conv1d_weight_gradient(f({1, 4, 2}), f({1, 4, 2}), {2, 2, 2}); }, {"[1, 4, 2]", "[1, 3, 2]", "expected dy"}, __LINE__},
    {"conv1d_weight_gradient", option, [] { conv1d_weight_gradient(f({1, 3, 2}), f({1, 4, 2}), {2, 2}); }, {"[1, 4, 2]", "[2, 2]", "expected"}, __LINE__},
    {"conv1d_weight_gradient", device, [] { conv1d_weight_gradient(on0(f({1, 3, 2})), on1(f({1, 4, 2})), {2, 2, 2}); }, kTwoDevices, __LINE__},
    {"conv2d_weight_gradient", dtype, [] { conv2d_weight_gradient(i({1, 3, 3, 2}), i({1, 4, 4, 2}), {2, 2, 2, 2}); }, {"i64[1, 3, 3, 2]", "floating"}, __LINE__},
    {"conv2d_weight_gradient", shape, [] { conv2d_weight_gradient(f({1, 4, 3, 2}), f({1, 4, 4, 2}), {2, 2, 2, 2}); }, {"[1, 4, 3, 2]", "[1, 3, 3, 2]", "expected dy"}, __LINE__},
    {"conv2d_weight_gradient", option, [] { conv2d_weight_gradient(f({1, 3, 3, 2}), f({1, 4, 4, 2}), {2, 2, 2, 2}, {.dilations = 0}); }, {"0", "expected windows"}, __LINE__},
    {"conv2d_weight_gradient", device, [] { conv2d_weight_gradient(on0(f({1, 3, 3, 2})), on1(f({1, 4, 4, 2})), {2, 2, 2, 2}); }, kTwoDevices, __LINE__},
    {"conv3d_weight_gradient", dtype, [] { conv3d_weight_gradient(f({1, 2, 2, 2, 1}), d({1, 2, 2, 2, 1}), {1, 1, 1, 1, 1}); }, {"f32[1, 2, 2, 2, 1]", "f64[1, 2, 2, 2, 1]", "one dtype"}, __LINE__},
    {"conv3d_weight_gradient", shape, [] { conv3d_weight_gradient(f({1, 3, 2, 2, 1}), f({1, 2, 2, 2, 1}), {1, 1, 1, 1, 1}); }, {"[1, 3, 2, 2, 1]", "[1, 2, 2, 2, 1]", "expected dy"}, __LINE__},
    {"conv3d_weight_gradient", option, [] { conv3d_weight_gradient(f({1, 2, 2, 2, 1}), f({1, 2, 2, 2, 1}), {3, 1, 1, 1, 1}); }, {"covers 3x1x1", "fit into", "[1, 2, 2, 2, 1]"}, __LINE__},
    {"conv3d_weight_gradient", device, [] { conv3d_weight_gradient(on0(f({1, 2, 2, 2, 1})), on1(f({1, 2, 2, 2, 1})), {1, 1, 1, 1, 1}); }, kTwoDevices, __LINE__},
    {"conv1d_transpose", dtype, [] { conv1d_transpose(f({1, 4, 2}), d({2, 2, 2}), none); }, {"f32[1, 4, 2]", "f64[2, 2, 2]", "one dtype"}, __LINE__},
    {"conv1d_transpose", shape, [] { conv1d_transpose(f({1, 4, 2}), f({2, 2, 3}), none); }, {"[1, 4, 2]", "[2, 2, 3]", "expected"}, __LINE__},
    {"conv1d_transpose", option, [] { conv1d_transpose(f({1, 4, 2}), f({2, 2, 2}), none, {.output_size = 9}); }, {"images of 9", "[1, 4, 2]", "choose another output size"}, __LINE__},
    {"conv1d_transpose", device, [] { conv1d_transpose(on0(f({1, 4, 2})), on1(f({2, 2, 2})), none); }, kTwoDevices, __LINE__},
    {"conv2d_transpose", dtype, [] { conv2d_transpose(f({1, 4, 4, 2}), d({2, 2, 2, 2}), none); }, {"f32[1, 4, 4, 2]", "f64[2, 2, 2, 2]", "one dtype"}, __LINE__},
    {"conv2d_transpose", shape, [] { conv2d_transpose(f({1, 4, 4, 2}), f({2, 2, 2, 2}), f({3})); }, {"[3]", "[2]", "expected a bias"}, __LINE__},
    {"conv2d_transpose", option, [] { conv2d_transpose(f({1, 4, 4, 2}), f({2, 2, 2, 2}), none, {.strides = 0}); }, {"0", "expected windows"}, __LINE__},
    {"conv2d_transpose", device, [] { conv2d_transpose(on0(f({1, 4, 4, 2})), on1(f({2, 2, 2, 2})), none); }, kTwoDevices, __LINE__},
    {"conv3d_transpose", dtype, [] { conv3d_transpose(f({1, 2, 2, 2, 1}), d({1, 1, 1, 1, 1}), none); }, {"f32[1, 2, 2, 2, 1]", "f64[1, 1, 1, 1, 1]", "one dtype"}, __LINE__},
    {"conv3d_transpose", shape, [] { conv3d_transpose(f({1, 2, 2, 2, 1}), f({1, 1, 1, 1, 2}), none); }, {"[1, 2, 2, 2, 1]", "[1, 1, 1, 1, 2]", "expected"}, __LINE__},
    {"conv3d_transpose", option, [] { conv3d_transpose(f({1, 2, 2, 2, 1}), f({1, 1, 1, 1, 1}), none, {.dilations = 0}); }, {"0", "expected windows"}, __LINE__},
    {"conv3d_transpose", device, [] { conv3d_transpose(on0(f({1, 2, 2, 2, 1})), on1(f({1, 1, 1, 1, 1})), none); }, kTwoDevices, __LINE__},
};

const Misuse kPools[] = {
    {"max_pool1d", dtype, [] { max_pool1d(i({1, 4, 2})); }, {"i64[1, 4, 2]", "floating"}, __LINE__},
    {"max_pool1d", shape, [] { max_pool1d(f({1, 4, 4, 2})); }, {"[1, 4, 4, 2]", "expected"}, __LINE__},
    {"max_pool1d", option, [] { max_pool1d(f({1, 4, 2}), {.window = 5}); }, {"covers 5", "fit into", "[1, 4, 2]"}, __LINE__},
    {"avg_pool1d", dtype, [] { avg_pool1d(i({1, 4, 2})); }, {"i64[1, 4, 2]", "floating"}, __LINE__},
    {"avg_pool1d", shape, [] { avg_pool1d(f({4, 2})); }, {"[4, 2]", "expected"}, __LINE__},
    {"avg_pool1d", option, [] { avg_pool1d(f({1, 4, 2}), {.strides = 0}); }, {"0", "expected windows"}, __LINE__},
    {"max_pool2d", dtype, [] { max_pool2d(i({1, 4, 4, 2})); }, {"i64[1, 4, 4, 2]", "floating"}, __LINE__},
    {"max_pool2d", shape, [] { max_pool2d(f({1, 4, 2})); }, {"[1, 4, 2]", "expected"}, __LINE__},
    {"max_pool2d", option, [] { max_pool2d(f({1, 4, 4, 2}), {.window = 0}); }, {"0", "expected windows"}, __LINE__},
    {"max_pool2d", option, [] { max_pool2d(f({1, 4, 4, 2}), {.padding = {2, 0, 0, 0}}); }, {"2", "[1, 4, 4, 2]", "expected"}, __LINE__},
    {"avg_pool2d", dtype, [] { avg_pool2d(i({1, 4, 4, 2})); }, {"i64[1, 4, 4, 2]", "floating"}, __LINE__},
    {"avg_pool2d", shape, [] { avg_pool2d(f({1, 4, 2})); }, {"[1, 4, 2]", "expected"}, __LINE__},
    {"avg_pool2d", option, [] { avg_pool2d(f({1, 4, 4, 2}), {.padding = {0, 0, -1, 0}}); }, {"-1", "expected"}, __LINE__},
    {"max_pool3d", dtype, [] { max_pool3d(i({1, 2, 2, 2, 1})); }, {"i64[1, 2, 2, 2, 1]", "floating"}, __LINE__},
    {"max_pool3d", shape, [] { max_pool3d(f({1, 4, 4, 2})); }, {"[1, 4, 4, 2]", "expected"}, __LINE__},
    {"max_pool3d", option, [] { max_pool3d(f({1, 2, 2, 2, 1}), {.window = {1, 0, 1}}); }, {"0", "expected windows"}, __LINE__},
    {"avg_pool3d", dtype, [] { avg_pool3d(i({1, 2, 2, 2, 1})); }, {"i64[1, 2, 2, 2, 1]", "floating"}, __LINE__},
    {"avg_pool3d", shape, [] { avg_pool3d(f({1, 4, 4, 2})); }, {"[1, 4, 4, 2]", "expected"}, __LINE__},
    {"avg_pool3d", option, [] { avg_pool3d(f({1, 2, 2, 2, 1}), {.window = 3}); }, {"covers 3x3x3", "fit into", "[1, 2, 2, 2, 1]"}, __LINE__},
    {"global_max_pool", dtype, [] { global_max_pool(i({1, 4, 2})); }, {"i64[1, 4, 2]", "floating"}, __LINE__},
    {"global_max_pool", shape, [] { global_max_pool(f({4, 2})); }, {"[4, 2]", "expected"}, __LINE__},
    {"global_avg_pool", dtype, [] { global_avg_pool(i({1, 4, 2})); }, {"i64[1, 4, 2]", "floating"}, __LINE__},
    {"global_avg_pool", shape, [] { global_avg_pool(f({1, 0, 2})); }, {"[1, 0, 2]", "expected"}, __LINE__},
};

const Misuse kRandom[] = {
    {"uniform", dtype, [] { uniform({2}, 0, 1, DType::i32); }, {"i32", "floating"}, __LINE__},
    {"uniform", option, [] { uniform({2}, 1, 0); }, {"1 and 0", "expected"}, __LINE__},
    {"uniform", option, [] { uniform({2}, 0, 1e300); }, {"1e+300", "f32", "expected"}, __LINE__},
    {"normal", dtype, [] { normal({2}, 0, 1, DType::boolean); }, {"bool", "floating"}, __LINE__},
    {"normal", option, [] { normal({2}, 0, -1); }, {"-1", "expected"}, __LINE__},
    {"truncated_normal", dtype, [] { truncated_normal({2}, 0, 1, DType::i64); }, {"i64", "floating"}, __LINE__},
    {"truncated_normal", option, [] { truncated_normal({2}, 0, -1); }, {"-1", "expected"}, __LINE__},
    {"bernoulli", dtype, [] { bernoulli({2}, 0.5, DType::i32); }, {"i32", "bool"}, __LINE__},
    {"bernoulli", option, [] { bernoulli({2}, 1.5); }, {"1.5", "expected"}, __LINE__},
    {"uniform_int", dtype, [] { uniform_int({2}, 0, 3, DType::f32); }, {"f32", "integer"}, __LINE__},
    {"uniform_int", option, [] { uniform_int({2}, 3, 3); }, {"3 and 3", "expected low < high"}, __LINE__},
    {"uniform_int", option, [] { uniform_int({2}, 0, 300, DType::u8); }, {"300", "u8", "expected"}, __LINE__},
    {"categorical", dtype, [] { categorical(i({2, 3}), 1); }, {"i64[2, 3]", "floating"}, __LINE__},
    {"categorical", dtype, [] { categorical(f({2, 3}), 1, DType::f32); }, {"f32", "i32 or i64"}, __LINE__},
    {"categorical", shape, [] { categorical(f({3}), 1); }, {"[3]", "expected"}, __LINE__},
    {"categorical", option, [] { categorical(f({2, 3}), -1); }, {"-1", "expected"}, __LINE__},
    {"permutation", option, [] { permutation(-1); }, {"-1", "expected"}, __LINE__},
    {"shuffle", shape, [] { shuffle(f({})); }, {"scalar", "expected"}, __LINE__},
};

const Misuse kUpdates[] = {
    {"apply_update", dtype, [] { update({f({2})}, d({2}), step()); }, {"must be f32[2]", "got f64[2]"}, __LINE__},
    {"apply_update", dtype, [] { update({i({2})}, i({2}), step()); }, {"i64", "floating"}, __LINE__},
    {"apply_update", shape, [] { update({f({2})}, f({3}), step()); }, {"must be f32[2]", "got f32[3]"}, __LINE__},
    {"apply_update", option, [] { update({f({2}), f({2})}, f({2}), step()); }, {"got 2", "expected the weights and 0 slots"}, __LINE__},
    {"apply_update", option, [] { update({f({2})}, f({2}), step(f({2}))); }, {"[2]", "scalar"}, __LINE__},
    {"apply_update", device, [] { update({on0(f({2}))}, on1(f({2})), step()); }, kTwoDevices, __LINE__},
    {"is_finite_all", dtype, [] { is_finite_all(std::vector{b({2})}); }, {"bool[2]", "floating"}, __LINE__},
    {"is_finite_all", device, [] { is_finite_all(std::vector{on0(f({2})), on1(f({2}))}); }, kTwoDevices, __LINE__},
    {"global_norm", dtype, [] { global_norm(std::vector{i({2})}); }, {"i64[2]", "floating"}, __LINE__},
    {"global_norm", device, [] { global_norm(std::vector{on0(f({2})), on1(f({2}))}); }, kTwoDevices, __LINE__},
};
// clang-format on

struct Comparison {
  const char* name;
  Tensor (*op)(const Operand&, const Operand&);
};
const Comparison kComparisonsOfNumbers[] = {{"equal", equal},     {"not_equal", not_equal},
                                            {"less", less},       {"less_equal", less_equal},
                                            {"greater", greater}, {"greater_equal", greater_equal}};

std::vector<Misuse> misuses() {
  std::vector<Misuse> all;
  const auto append = [&](const auto& rows) {
    all.insert(all.end(), std::begin(rows), std::end(rows));
  };
  append(kLogic);
  append(kReductions);
  append(kLosses);
  append(kProducts);
  append(kNorms);
  append(kIndexing);
  append(kShapeOps);
  append(kConvolutions);
  append(kPools);
  append(kRandom);
  append(kUpdates);
  return all;
}

void expect_error(const std::optional<InvalidArgument>& error, const std::string& op,
                  const std::vector<std::string>& words, int line) {
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message(), StartsWith("[" + op + "] "));
  for (const std::string& word : words) EXPECT_THAT(error->message(), HasSubstr(word));
  EXPECT_THAT(error->location().file, EndsWith("misuse_test.cc"));
  EXPECT_EQ(error->location().line, line);
}

class Misuses : public ::testing::Test {
 protected:
  const fake::Devices devices{{.devices = 2}};
};

TEST_F(Misuses, NameTheOpWhatWasGotWhatWasExpectedAndTheCallersLine) {
  for (const Misuse& row : misuses()) {
    SCOPED_TRACE(std::string(row.op) + " of line " + std::to_string(row.line));
    const auto error = caught<InvalidArgument>(row.call);
    expect_error(error, row.op, row.words, row.line);
  }
}

TEST_F(Misuses, OfElementwiseOpsDoSoToo) {
  for (const auto& row : testing::kUnaryRows) {
    SCOPED_TRACE(row.name);
    const auto at = SourceLocation::current();
    expect_error(caught<InvalidArgument>([&] { row.op(b({2}), at); }), row.name,
                 {"expected a tensor of ", "floating", "got bool[2]"}, at.line);
  }
  const auto check = [&](const char* name, auto op) {
    SCOPED_TRACE(name);
    const int line = __LINE__ + 1;
    const auto shapes = caught<InvalidArgument>([&] { op(f({2}), f({3})); });
    const auto dtypes = caught<InvalidArgument>([&] { op(f({2}), d({2})); });
    const auto devices = caught<InvalidArgument>([&] { op(on0(f({2})), on1(f({2}))); });
    const auto numbers = caught<InvalidArgument>([&] { op(i({2}), 0.5); });
    expect_error(shapes, name, {"[2] and [3]", "do not broadcast", "must be equal"}, line);
    expect_error(dtypes, name, {"expected two tensors of one dtype", "f32[2]", "f64[2]"}, line + 1);
    expect_error(devices, name, kTwoDevices, line + 2);
    expect_error(numbers, name, {"0.5", "i64", "floating"}, line + 3);
  };
  for (const auto& row : testing::kBinaryRows) {
    check(row.name, row.op);
    const int line = __LINE__ + 1;
    const auto dtypes = caught<InvalidArgument>([&] { row.op(b({2}), b({2})); });
    expect_error(dtypes, row.name, {"expected a tensor of ", "floating", "got bool[2]"}, line);
  }
  for (const Comparison& row : kComparisonsOfNumbers) check(row.name, row.op);
}

// What may be wrong with an op's arguments, by its declaration.
std::set<Wrong> possible(const DeclaredOp& op) {
  const std::set<std::string> of_every_dtype{
      "argmax",      "argmin",       "argsort",       "broadcast_to",  "cast",
      "expand_dims", "flatten_from", "pad",           "permutation",   "reshape",
      "reverse",     "roll",         "shuffle",       "slice",         "sort",
      "split",       "squeeze",      "stop_gradient", "strided_slice", "strided_slice_gradient",
      "tile",        "top_k",        "transpose",     "unstack"};
  const std::set<std::string> of_every_shape{"global_norm", "is_finite_all"};
  const auto count = [&](const std::string& pattern) {
    const std::regex regex(pattern);
    return std::distance(std::sregex_iterator(op.parameters.begin(), op.parameters.end(), regex),
                         {});
  };
  const auto parameters = count(",") + 1;
  const auto one = count("const (Tensor|Operand)&"),
             many = count("<(const )?Tensor>|const IndexedSlices&");
  // Which have no value that is wrong by itself.
  const auto harmless =
      count("SourceLocation at|DType |Activation |MatmulOptions|GlobalPoolOptions");
  std::set<Wrong> wrong;
  if (!of_every_dtype.contains(op.name)) wrong.insert(dtype);
  if (one + 2 * many > 1) {
    wrong.insert(device);
    if (!of_every_shape.contains(op.name)) wrong.insert(shape);
  }
  if (parameters > one + many + harmless) wrong.insert(option);
  return wrong;
}

TEST(MisuseRows, AreThereOfEveryOp) {
  std::map<std::string, std::set<Wrong>> there;
  for (const Misuse& row : misuses()) there[row.op].insert(row.wrong);
  for (const auto& row : testing::kUnaryRows) there[row.name] = {dtype};
  for (const auto& row : testing::kBinaryRows) there[row.name] = {dtype, shape, device};
  for (const Comparison& row : kComparisonsOfNumbers) there[row.name] = {dtype, shape, device};
  const std::vector<DeclaredOp> ops = testing::declared_ops();
  EXPECT_GT(ops.size(), 100);
  const char* const names[] = {"dtype", "shape", "device", "option"};
  for (const DeclaredOp& op : ops)
    for (const Wrong wrong : possible(op)) {
      EXPECT_TRUE(there[op.name].contains(wrong))
          << "add a row of " << op.name << " with a wrong " << names[static_cast<int>(wrong)];
    }
}

}  // namespace
}  // namespace lockstep
