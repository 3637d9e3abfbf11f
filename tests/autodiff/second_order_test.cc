// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "support/declared_ops.h"
#include "support/gradient_check.h"
#include "support/op_cases.h"

namespace lockstep {
namespace {

using lockstep::testing::DeclaredOp;
using lockstep::testing::Noise;
using lockstep::testing::op_cases;
using lockstep::testing::OpCase;
using lockstep::testing::OpInputs;

Tensor images_of(const OpInputs& in) { return reshape(in.x, {1, 4, 3, 2}); }

// What op_cases leaves to the ops' own tests.
std::vector<OpCase> more_cases() {
#define LOCKSTEP_CASE(...)                                                 \
  OpCase {                                                                 \
    #__VA_ARGS__, [](const OpInputs& in) -> Tensor { return __VA_ARGS__; } \
  }
  return {
      LOCKSTEP_CASE(neg(in.x)),
      LOCKSTEP_CASE(add(in.x, in.row)),
      LOCKSTEP_CASE(sub(in.row, in.x)),
      LOCKSTEP_CASE(mul(in.x, in.y)),
      LOCKSTEP_CASE(div(in.x, in.y)),
      LOCKSTEP_CASE(pow(in.y, in.x)),
      LOCKSTEP_CASE(minimum(in.x, in.row)),
      LOCKSTEP_CASE(atan2(in.x, in.y)),
      LOCKSTEP_CASE(leaky_relu(in.x, in.row)),
      LOCKSTEP_CASE(clamp(in.x, in.row, in.y)),
      LOCKSTEP_CASE(abs(in.x)),
      LOCKSTEP_CASE(square(in.x)),
      LOCKSTEP_CASE(rsqrt(in.y)),
      LOCKSTEP_CASE(reciprocal(in.y)),
      LOCKSTEP_CASE(expm1(in.x)),
      LOCKSTEP_CASE(log(in.y)),
      LOCKSTEP_CASE(log1p(in.y)),
      LOCKSTEP_CASE(sin(in.x)),
      LOCKSTEP_CASE(cos(in.x)),
      LOCKSTEP_CASE(tanh(in.x)),
      LOCKSTEP_CASE(erf(in.x)),
      LOCKSTEP_CASE(sigmoid(in.x)),
      LOCKSTEP_CASE(activate(in.x, Activation::gelu)),
      LOCKSTEP_CASE(cast(cast(in.x, DType::f64) * in.y, DType::f64)),
      LOCKSTEP_CASE(min(in.x, {.axes = {0}})),
      LOCKSTEP_CASE(mean(in.x, {.axes = {1}})),
      LOCKSTEP_CASE(stddev(in.x, {.axes = {0}, .keep_dims = true})),
      LOCKSTEP_CASE(logsumexp(in.x)),
      LOCKSTEP_CASE(prod(in.x * in.y)),
      LOCKSTEP_CASE(sum_to_shape(in.x, {6})),
      LOCKSTEP_CASE(matmul(reshape(in.x, {2, 2, 6}), reshape(in.y, {2, 6, 2}))),
      LOCKSTEP_CASE(
          matmul(reshape(in.x, {2, 2, 6}), reshape(in.y, {1, 4, 6}), {.transpose_b = true})),
      LOCKSTEP_CASE(matmul(in.x, in.y, {.transpose_a = true})),
      LOCKSTEP_CASE(dense(in.x, transpose(in.y), Tensor(), Activation::none)),
      LOCKSTEP_CASE(dense(in.x, transpose(in.y), slice(in.row, {0}, {4}), Activation::relu)),
      LOCKSTEP_CASE(dense(in.x, transpose(in.y), Tensor(), Activation::tanh)),
      LOCKSTEP_CASE(dense(in.x, transpose(in.y), Tensor(), Activation::sigmoid)),
      LOCKSTEP_CASE(dense(in.x, transpose(in.y), slice(in.row, {0}, {4}), Activation::gelu)),
      LOCKSTEP_CASE(einsum("ij,ij,j->i", {in.x, in.y, in.row})),
      LOCKSTEP_CASE(einsum("ii->i", {slice(in.x, {0, 0}, {4, 4})})),
      LOCKSTEP_CASE(scaled_dot_product_attention(
          in.x, in.y, in.y, slice(in.condition, {0, 0}, {4, 4}), {.scale = 0.7})),
      LOCKSTEP_CASE(layer_norm(in.x, in.row, Tensor())),
      LOCKSTEP_CASE(
          layer_norm(reshape(in.x, {2, 2, 6}), slice(in.y, {0, 0}, {2, 6}), Tensor(), {.axis = 1})),
      LOCKSTEP_CASE(rms_norm(in.x, Tensor())),
      LOCKSTEP_CASE(batch_norm(in.x, in.row, in.row).mean),
      LOCKSTEP_CASE(batch_norm(in.x, in.row, in.row).variance),
      LOCKSTEP_CASE([&] {
        const auto [y, mean, variance] = batch_norm(in.x, in.row, Tensor());
        return y * mean + variance;
      }()),
      LOCKSTEP_CASE(softmax(in.x, 0)),
      LOCKSTEP_CASE(log_softmax(in.x)),
      LOCKSTEP_CASE(softmax_cross_entropy(in.y, in.x)),
      LOCKSTEP_CASE(sigmoid_cross_entropy(in.y, in.x)),
      LOCKSTEP_CASE(reshape(in.x, {6, -1})),
      LOCKSTEP_CASE(squeeze(expand_dims(in.x, 1))),
      LOCKSTEP_CASE(flatten_from(reshape(in.x, {2, 3, 4}))),
      LOCKSTEP_CASE(stack({in.x, in.y}, 1)),
      LOCKSTEP_CASE(split(in.x, {1, 2, 3}, 1)[2]),
      LOCKSTEP_CASE(strided_slice_gradient(in.x, {8, 8}, {{.stride = -2}, {.begin = 1, .end = 7}})),
      LOCKSTEP_CASE(embedding_lookup(in.x, minimum(in.labels, 3))),
      LOCKSTEP_CASE(to_dense({.values = in.x, .indices = in.labels, .shape = {6, 6}})),
      LOCKSTEP_CASE(scatter_add(in.labels, transpose(in.x), 7, 1)),
      LOCKSTEP_CASE(tensor_scatter_add(in.x, reshape(minimum(in.labels, 3), {4, 1}), in.y)),
      LOCKSTEP_CASE(sort(in.x, {.axis = 0})),
      LOCKSTEP_CASE(sort(in.x, {.direction = SortDirection::descending})),
      LOCKSTEP_CASE(top_k(in.x, 2).values),
      LOCKSTEP_CASE([&] {
        RandomState state;
        const RandomScope drawing(state);
        return shuffle(in.x);
      }()),
      LOCKSTEP_CASE(
          conv1d(reshape(in.x, {2, 6, 2}), reshape(in.y, {3, 2, 4}), slice(in.row, {0}, {4}),
                 {.strides = 2, .padding = Padding::same, .activation = Activation::tanh})),
      LOCKSTEP_CASE(conv2d(images_of(in), reshape(slice(in.y, {0, 0}, {3, 6}), {3, 3, 1, 2}),
                           Tensor(), {.padding = Padding::same, .groups = 2})),
      LOCKSTEP_CASE(
          conv2d(images_of(in), reshape(in.y, {2, 3, 2, 2}), slice(in.row, {0}, {2}),
                 {.strides = 2, .padding = Padding::same, .activation = Activation::relu})),
      LOCKSTEP_CASE(conv2d(images_of(in), reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 2, 2}),
                           Tensor(), {.dilations = 2})),
      LOCKSTEP_CASE(depthwise_conv2d(images_of(in),
                                     reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 2, 2}),
                                     slice(in.row, {0}, {4}), {.activation = Activation::sigmoid})),
      LOCKSTEP_CASE(conv1d_transpose(reshape(in.x, {2, 6, 2}), reshape(in.y, {3, 4, 2}),
                                     slice(in.row, {0}, {4}), {.strides = 2})),
      LOCKSTEP_CASE(conv2d_transpose(images_of(in), reshape(in.y, {2, 3, 2, 2}),
                                     slice(in.row, {0}, {2}),
                                     {.padding = Padding::same, .activation = Activation::relu})),
      LOCKSTEP_CASE(conv3d_transpose(reshape(in.x, {1, 2, 3, 2, 2}),
                                     reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 1, 2, 2}),
                                     Tensor())),
      LOCKSTEP_CASE(conv1d_input_gradient(reshape(in.x, {2, 4, 3}),
                                          reshape(slice(in.y, {0, 0}, {3, 6}), {3, 2, 3}),
                                          {2, 6, 2}, {})),
      LOCKSTEP_CASE(conv1d_weight_gradient(reshape(in.x, {2, 4, 3}), reshape(in.y, {2, 6, 2}),
                                           {3, 2, 3}, {})),
      LOCKSTEP_CASE(conv2d_input_gradient(
          images_of(in), reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 2, 2}), {1, 5, 4, 2}, {})),
      LOCKSTEP_CASE(conv2d_weight_gradient(reshape(slice(in.x, {0, 0}, {3, 4}), {1, 3, 2, 2}),
                                           reshape(in.y, {1, 4, 3, 2}), {2, 2, 2, 2}, {})),
      LOCKSTEP_CASE(conv3d_input_gradient(reshape(in.x, {1, 2, 3, 2, 2}),
                                          reshape(slice(in.y, {0, 0}, {4, 4}), {2, 2, 1, 2, 2}),
                                          {1, 3, 4, 2, 2}, {})),
      LOCKSTEP_CASE(conv3d_weight_gradient(reshape(slice(in.x, {0, 0}, {2, 4}), {1, 1, 2, 2, 2}),
                                           reshape(in.y, {1, 2, 3, 2, 2}), {2, 2, 1, 2, 2}, {})),
      LOCKSTEP_CASE(max_pool2d(images_of(in), {.padding = Padding::same})),
      LOCKSTEP_CASE(avg_pool2d(images_of(in), {.strides = 1, .padding = Padding::same})),
      LOCKSTEP_CASE(global_max_pool(images_of(in))),
      LOCKSTEP_CASE(global_avg_pool(images_of(in), {.keep_dims = true})),
  };
#undef LOCKSTEP_CASE
}

// The floating inputs, which an op may have gradients for.
std::vector<Tensor> differentiable(const OpInputs& in) {
  return {in.x, in.y, in.row, in.weights, in.images, in.kernel};
}

// The gradient of sum(weights * y^2 of the op) for argument k, undefined where there is none. Of the
// square, so that linear ops have a second gradient, too.
Tensor first_gradient(const OpCase& op, const std::vector<Tensor>& xs, std::size_t k,
                      const OpInputs& fixed) {
  GradientTape tape;
  tape.watch(xs[k]);
  const Tensor y = op.op(
      {xs[0], xs[1], xs[2], xs[3], xs[4], xs[5], fixed.labels, fixed.ordinals, fixed.condition});
  const Tensor weights = Noise(5).tensor<double>(y.shape()) + 2;
  return tape.gradient(sum(weights * square(y)), {xs[k]})[0];
}

// Expects the gradients of first_gradient for the arguments `used` to be the central differences.
void expect_second_order(const OpCase& op, const OpInputs& in, std::size_t k,
                         const std::vector<std::size_t>& used) {
  constexpr double kStep = 1e-5, kTolerance = 2e-6;
  const std::vector<Tensor> xs = differentiable(in);
  const Tensor weights = Noise(6).tensor<double>(xs[k].shape()) + 2;
  const auto value = [&](const std::vector<Tensor>& at) {
    return sum(weights * first_gradient(op, at, k, in));
  };
  GradientTape tape;
  for (const Tensor& x : xs) tape.watch(x);
  const auto gradients = tape.gradient(value(xs), xs);
  for (const std::size_t j : used)
    for (std::size_t i = 0; i < static_cast<std::size_t>(xs[j].num_elements()); ++i) {
      const auto at = [&](double offset) {
        std::vector<double> moved = xs[j].to_vector<double>();
        moved[i] += offset;
        std::vector<Tensor> points = xs;
        points[j] = Tensor(xs[j].shape(), std::span<const double>(moved));
        return value(points).item<double>();
      };
      const double expected = (at(kStep) - at(-kStep)) / (2 * kStep);
      const double actual = gradients[j].defined() ? gradients[j].data<double>()[i] : 0;
      ASSERT_NEAR(actual, expected, kTolerance * (1 + std::abs(expected)))
          << "of the gradient for argument " << k << ", for element " << i << " of argument " << j;
    }
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases = op_cases();
  for (OpCase& op : more_cases()) cases.push_back(std::move(op));
  return cases;
}

bool calls(const OpCase& op, const std::string& name) {
  const std::string text = std::string(" ") + op.name;
  for (std::size_t at = text.find(name + "("); at != text.npos; at = text.find(name + "(", at + 1))
    if (!std::isalnum(static_cast<unsigned char>(text[at - 1])) && text[at - 1] != '_') return true;
  return false;
}

TEST(SecondOrder, GradientsOfGradientsAreTheCentralDifferencesOfTheFirst) {
  const OpInputs in = OpInputs::on_host(DType::f64);
  for (const OpCase& op : all_cases()) {
    SCOPED_TRACE(op.name);
    if (op.op(in).dtype() != DType::f64) continue;  // one of those without gradients
    if (calls(op, "stop_gradient")) continue;       // differences see what it stops
    const std::vector<Tensor> xs = differentiable(in);
    std::vector<std::size_t> used;
    for (std::size_t k = 0; k < xs.size(); ++k)
      if (first_gradient(op, xs, k, in).defined()) used.push_back(k);
    for (const std::size_t k : used) expect_second_order(op, in, k, used);
  }
}

TEST(SecondOrder, StopGradientStopsGradientsOfGradientsToo) {
  const Tensor x(2.0), y(3.0);
  GradientTape outer;
  outer.watch(x);
  outer.watch(y);
  GradientTape inner;
  inner.watch(x);
  const Tensor slope = inner.gradient(square(x * stop_gradient(y)) * y, {x})[0];  // 2 x y^2 y
  const auto gradients = outer.gradient(slope, {x, y});
  EXPECT_EQ(gradients[0].item<double>(), 54);
  EXPECT_EQ(gradients[1].item<double>(), 36);
}

TEST(SecondOrder, IsCheckedOfEveryOp) {
  const std::set<std::string> without_gradient{
      "all",         "any",           "argmax",     "argmin",        "argsort",
      "bernoulli",   "categorical",   "ceil",       "equal",         "floor",
      "greater",     "greater_equal", "is_finite",  "is_inf",        "is_finite_all",
      "is_nan",      "less",          "less_equal", "logical_and",   "logical_not",
      "logical_or",  "logical_xor",   "normal",     "not_equal",     "one_hot",
      "permutation", "round",         "sign",       "stop_gradient", "truncated_normal",
      "uniform",     "uniform_int",   "where"};
  const std::vector<OpCase> cases = all_cases();
  const std::vector<DeclaredOp> ops = testing::declared_ops();
  EXPECT_GT(ops.size(), 100);
  for (const auto& [op, parameters] : ops)
    EXPECT_TRUE(without_gradient.contains(op) ||
                std::any_of(cases.begin(), cases.end(),
                            [&op = op](const OpCase& one) { return calls(one, op); }))
        << "add a case of " << op;
}

}  // namespace
}  // namespace lockstep
