// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/compare.h>
#include <lockstep/ops/conv.h>
#include <lockstep/ops/cumsum.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/pool.h>
#include <lockstep/ops/random.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/ops/softmax.h>
#include <lockstep/ops/sort.h>
#include <lockstep/ops/update.h>

#include <limits>

#include "support/errors.h"
#include "support/traced.h"
#include "support/update_rows.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

TEST(ShapeOpsXla, EqualCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(1);
  expect_same_traced(
      {noise.tensor<float>({2, 3, 4}), noise.tensor<float>({2, 1, 4})}, [](const Tensors& x) {
        const auto parts = split(x[0], {1, 3}, 2);
        const auto rows = split(x[0], 2, 0);
        return Tensors{
            transpose(x[0], {2, 0, 1}), transpose(x[0]), broadcast_to(x[1], {5, 2, 3, 4}),
            concat({x[0], x[1]}, 1), stack({x[1], x[1] * 2}, -1), parts[0], parts[1] * parts[1],
            rows[1] * rows[0], slice(x[0], {0, 1, 1}, {2, -1, 2}),
            slice(x[0], {1, 0, 0}, {1, 3, 4}), pad(x[0], {1, 0, 2}, {0, 3, 1}),
            reshape(x[0], {6, -1}), squeeze(x[1]), expand_dims(x[1], 0), flatten_from(x[0], 1),
            // A view of a view, and of an argument.
            reshape(reshape(x[0] * x[0], {24}), {4, 6})};
      });
}

TEST(ReduceXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(2);
  const Tensor x = noise.tensor<float>({3, 4, 5});
  const auto f = [](const Tensors& xs) {
    Tensors results;
    for (const ReduceOptions& options :
         {ReduceOptions{}, ReduceOptions{.axes = {1}}, ReduceOptions{.axes = {-1, 0}},
          ReduceOptions{.axes = {0, 2}, .keep_dims = true}})
      for (Tensor (*op)(const Tensor&, const ReduceOptions&, SourceLocation) :
           {sum, mean, prod, variance, stddev, logsumexp, lockstep::max, lockstep::min})
        results.push_back(op(xs[0], options, SourceLocation{}));
    return results;
  };
  // No product of small numbers, whose gradients' gradients are large.
  expect_same_traced({x + 1.5}, f, {.tolerance = 1e-4});
  expect_same_traced({cast(x, DType::f64)}, f, {.tolerance = 1e-11});
  expect_same_traced({cast(x, DType::bf16)}, f, {.tolerance = 8e-3, .gradients = false});
  expect_same_traced(
      {cast(x * 100, DType::i32), cast(x * 100, DType::i64), cast(x + 1, DType::u8), greater(x, 0)},
      [](const Tensors& xs) {
        return Tensors{sum(xs[0]),
                       sum(xs[1], {.axes = {0}}),
                       lockstep::max(xs[0], {.axes = {1}}),
                       lockstep::min(xs[1]),
                       lockstep::max(xs[2]),
                       lockstep::min(xs[2], {.axes = {2}}),
                       any(xs[3], {.axes = {0, 1}}),
                       all(xs[3], {.axes = {2}}),
                       prod(xs[0], {.axes = {2}}),
                       prod(xs[1], {.axes = {0, 1}}),
                       argmin(xs[0], 1),
                       argmin(xs[2]),
                       argmin(xs[3], 0),
                       argmax(xs[0], 1),
                       argmax(xs[2], 0),
                       argmax(xs[3], 2)};
      });
  const float nan = std::nanf("");
  expect_same_traced({vec({1, 3, 3, 2}), vec({1, nan, 3, nan}),
                      Tensor(Shape{0, 2}, std::initializer_list<float>{})},
                     [](const Tensors& xs) {
                       return Tensors{argmax(xs[0], 0), argmax(xs[1], 0),
                                      lockstep::max(xs[0] * 1, {}), sum(xs[2], {.axes = {0}}),
                                      all(less(xs[2], 0), {})};
                     },
                     {.gradients = false});
}

TEST(CumsumXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const Tensor x = Noise(2).tensor<float>({3, 7, 5});
  const auto f = [](const Tensors& xs) {
    Tensors results;
    for (const int axis : {0, 1, -1})
      for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true})
          results.push_back(
              cumsum(xs[0], {.axis = axis, .exclusive = exclusive, .reverse = reverse}));
    return results;
  };
  expect_same_traced({x}, f);
  expect_same_traced({cast(x, DType::f16)}, f, {.tolerance = 2e-3, .gradients = false});
  expect_same_traced({cast(x * 100, DType::i32)}, f);
  expect_same_traced({cast(x * 100, DType::i64)}, f);
  expect_same_traced({Tensor(Shape{2, 0, 3}, std::initializer_list<float>{})}, f,
                     {.gradients = false});
}

TEST(SliceXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(4);
  const auto all = [](const Tensors& x) {
    return Tensors{
        strided_slice(x[0], {{.stride = -1}, {}, {.begin = 1, .stride = 2}}),
        strided_slice(x[0], {{.begin = 2, .end = -4, .stride = -2}, {.begin = 3, .end = 1}}),
        strided_slice(x[0], {{}, {.begin = -1, .end = 0, .stride = -3}}),
        strided_slice_gradient(x[0], {7, 9, 5}, {{.stride = -3}, {.begin = 1, .stride = 2}}),
        reverse(x[0], {0, -1}),
        roll(x[0], {2, -1}, {1, 0}),
        tile(x[0], {2, 1, 3}),
        tile(x[0], {1, 0, 1}),
        unstack(x[0], 1)[2],
        pad(x[0], {1, 0, 2}, {0, 3, 0}, {.value = 3}),
        pad(x[0], {2, 1, 3}, {1, 3, 0}, {.mode = PadMode::reflect}),
        pad(x[0], {2, 4, 0}, {3, 1, 5}, {.mode = PadMode::symmetric})};
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8})
    expect_same_traced({cast(noise.tensor<float>({3, 4, 5}, 50) + 50, dtype)}, all,
                       {.gradients = false});
  expect_same_traced({noise.tensor<float>({3, 4})}, [](const Tensors& x) {
    return Tensors{square(strided_slice(x[0], {{.stride = -2}, {.begin = 1, .stride = 2}})),
                   square(strided_slice_gradient(x[0], {5, 9}, {{.stride = -2}, {.end = -5}})),
                   square(pad(x[0], {1, 0}, {0, 3}, {.value = 3}))};
  });
}

TEST(GatherXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(3);
  const Tensor table = noise.tensor<float>({5, 3});
  const Tensor places(Shape{2, 2}, std::initializer_list<std::int32_t>{4, 0, 2, 4});
  const Tensor updates = noise.tensor<float>({2, 2, 3});
  const Tensor columns(Shape{5, 2},
                       std::initializer_list<std::int64_t>{2, 2, 0, 1, 1, 0, 2, 0, 0, 0});
  expect_same_traced({table, places, updates, columns}, [](const Tensors& x) {
    const Tensor pairs = minimum(x[1], 2);
    return Tensors{gather(x[0], x[1]),
                   scatter_add(x[1], x[2], 6),
                   one_hot(x[1], 4),
                   one_hot(cast(x[1], DType::i64), 5, DType::i32),
                   gather(x[0], pairs, 1),
                   scatter_add(reshape(x[1], {4}), reshape(x[2], {3, 4}), 5, 1),
                   embedding_lookup(x[0], x[1]),
                   gather_nd(x[0], pairs),
                   gather_nd(x[0], reshape(x[1], {2, 2, 1})),
                   take_along_axis(x[0], x[3]),
                   take_along_axis(transpose(x[0]), transpose(x[3]), 0),
                   scatter_nd(pairs, slice(x[2], {0, 0, 0}, {2, 1, 1}), {3, 3, 1, 1}),
                   tensor_scatter_add(x[0], reshape(x[1], {2, 2, 1}), x[2]),
                   unsorted_segment_sum(x[2], x[1] - 1, 4)};
  });
  expect_same_traced({cast(table * 50, DType::i64), places}, [](const Tensors& x) {
    return Tensors{gather(x[0], x[1]), scatter_add(x[1], gather(x[0], x[1]), 5)};
  });
}

// What the contracts say of indices that nobody can be told of.
TEST(GatherXla, IndicesOutOfRange) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const Tensor x(Shape{2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  const Tensor indices = vec<std::int32_t>({-1, 5});
  const Tensor pairs(Shape{2, 2}, {-3, 1, 1, 7});
  const auto got = run_traced({x, indices, pairs}, [](const Tensors& t) {
    const Tensor ones_of_two = ones({2});
    return Tensors{gather(t[0], t[1]),
                   gather(t[0], t[1], 1),
                   gather_nd(t[0], t[2]),
                   take_along_axis(t[0], t[2]),
                   scatter_add(t[1], ones_of_two, 3),
                   scatter_nd(t[2], ones_of_two, {2, 3}),
                   unsorted_segment_sum(ones_of_two, t[1], 2)};
  });
  EXPECT_THAT(got[0], holds<float>({1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(got[1], holds<float>({1, 3, 4, 6}));
  EXPECT_THAT(got[2], holds<float>({2, 6}));
  EXPECT_THAT(got[3], holds<float>({1, 2, 5, 6}));
  EXPECT_THAT(got[4], holds<float>({0, 0, 0}));
  EXPECT_THAT(got[5], holds<float>({0, 0, 0, 0, 0, 0}));
  EXPECT_THAT(got[6], holds<float>({0, 0}));
}

TEST(GatherXla, ShapesThatDependOnValuesAreRefused) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const auto traced = [](const Tensor& x, void (*f)(const Tensor&)) {
    return [=] {
      run_traced({x}, [&](const Tensors& t) {
        f(t[0]);
        return Tensors{};
      });
    };
  };
  EXPECT_THAT(traced(vec<bool>({true}), [](const Tensor& x) { where(x); }),
              throws<Unimplemented>("[where]", "select"));
  EXPECT_THAT(traced(vec<std::int64_t>({0}), [](const Tensor& x) { segment_sum(ones({1}), x); }),
              throws<Unimplemented>("[segment_sum]", "unsorted_segment_sum"));
}

TEST(SortXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(9);
  const auto f = [](const Tensors& x) {
    Tensors results;
    for (const int axis : {0, 1, 2})
      for (const SortDirection direction : {SortDirection::ascending, SortDirection::descending}) {
        results.push_back(sort(x[0], {.axis = axis, .direction = direction}));
        results.push_back(argsort(x[0], {.axis = axis, .direction = direction}));
      }
    const auto [values, indices] = top_k(x[0], 3);
    results.insert(results.end(), {values, indices, top_k(x[0], 0).values});
    return results;
  };
  expect_same_traced({noise.tensor<float>({4, 3, 6})}, f);
  for (const DType dtype :
       {DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::boolean})
    expect_same_traced({cast(round(noise.tensor<float>({4, 3, 6}, 3)) + 3, dtype)}, f,
                       {.gradients = false});
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  expect_same_traced({reshape(vec({0.0f, nan, -infinity, -0.0f, infinity, -nan}), {1, 2, 3})}, f,
                     {.gradients = false});
}

TEST(MatmulXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(4);
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const auto f = [&](const Tensors& x) {
        const MatmulOptions options{.transpose_a = ta, .transpose_b = tb};
        return Tensors{matmul(x[0], x[1], options), matmul(x[2], x[3], options),
                       matmul(x[2], x[1], options)};
      };
      const auto shaped = [&](Shape batch, std::int64_t rows, std::int64_t cols, bool transposed) {
        const int rank = batch.rank();
        batch = batch.with_axis(rank, transposed ? cols : rows);
        return noise.tensor<float>(batch.with_axis(rank + 1, transposed ? rows : cols));
      };
      const Tensors x = {shaped({}, 3, 4, ta), shaped({}, 4, 5, tb), shaped({2, 1}, 3, 4, ta),
                         shaped({3}, 4, 5, tb)};
      expect_same_traced(x, f);
      Tensors halves, integers;
      for (const Tensor& each : x) {
        halves.push_back(cast(each, DType::bf16));
        integers.push_back(cast(each * 9, DType::i32));
      }
      expect_same_traced(halves, f, {.tolerance = 8e-3, .gradients = false});
      expect_same_traced(integers, f);
    }
}

TEST(DenseXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(5);
  const Tensors x = {noise.tensor<float>({4, 6}), noise.tensor<float>({6, 3}),
                     noise.tensor<float>({3}), noise.tensor<float>({2, 2, 6})};
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu}) {
    const auto f = [&](const Tensors& xs) {
      return Tensors{dense(xs[0], xs[1], xs[2], activation), dense(xs[3], xs[1], xs[2], activation),
                     dense(xs[0], xs[1], Tensor(), activation)};
    };
    expect_same_traced(x, f, {.tolerance = 3e-5});
    Tensors halves;
    for (const Tensor& each : x) halves.push_back(cast(each, DType::f16));
    expect_same_traced(halves, f, {.tolerance = 2e-3, .gradients = false});
  }
}

TEST(ConvXla, EqualsCpuForStridesPaddingDilationsAndGroups) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(6);
  const Conv2dOptions cases[] = {
      {},
      {.padding = Padding::same, .activation = Activation::relu},
      {.strides = {2, 3}, .padding = Padding::same},
      {.strides = 2, .padding = {1, 0, 2, 1}, .dilations = {1, 2}},
      {.strides = 2, .padding = Padding::same, .dilations = 2, .groups = 2},
  };
  for (const Conv2dOptions& options : cases) {
    const Tensors x = {noise.tensor<float>({2, 7, 8, 4}),
                       noise.tensor<float>({3, 2, 4 / options.groups, 6}),
                       noise.tensor<float>({6})};
    const auto f = [&](const Tensors& xs) {
      return Tensors{conv2d(xs[0], xs[1], xs[2], options), conv2d(xs[0], xs[1], Tensor(), options)};
    };
    expect_same_traced(x, f, {.tolerance = 5e-5});
    expect_same_traced({cast(x[0], DType::bf16), cast(x[1], DType::bf16), cast(x[2], DType::bf16)},
                       f, {.tolerance = 8e-3, .gradients = false});
  }
}

TEST(PoolXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(7);
  const Tensor x = noise.tensor<float>({2, 7, 6, 3});
  const Tensor ties = lockstep::round(x * 2);
  for (const Pool2dOptions& options :
       {Pool2dOptions{}, Pool2dOptions{.window = 3, .strides = 2, .padding = Padding::same},
        Pool2dOptions{.window = {2, 3}, .strides = 1, .padding = {1, 0, 2, 1}}}) {
    const auto f = [&](const Tensors& xs) {
      return Tensors{max_pool2d(xs[0], options), avg_pool2d(xs[0], options)};
    };
    expect_same_traced({x}, f);
    expect_same_traced({ties}, f);
    expect_same_traced({cast(x, DType::f64)}, f, {.tolerance = 1e-12});
    expect_same_traced({cast(x, DType::bf16)}, f, {.tolerance = 8e-3, .gradients = false});
  }
}

TEST(SoftmaxXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(8);
  const auto f = [](const Tensors& x) {
    return Tensors{softmax(x[0]), softmax(x[0], 0), log_softmax(x[0], 1), log_softmax(x[0])};
  };
  const Tensor x = noise.tensor<float>({3, 4, 5}, 4);
  expect_same_traced({x}, f, {.tolerance = 2e-5});
  expect_same_traced({cast(x, DType::f64)}, f, {.tolerance = 1e-12});
}

TEST(CrossEntropyXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(9);
  const Tensor logits = noise.tensor<float>({4, 5}, 3);
  const Tensor labels(Shape{4}, std::initializer_list<std::int64_t>{0, 4, 2, 2});
  const auto sparse = [](const Tensors& x) {
    return Tensors{sparse_softmax_cross_entropy(x[0], x[1]),
                   sparse_softmax_cross_entropy(cast(x[0], DType::i32), x[1])};
  };
  expect_same_traced({labels, logits}, sparse, {.tolerance = 2e-5});
  expect_same_traced({labels, cast(logits, DType::bf16)}, sparse,
                     {.tolerance = 8e-3, .gradients = false});
  expect_same_traced(
      {softmax(noise.tensor<float>({4, 5})), logits},
      [](const Tensors& x) {
        return Tensors{softmax_cross_entropy(x[0], x[1]), sigmoid_cross_entropy(x[0], x[1])};
      },
      {.tolerance = 2e-5});
  const Tensors wrong = run_traced(
      {Tensor(Shape{2}, std::initializer_list<std::int64_t>{-1, 5}), noise.tensor<float>({2, 5})},
      sparse);
  for (const float loss : wrong[0].data<float>()) EXPECT_TRUE(std::isnan(loss));
}

TEST(RandomXla, DrawsTheNumbersOfCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  for (const Shape& shape : {Shape{7}, Shape{33, 3}, Shape{}, Shape{0, 2}})
    for (const DType dtype : {DType::f32, DType::f64, DType::f16}) {
      expect_same_traced({},
                         [&](const Tensors&) {
                           return Tensors{uniform(shape, -2, 3, dtype),
                                          normal(shape, 1, 2, dtype),
                                          truncated_normal(shape, -1, 0.5, dtype),
                                          bernoulli(shape, 0.3),
                                          bernoulli(shape, 1, dtype),
                                          bernoulli(shape, 0),
                                          uniform(shape)};
                         },
                         {.tolerance = dtype == DType::f16   ? 1e-3
                                       : dtype == DType::f64 ? 1e-10
                                                             : 3e-6,
                          .gradients = false});
    }
}

TEST(RandomXla, DrawsTheIntegersOfCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const Tensor logits = Noise(3).tensor<float>({5, 9}, 2);
  expect_same_traced({logits, Noise(4).tensor<float>({12, 3})},
                     [](const Tensors& x) {
                       return Tensors{uniform_int({33, 3}, -5, 1000),
                                      uniform_int({101}, kMin, kMax),
                                      uniform_int({101}, 0, std::int64_t{5} << 40),
                                      uniform_int({7}, 0, 256, DType::u8),
                                      uniform_int({7}, -3, 4, DType::i32),
                                      uniform_int({0, 2}, 0, 1),
                                      permutation(1000),
                                      permutation(1),
                                      categorical(x[0], 40),
                                      categorical(x[0], 3, DType::i32),
                                      shuffle(x[1])};
                     },
                     {.gradients = false});
}

// Sums of so many classes are rounded in more places than f32 has between them.
TEST(CategoricalXla, NeverDrawsWhatIsImpossible) {
  LOCKSTEP_REQUIRE_PLUGIN();
  constexpr std::int64_t kClasses = 1 << 18, kDraws = 2048;
  Noise noise(11);
  std::vector<float> logits = noise.tensor<float>({kClasses}).to_vector<float>();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (i % 3 != 0) logits[i] = -INFINITY;
  const Tensor x(Shape{1, kClasses}, std::span<const float>(logits));
  RandomState state{.seed = 3};
  const RandomScope random(state);
  const Tensor drawn =
      run_traced({x}, [](const Tensors& xs) { return Tensors{categorical(xs[0], kDraws)}; })[0];
  for (const std::int64_t one : drawn.to_vector<std::int64_t>()) EXPECT_EQ(one % 3, 0) << one;
}

TEST(CategoricalXla, GivesTheLastClassOfRowsThatSayNothing) {
  LOCKSTEP_REQUIRE_PLUGIN();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x({4, 3}, {0.0f, kNan, 1.0f, kNan, 0.0f, 1.0f, 1.0f, INFINITY, 0.0f, -INFINITY,
                          -INFINITY, -INFINITY});
  expect_same_traced({x}, [](const Tensors& xs) { return Tensors{categorical(xs[0], 3)}; },
                     {.gradients = false});
}

// The rules as one program, which has the same weights, slots and scalars for all of them.
void expect_same_updates(const std::vector<UpdateRow>& rows, const Shape& shape, DType dtype,
                         double tolerance) {
  Noise noise(10);
  const auto drawn = [&] { return cast(noise.tensor<float>(shape), dtype); };
  const Tensors x = {drawn(),         drawn(),      square(drawn()),         square(drawn()),
                     square(drawn()), Tensor(0.01), Tensor(std::int64_t{3}), Tensor(0.5f)};
  const auto f = [&](const Tensors& xs) {
    Tensors results;
    for (const UpdateRow& row : rows)
      for (const bool all : {true, false}) {
        Tensors state{xs[0]};
        for (std::size_t k = 0; k < update_slots(row.rule).size(); ++k) state.push_back(xs[2 + k]);
        apply_update(row.rule, state, xs[1],
                     {.learning_rate = xs[5],
                      .number = xs[6],
                      .gradient_scale = all ? xs[7] : Tensor(),
                      .weight_decay = all ? 0.1 : 0.0});
        results.insert(results.end(), state.begin(), state.end());
      }
    return results;
  };
  expect_same_traced(x, f, {.tolerance = tolerance, .gradients = false});
}

TEST(UpdateXla, EqualsCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  for (const auto& rows : {gradient_descent_rows(), adam_rows(), scaled_rows(), norm_rows()}) {
    SCOPED_TRACE(rows[0].name);
    for (const auto& [dtype, tolerance] :
         {std::pair(DType::f32, 2e-6), std::pair(DType::f64, 1e-11), std::pair(DType::f16, 1e-3),
          std::pair(DType::bf16, 8e-3)})
      expect_same_updates(rows, {3, 4}, dtype, tolerance);
    expect_same_updates(rows, {0, 4}, DType::f32, 0);
    // Of so many, some roots are taken near 0, where they magnify roundings.
    expect_same_updates(rows, {257}, DType::f32, 1e-5);
  }
}

TEST(UpdateXla, FtrlStandsStillAtARateOfZero) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const Tensor w({3}, {2.0f, -3.0f, 1.0f}), g({3}, {4.0f, 0.0f, 0.0f});
  const Tensor a({3}, {0.0f, 0.0f, 0.5f}), z({3}, {0.0f, 0.0f, 0.25f});
  expect_same_traced({w, g, a, z, Tensor(0.0), Tensor(0.25)},
                     [](const Tensors& x) {
                       Tensors results;
                       for (const Tensor& rate : {x[4], x[5]})
                         for (const double power : {-0.5, -0.3}) {
                           Tensors state{x[0], x[2], x[3]};
                           apply_update(FtrlRule{.learning_rate_power = power}, state, x[1],
                                        {.learning_rate = rate, .number = Tensor(1.0)});
                           results.insert(results.end(), state.begin(), state.end());
                         }
                       return results;
                     },
                     {.gradients = false});
}

TEST(UpdateXla, NormsEqualCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(10);
  const Tensors x = {noise.tensor<float>({3, 4}), noise.tensor<float>({3, 4})};
  const Tensor infinite = vec({1, std::numeric_limits<float>::infinity()});
  expect_same_traced({x[0], x[1], infinite},
                     [](const Tensors& xs) {
                       return Tensors{is_finite_all(std::span(xs).first(2)), is_finite_all(xs),
                                      global_norm(std::span(xs).first(2)), global_norm(xs)};
                     },
                     {.gradients = false});
}

}  // namespace
}  // namespace lockstep
