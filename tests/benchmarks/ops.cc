// SPDX-License-Identifier: Apache-2.0
// ops: every op of lockstep/ops/ by itself on one thread, at three sizes. peers/torch_each_op.py has
// the same names. Answers the line "cases" with the names of all, "<op>:forward" and, where there are
// gradients, "<op>:backward", and each line "<op> <pass> <size> <seconds>" as window.h says.
#include <lockstep/lockstep.h>

#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "window.h"

namespace {

namespace ls = lockstep;
using ls::DType, ls::Padding, ls::Tensor;

// About the same number of elements in the forms that ops take.
struct Size {
  ls::Shape matrix, square, squares, heads, line, image, volume;
};
const std::array<Size, 3> kSizes = {{
    {.matrix = {8, 128},
     .square = {32, 32},
     .squares = {1, 32, 32},
     .heads = {1, 1, 32, 32},
     .line = {1, 64, 16},
     .image = {1, 8, 8, 16},
     .volume = {1, 4, 4, 4, 16}},
    {.matrix = {128, 512},
     .square = {256, 256},
     .squares = {4, 128, 128},
     .heads = {1, 4, 256, 64},
     .line = {4, 256, 64},
     .image = {4, 16, 16, 64},
     .volume = {2, 8, 8, 8, 64}},
    {.matrix = {4096, 1024},
     .square = {2048, 2048},
     .squares = {64, 256, 256},
     .heads = {8, 8, 1024, 64},
     .line = {64, 1024, 64},
     .image = {64, 32, 32, 64},
     .volume = {16, 16, 16, 16, 64}},
}};

using Input = std::function<Tensor(const Size&)>;
using In = const std::vector<Tensor>&;
using Op = std::function<Tensor(In)>;

struct Case {
  std::vector<Input> inputs;
  Op op;
  std::size_t sources = 0;  // so many of the first inputs have a gradient
};

Input floats(ls::Shape Size::*form, double low = -2, double high = 2) {
  return [=](const Size& size) { return ls::uniform(size.*form, low, high); };
}
std::int64_t rows_of(const Size& size) { return size.matrix[0]; }
std::int64_t cols_of(const Size& size) { return size.matrix[1]; }

const Input m = floats(&Size::matrix), positive = floats(&Size::matrix, 0.1, 2),
            unit = floats(&Size::matrix, -0.9, 0.9), near_one = floats(&Size::matrix, 0.95, 1.05),
            square = floats(&Size::square), squares = floats(&Size::squares),
            heads = floats(&Size::heads), line = floats(&Size::line), image = floats(&Size::image),
            volume = floats(&Size::volume);
const Input row = [](const Size& size) { return ls::uniform({cols_of(size)}, 0.5, 1.5); };
const Input column = [](const Size& size) { return ls::uniform({rows_of(size), 1}, 0.5, 1.5); };
const Input weights = [](const Size& size) { return ls::uniform({cols_of(size), cols_of(size)}); };
const Input flags = [](const Size& size) { return ls::bernoulli(size.matrix, 0.5); };
const Input ints = [](const Size& size) {
  return ls::uniform_int(size.matrix, -100, 100, DType::i32);
};
// Of each row a column, or a row; of each element a column.
const Input labels = [](const Size& size) {
  return ls::uniform_int({rows_of(size)}, 0, cols_of(size));
};
const Input picks = [](const Size& size) {
  return ls::uniform_int({rows_of(size)}, 0, rows_of(size));
};
const Input places = [](const Size& size) {
  return ls::uniform_int(size.matrix, 0, cols_of(size));
};
const Input coordinates = [](const Size& size) {
  return ls::uniform_int({rows_of(size), 1}, 0, rows_of(size));
};
const Input segments = [](const Size& size) { return ls::cast(ls::sort(picks(size)), DType::i64); };
// Of the last axis of images.
const Input channels = [](const Size& size) { return ls::uniform({size.image[3]}, 0.5, 1.5); };
// Kernels of three taps along each of `axes`, between as many channels.
Input filters(int axes) {
  return [=](const Size& size) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(axes), 3);
    extents.insert(extents.end(), 2, size.image[3]);
    return ls::uniform(ls::Shape(extents), -0.5, 0.5);
  };
}
const Input depthwise_filters = [](const Size& size) {
  return ls::uniform({3, 3, size.image[3], 1}, -0.5, 0.5);
};

Case unary(Tensor (*op)(const Tensor&, ls::SourceLocation), const Input& input = m,
           std::size_t sources = 1) {
  return {{input}, [op](In x) { return op(x[0], {}); }, sources};
}
Case binary(Tensor (*op)(const ls::Operand&, const ls::Operand&), const Input& a = m,
            const Input& b = m, std::size_t sources = 2) {
  return {{a, b}, [op](In x) { return op(x[0], x[1]); }, sources};
}
Case reduction(Tensor (*op)(const Tensor&, const ls::ReduceOptions&, ls::SourceLocation),
               std::vector<int> axes, const Input& input = m, std::size_t sources = 1) {
  return {{input}, [=](In x) { return op(x[0], {.axes = axes}, {}); }, sources};
}
Case pool1d(Tensor (*op)(const Tensor&, const ls::Pool1dOptions&, ls::SourceLocation)) {
  return {{line}, [op](In x) { return op(x[0], {}, {}); }, 1};
}
Case pool2d(Tensor (*op)(const Tensor&, const ls::Pool2dOptions&, ls::SourceLocation)) {
  return {{image}, [op](In x) { return op(x[0], {}, {}); }, 1};
}
Case pool3d(Tensor (*op)(const Tensor&, const ls::Pool3dOptions&, ls::SourceLocation)) {
  return {{volume}, [op](In x) { return op(x[0], {}, {}); }, 1};
}

std::int64_t extent(const Tensor& x, int axis) { return x.shape()[axis]; }

// Steps of one variable, made from the first input, down the second.
Op updates(const ls::UpdateRule& rule) {
  return [rule, state = std::vector<Tensor>(), step = 0](In x) mutable {
    if (state.empty()) {
      state = {-x[0]};
      for (const ls::UpdateSlot& slot : ls::update_slots(rule))
        state.push_back(ls::full(x[0].shape(), slot.start));
    }
    ls::apply_update(rule, state, x[1], {.learning_rate = Tensor(1e-3), .number = Tensor(++step)});
    return x[0];
  };
}

// clang-format off
const std::map<std::string, Case> kCases = {
    // elementwise.h
    {"neg", unary(ls::neg)}, {"abs", unary(ls::abs)}, {"sign", unary(ls::sign, m, 0)},
    {"relu", unary(ls::relu)}, {"square", unary(ls::square)}, {"sqrt", unary(ls::sqrt, positive)},
    {"rsqrt", unary(ls::rsqrt, positive)}, {"reciprocal", unary(ls::reciprocal, positive)},
    {"exp", unary(ls::exp)}, {"expm1", unary(ls::expm1)}, {"log", unary(ls::log, positive)},
    {"log1p", unary(ls::log1p, positive)}, {"sin", unary(ls::sin)}, {"cos", unary(ls::cos)},
    {"tan", unary(ls::tan, unit)}, {"atan", unary(ls::atan)}, {"tanh", unary(ls::tanh)},
    {"erf", unary(ls::erf)}, {"sigmoid", unary(ls::sigmoid)}, {"gelu", unary(ls::gelu)},
    {"gelu_tanh", unary(ls::gelu_tanh)}, {"silu", unary(ls::silu)},
    {"softplus", unary(ls::softplus)}, {"elu", unary(ls::elu)},
    {"floor", unary(ls::floor, m, 0)}, {"ceil", unary(ls::ceil, m, 0)},
    {"round", unary(ls::round, m, 0)},
    {"add", binary(ls::add)}, {"sub", binary(ls::sub)}, {"mul", binary(ls::mul)},
    {"squared_difference", binary(ls::squared_difference)},
    {"mod", binary(ls::mod, m, positive)}, {"maximum", binary(ls::maximum)},
    {"minimum", binary(ls::minimum)}, {"div", binary(ls::div, m, positive)},
    {"atan2", binary(ls::atan2)}, {"pow", binary(ls::pow, positive, m)},
    {"leaky_relu", {{m}, [](In x) { return ls::leaky_relu(x[0]); }, 1}},
    {"add_row", binary(ls::add, m, row)}, {"mul_row", binary(ls::mul, m, row)},
    {"mul_column", binary(ls::mul, m, column)},
    {"mul_number", {{m}, [](In x) { return x[0] * 1.5; }, 1}},
    {"add_int", binary(ls::add, ints, ints, 0)}, {"mul_int", binary(ls::mul, ints, ints, 0)},
    {"abs_int", unary(ls::abs, ints, 0)},
    {"activate", {{m}, [](In x) { return ls::activate(x[0], ls::Activation::gelu); }, 1}},
    // compare.h
    {"equal", binary(ls::equal, m, m, 0)}, {"not_equal", binary(ls::not_equal, m, m, 0)},
    {"less", binary(ls::less, m, m, 0)}, {"less_equal", binary(ls::less_equal, m, m, 0)},
    {"greater", binary(ls::greater, m, m, 0)},
    {"greater_equal", binary(ls::greater_equal, m, m, 0)},
    {"equal_int", binary(ls::equal, ints, ints, 0)},
    {"logical_and", binary(ls::logical_and, flags, flags, 0)},
    {"logical_or", binary(ls::logical_or, flags, flags, 0)},
    {"logical_xor", binary(ls::logical_xor, flags, flags, 0)},
    {"logical_not", unary(ls::logical_not, flags, 0)},
    {"is_finite", unary(ls::is_finite, m, 0)}, {"is_nan", unary(ls::is_nan, m, 0)},
    {"is_inf", unary(ls::is_inf, m, 0)},
    {"select", {{m, m, flags}, [](In x) { return ls::select(x[2], x[0], x[1]); }, 2}},
    {"clamp", {{m}, [](In x) { return ls::clamp(x[0], -1, 1); }, 1}},
    // cast.h
    {"cast_bf16", {{m}, [](In x) { return ls::cast(x[0], DType::bf16); }, 1}},
    {"cast_f16", {{m}, [](In x) { return ls::cast(x[0], DType::f16); }, 1}},
    {"cast_f64", {{m}, [](In x) { return ls::cast(x[0], DType::f64); }, 1}},
    {"cast_i32", {{m}, [](In x) { return ls::cast(x[0], DType::i32); }}},
    {"cast_from_i32", {{ints}, [](In x) { return ls::cast(x[0], DType::f32); }}},
    {"cast_from_bool", {{flags}, [](In x) { return ls::cast(x[0], DType::f32); }}},
    {"stop_gradient", {{m}, [](In x) { return ls::stop_gradient(x[0]); }}},
    // reduce.h
    {"sum", reduction(ls::sum, {})}, {"sum_first", reduction(ls::sum, {0})},
    {"sum_last", reduction(ls::sum, {1})}, {"mean", reduction(ls::mean, {})},
    {"mean_first", reduction(ls::mean, {0})}, {"mean_last", reduction(ls::mean, {1})},
    {"prod_first", reduction(ls::prod, {0}, near_one)}, {"prod_last", reduction(ls::prod, {1}, near_one)},
    {"variance", reduction(ls::variance, {1})}, {"variance_first", reduction(ls::variance, {0})},
    {"stddev", reduction(ls::stddev, {1})}, {"logsumexp", reduction(ls::logsumexp, {1})},
    {"logsumexp_first", reduction(ls::logsumexp, {0})},
    {"max", reduction(ls::max, {})}, {"max_first", reduction(ls::max, {0})},
    {"max_last", reduction(ls::max, {1})}, {"min", reduction(ls::min, {1})},
    {"sum_int", reduction(ls::sum, {1}, ints, 0)}, {"max_int", reduction(ls::max, {1}, ints, 0)},
    {"any", reduction(ls::any, {1}, flags, 0)}, {"all", reduction(ls::all, {1}, flags, 0)},
    {"argmax", {{m}, [](In x) { return ls::argmax(x[0]); }}},
    {"argmin", {{m}, [](In x) { return ls::argmin(x[0]); }}},
    {"argmax_first", {{m}, [](In x) { return ls::argmax(x[0], 0); }}},
    {"sum_to_shape", {{m}, [](In x) { return ls::sum_to_shape(x[0], {extent(x[0], 1)}); }, 1}},
    {"cumsum_last", {{m}, [](In x) { return ls::cumsum(x[0], {.axis = 1}); }, 1}},
    {"cumsum_first", {{m}, [](In x) { return ls::cumsum(x[0], {.axis = 0}); }, 1}},
    // matmul.h, einsum.h, attention.h
    {"matmul", {{square, square}, [](In x) { return ls::matmul(x[0], x[1]); }, 2}},
    {"matmul_transposed", {{square, square}, [](In x) {
       return ls::matmul(x[0], x[1], {.transpose_b = true}); }, 2}},
    {"matmul_batch", {{squares, squares}, [](In x) { return ls::matmul(x[0], x[1]); }, 2}},
    {"dense", {{m, weights, row}, [](In x) { return ls::dense(x[0], x[1], x[2]); }, 3}},
    {"einsum", {{squares, squares}, [](In x) { return ls::einsum("bij,bkj->bik", {x[0], x[1]}); }, 2}},
    {"scaled_dot_product_attention", {{heads, heads, heads}, [](In x) {
       return ls::scaled_dot_product_attention(x[0], x[1], x[2]); }, 3}},
    {"causal_attention", {{heads, heads, heads}, [](In x) {
       return ls::scaled_dot_product_attention(x[0], x[1], x[2], {}, {.causal = true}); }, 3}},
    // conv.h
    {"conv1d", {{line, filters(1), channels}, [](In x) {
       return ls::conv1d(x[0], x[1], x[2], {.padding = Padding::same}); }, 3}},
    {"conv2d", {{image, filters(2), channels}, [](In x) {
       return ls::conv2d(x[0], x[1], x[2], {.padding = Padding::same}); }, 3}},
    {"conv3d", {{volume, filters(3), channels}, [](In x) {
       return ls::conv3d(x[0], x[1], x[2], {.padding = Padding::same}); }, 3}},
    {"conv2d_strided", {{image, filters(2), channels}, [](In x) {
       return ls::conv2d(x[0], x[1], x[2], {.strides = 2, .padding = {1, 1, 1, 1}}); }, 3}},
    {"depthwise_conv2d", {{image, depthwise_filters, channels}, [](In x) {
       return ls::depthwise_conv2d(x[0], x[1], x[2], {.padding = Padding::same}); }, 3}},
    {"conv1d_input_gradient", {{line, filters(1)}, [](In x) {
       return ls::conv1d_input_gradient(x[0], x[1], x[0].shape(), {.padding = Padding::same}); }}},
    {"conv2d_input_gradient", {{image, filters(2)}, [](In x) {
       return ls::conv2d_input_gradient(x[0], x[1], x[0].shape(), {.padding = Padding::same}); }}},
    {"conv3d_input_gradient", {{volume, filters(3)}, [](In x) {
       return ls::conv3d_input_gradient(x[0], x[1], x[0].shape(), {.padding = Padding::same}); }}},
    {"conv1d_weight_gradient", {{line, line, filters(1)}, [](In x) {
       return ls::conv1d_weight_gradient(x[0], x[1], x[2].shape(), {.padding = Padding::same}); }}},
    {"conv2d_weight_gradient", {{image, image, filters(2)}, [](In x) {
       return ls::conv2d_weight_gradient(x[0], x[1], x[2].shape(), {.padding = Padding::same}); }}},
    {"conv3d_weight_gradient", {{volume, volume, filters(3)}, [](In x) {
       return ls::conv3d_weight_gradient(x[0], x[1], x[2].shape(), {.padding = Padding::same}); }}},
    {"conv1d_transpose", {{line, filters(1), channels}, [](In x) {
       return ls::conv1d_transpose(x[0], x[1], x[2], {.padding = Padding::same}); }, 3}},
    {"conv2d_transpose", {{image, filters(2), channels}, [](In x) {
       return ls::conv2d_transpose(x[0], x[1], x[2], {.padding = Padding::same}); }, 3}},
    {"conv3d_transpose", {{volume, filters(3), channels}, [](In x) {
       return ls::conv3d_transpose(x[0], x[1], x[2], {.padding = Padding::same}); }, 3}},
    // pool.h
    {"max_pool1d", pool1d(ls::max_pool1d)}, {"avg_pool1d", pool1d(ls::avg_pool1d)},
    {"max_pool2d", pool2d(ls::max_pool2d)}, {"avg_pool2d", pool2d(ls::avg_pool2d)},
    {"max_pool3d", pool3d(ls::max_pool3d)}, {"avg_pool3d", pool3d(ls::avg_pool3d)},
    {"global_max_pool", {{image}, [](In x) { return ls::global_max_pool(x[0]); }, 1}},
    {"global_avg_pool", {{image}, [](In x) { return ls::global_avg_pool(x[0]); }, 1}},
    // norm.h
    {"layer_norm", {{m, row, row}, [](In x) { return ls::layer_norm(x[0], x[1], x[2]); }, 3}},
    {"rms_norm", {{m, row}, [](In x) { return ls::rms_norm(x[0], x[1]); }, 2}},
    {"group_norm", {{image, channels, channels}, [](In x) {
       return ls::group_norm(x[0], x[1], x[2], {.groups = 8}); }, 3}},
    {"batch_norm", {{image, channels, channels}, [](In x) {
       return ls::batch_norm(x[0], x[1], x[2]).y; }, 3}},
    {"batch_norm_inference", {{image, channels, channels, channels, channels}, [](In x) {
       return ls::batch_norm_inference(x[0], x[3], x[4], x[1], x[2]); }, 3}},
    // softmax.h
    {"softmax", {{m}, [](In x) { return ls::softmax(x[0]); }, 1}},
    {"softmax_first", {{m}, [](In x) { return ls::softmax(x[0], 0); }, 1}},
    {"log_softmax", {{m}, [](In x) { return ls::log_softmax(x[0]); }, 1}},
    {"sparse_softmax_cross_entropy", {{m, labels}, [](In x) {
       return ls::sparse_softmax_cross_entropy(x[1], x[0]); }, 1}},
    {"softmax_cross_entropy", {{m, positive}, [](In x) {
       return ls::softmax_cross_entropy(x[1], x[0]); }, 1}},
    {"sigmoid_cross_entropy", {{m, positive}, [](In x) {
       return ls::sigmoid_cross_entropy(x[1], x[0]); }, 1}},
    // gather.h, scatter.h
    {"gather", {{m, picks}, [](In x) { return ls::gather(x[0], x[1]); }, 1}},
    {"gather_last", {{m, labels}, [](In x) { return ls::gather(x[0], x[1], 1); }, 1}},
    {"gather_nd", {{m, coordinates}, [](In x) { return ls::gather_nd(x[0], x[1]); }, 1}},
    {"take_along_axis", {{m, places}, [](In x) { return ls::take_along_axis(x[0], x[1]); }, 1}},
    {"embedding_lookup", {{m, picks}, [](In x) { return ls::embedding_lookup(x[0], x[1]); }, 1}},
    {"one_hot", {{labels, row}, [](In x) { return ls::one_hot(x[0], extent(x[1], 0)); }}},
    {"where", {{flags}, [](In x) { return ls::where(x[0]); }}},
    {"scatter_add", {{m, picks}, [](In x) {
       return ls::scatter_add(x[1], x[0], extent(x[0], 0)); }, 1}},
    {"scatter_nd", {{m, coordinates}, [](In x) {
       return ls::scatter_nd(x[1], x[0], x[0].shape()); }, 1}},
    {"tensor_scatter_add", {{m, m, coordinates}, [](In x) {
       return ls::tensor_scatter_add(x[0], x[2], x[1]); }, 2}},
    {"to_dense", {{m, picks}, [](In x) { return ls::to_dense({x[0], x[1], x[0].shape()}); }}},
    {"coalesce", {{m, picks}, [](In x) {
       return ls::coalesce({x[0], x[1], x[0].shape()}).values; }}},
    {"unsorted_segment_sum", {{m, picks}, [](In x) {
       return ls::unsorted_segment_sum(x[0], x[1], extent(x[0], 0)); }, 1}},
    {"segment_sum", {{m, segments}, [](In x) { return ls::segment_sum(x[0], x[1]); }, 1}},
    // shape_ops.h
    {"reshape", {{m}, [](In x) { return ls::reshape(x[0], {-1}); }, 1}},
    {"expand_dims", {{m}, [](In x) { return ls::expand_dims(x[0], 1); }, 1}},
    {"squeeze", {{column}, [](In x) { return ls::squeeze(x[0]); }, 1}},
    {"flatten_from", {{image}, [](In x) { return ls::flatten_from(x[0]); }, 1}},
    {"transpose", {{m}, [](In x) { return ls::transpose(x[0]); }, 1}},
    {"transpose_image", {{image}, [](In x) { return ls::transpose(x[0], {0, 3, 1, 2}); }, 1}},
    {"broadcast_to", {{row, m}, [](In x) { return ls::broadcast_to(x[0], x[1].shape()); }, 1}},
    {"broadcast_column", {{column, m}, [](In x) {
       return ls::broadcast_to(x[0], x[1].shape()); }, 1}},
    {"concat_first", {{m, m}, [](In x) { return ls::concat(x, 0); }, 2}},
    {"concat_last", {{m, m}, [](In x) { return ls::concat(x, 1); }, 2}},
    {"stack_first", {{m, m}, [](In x) { return ls::stack(x); }, 2}},
    {"stack_last", {{m, m}, [](In x) { return ls::stack(x, -1); }, 2}},
    {"unstack", {{squares}, [](In x) { return ls::unstack(x[0])[0]; }, 1}},
    {"split_first", {{m}, [](In x) { return ls::split(x[0], 4, 0)[1]; }, 1}},
    {"split_last", {{m}, [](In x) { return ls::split(x[0], 4, 1)[1]; }, 1}},
    {"slice", {{m}, [](In x) {
       return ls::slice(x[0], {1, 3}, {extent(x[0], 0) - 2, extent(x[0], 1) - 8}); }, 1}},
    {"strided_slice", {{m}, [](In x) {
       return ls::strided_slice(x[0], {{.stride = 2}, {.stride = 3}}); }, 1}},
    {"strided_slice_gradient", {{m}, [](In x) {
       return ls::strided_slice_gradient(x[0], {2 * extent(x[0], 0), extent(x[0], 1)},
                                         {{.stride = 2}}); }, 1}},
    {"reverse_last", {{m}, [](In x) { return ls::reverse(x[0], {1}); }, 1}},
    {"reverse_first", {{m}, [](In x) { return ls::reverse(x[0], {0}); }, 1}},
    {"roll", {{m}, [](In x) { return ls::roll(x[0], {3, 5}, {0, 1}); }, 1}},
    {"tile", {{m}, [](In x) { return ls::tile(x[0], {2, 2}); }, 1}},
    {"pad", {{m}, [](In x) { return ls::pad(x[0], {1, 3}, {2, 5}); }, 1}},
    {"pad_reflect", {{m}, [](In x) {
       return ls::pad(x[0], {0, 3}, {0, 5}, {.mode = ls::PadMode::reflect}); }, 1}},
    {"pad_symmetric", {{m}, [](In x) {
       return ls::pad(x[0], {0, 1}, {0, 1}, {.mode = ls::PadMode::symmetric}); }, 1}},
    // sort.h
    {"sort", {{m}, [](In x) { return ls::sort(x[0]); }, 1}},
    {"sort_descending", {{m}, [](In x) {
       return ls::sort(x[0], {.direction = ls::SortDirection::descending}); }, 1}},
    {"argsort", {{m}, [](In x) { return ls::argsort(x[0]); }}},
    {"top_k", {{m}, [](In x) { return ls::top_k(x[0], 5).values; }, 1}},
    // random.h
    {"uniform", {{m}, [](In x) { return ls::uniform(x[0].shape()); }}},
    {"normal", {{m}, [](In x) { return ls::normal(x[0].shape()); }}},
    {"truncated_normal", {{m}, [](In x) { return ls::truncated_normal(x[0].shape()); }}},
    {"bernoulli", {{m}, [](In x) { return ls::bernoulli(x[0].shape(), 0.1); }}},
    {"uniform_int", {{m}, [](In x) { return ls::uniform_int(x[0].shape(), 0, 1000); }}},
    {"categorical", {{m}, [](In x) { return ls::categorical(x[0], 4); }}},
    {"permutation", {{m}, [](In x) { return ls::permutation(x[0].num_elements()); }}},
    {"shuffle", {{m}, [](In x) { return ls::shuffle(x[0]); }}},
    // update.h
    {"adam_update", {{m, m}, updates(ls::AdamRule{})}},
    {"sgd_update", {{m, m}, updates(ls::SgdRule{})}},
    {"momentum_update", {{m, m}, updates(ls::SgdRule{.momentum = 0.9})}},
    {"is_finite_all", {{m}, [](In x) { return ls::is_finite_all(x); }}},
    {"global_norm", {{m}, [](In x) { return ls::global_norm(x); }}},
};
// clang-format on

using Step = std::function<void()>;

Step forward(const Case& made, const std::vector<Tensor>& inputs) {
  return [op = made.op, inputs] { op(inputs); };
}

// The result and the gradients of all sources, from a tape.
Step backward(const Case& made, const std::vector<Tensor>& inputs) {
  const Tensor y = made.op(inputs);
  const auto sources = std::span(inputs).first(made.sources);
  return [op = made.op, inputs, gradient = ls::cast(ls::uniform(y.shape(), -1, 1), y.dtype()),
          sources = std::vector<Tensor>(sources.begin(), sources.end())] {
    ls::GradientTape tape;
    for (const Tensor& source : sources) tape.watch(source);
    tape.gradient(op(inputs), sources, {.target_gradient = gradient});
  };
}

// A step and how many of them are timed together.
struct Timed {
  Step step;
  int inner = 1;
};

Timed prepare(const std::string& op, const std::string& pass, const Size& size) {
  const Case& made = kCases.at(op);
  std::vector<Tensor> inputs;
  for (const Input& input : made.inputs) inputs.push_back(input(size));
  Timed timed{pass == "forward" ? forward(made, inputs) : backward(made, inputs)};
  const double milliseconds = window::milliseconds_of(timed.step, 0.005).back();
  timed.inner = static_cast<int>(std::clamp(1 / milliseconds, 1.0, 1e4));
  return timed;
}

}  // namespace

int main() {
  std::cout << "ready lockstep" << std::endl;
  std::string op, pass, prepared;
  Timed timed;
  while (std::cin >> op) {
    if (op == "cases") {
      for (const auto& [name, made] : kCases)
        std::cout << name << ":forward " << (made.sources > 0 ? name + ":backward " : "");
      std::cout << std::endl;
      continue;
    }
    std::size_t size = 0;
    double seconds = 0;
    std::cin >> pass >> size >> seconds;
    if (const std::string asked = op + pass + std::to_string(size); asked != prepared) {
      timed = prepare(op, pass, kSizes.at(size));
      prepared = asked;
    }
    window::answer_one([&] { return window::milliseconds_of(timed.step, seconds, timed.inner, 1); },
                       static_cast<std::size_t>(timed.inner));
  }
}
