// SPDX-License-Identifier: Apache-2.0
// The bodies of CUDA's kernels, run on the CPU by an emulator, against formulas in double.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "support/sanitizers.h"

#if !defined(__SANITIZE_THREAD__)  // which does not know fibers

#include "support/cuda_emulator.h"
//
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/shape.cuh"
#include "ops/cuda/softmax.cuh"
#include "ops/cuda/sort.cuh"
#include "ops/cuda/update.cuh"
#include "ops/cuda/window.cuh"
#include "support/update_rows.h"
#include "support/values.h"

namespace lockstep::cuda {
namespace {

using lockstep::testing::Noise;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

template <class... P, class... A>
void run(void (*kernel)(P...), int blocks, A... arguments) {
  static unsigned seed = 0;
  emulator::run(kernel, blocks, kBlock, ++seed, arguments...);
}

std::vector<float> floats(std::size_t n, double scale = 1, std::uint64_t seed = 1) {
  Noise noise(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(scale * noise.next());
  return values;
}

// Sizes around a block's, and none.
const std::vector<std::size_t> kSizes{0, 1, 31, 32, 33, 200};

TEST(CudaKernels, UnaryAndItsGradientAreTheFunctors) {
  for (const std::size_t n : kSizes)
    for (const int blocks : {1, 3}) {
      const auto x = floats(n), dy = floats(n, 1, 2);
      std::vector<float> y(n, -1), dx(n, -1);
      run(unary_kernel<Exp, float>, blocks, x.data(), y.data(), n);
      run(unary_gradient_kernel<Exp, float>, blocks, dy.data(), y.data(), dx.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(y[i], std::exp(double{x[i]}), 1e-6);
        EXPECT_NEAR(dx[i], dy[i] * std::exp(double{x[i]}), 1e-6);
      }
      run(unary_gradient_kernel<Neg, float>, blocks, dy.data(), static_cast<const float*>(nullptr),
          dx.data(), n);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(dx[i], -dy[i]);
    }
}

TEST(CudaKernels, HalvesAreComputedInFloat) {
  const bfloat16 x(3.0f);
  bfloat16 y;
  run(unary_kernel<Square, bfloat16>, 1, &x, &y, 1);
  EXPECT_EQ(static_cast<float>(y), 9);
  const half a(1.5f);
  half b;
  run(unary_kernel<Neg, half>, 1, &a, &b, 1);
  EXPECT_EQ(static_cast<float>(b), -1.5f);
}

TEST(CudaKernels, BinaryBroadcasts) {
  const auto a = floats(3 * 1 * 5), b = floats(4 * 5, 1, 2);
  const Shape shape{3, 4, 5}, shape_a{3, 1, 5}, shape_b{4, 5};
  const Broadcast<2> plan(shape, {&shape_a, &shape_b});
  std::vector<float> y(60);
  std::unique_ptr<bool[]> less(new bool[60]);
  run(binary_kernel<Sub, float, float>, 2, a.data(), b.data(), y.data(), plan, 60);
  run(binary_kernel<Less, float, bool>, 2, a.data(), b.data(), less.get(), plan, 60);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      for (std::size_t k = 0; k < 5; ++k) {
        const float left = a[i * 5 + k], right = b[j * 5 + k];
        EXPECT_EQ(y[(i * 4 + j) * 5 + k], left - right);
        EXPECT_EQ(less[(i * 4 + j) * 5 + k], left < right);
      }
}

TEST(CudaKernels, SelectChoosesBits) {
  const bool condition[] = {true, false, true};
  const std::uint32_t a[] = {1, 2, 3}, b[] = {9};
  const Shape three{3}, one{};
  std::uint32_t y[3];
  run(select_kernel<std::uint32_t>, 1, condition, a, b, y,
      Broadcast<3>(three, {&three, &three, &one}), 3);
  EXPECT_THAT(y, ElementsAre(1, 9, 3));
}

TEST(CudaKernels, CastSaturatesAsOnTheCpu) {
  const float x[] = {1.9f, -2.9f, 3e9f, -3e9f, NAN, INFINITY};
  std::int32_t y[6];
  run(cast_kernel<std::int32_t, float>, 1, x, y, 6);
  EXPECT_THAT(y, ElementsAre(1, -2, INT32_MAX, INT32_MIN, 0, INT32_MAX));
  bool nonzero[6];
  run(cast_kernel<bool, float>, 1, x, nonzero, 6);
  EXPECT_THAT(nonzero, Each(true));
  bool finite[6];
  run(predicate_kernel<IsFinite, float>, 1, x, finite, 6);
  EXPECT_THAT(finite, ElementsAre(true, true, true, true, false, false));
}

TEST(CudaKernels, StridedCopyTransposes) {
  const auto x = floats(3 * 7);
  std::vector<std::uint32_t> from(21), to(21);
  std::memcpy(from.data(), x.data(), 84);
  StridedCopy copy;  // [7, 3] of [3, 7]
  copy.add_axis(7, 1, 3);
  copy.add_axis(3, 7, 1);
  run(strided_copy_kernel<std::uint32_t>, 1, copy, from.data(), to.data(), 21);
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(to[i * 3 + j], from[j * 7 + i]);
}

TEST(CudaKernels, RowsAreGatheredAndScattered) {
  const std::uint32_t x[] = {10, 11, 20, 21, 30, 31};
  const std::int64_t indices[] = {2, 0, 2, 9};
  std::uint32_t y[8];
  run(gather_kernel<std::uint32_t, std::int64_t>, 1, x, indices, y, 3, 4, 2, 8);
  EXPECT_THAT(y, ElementsAre(30, 31, 10, 11, 30, 31, 0, 0));
  std::uint32_t columns[8];  // of [2, 3, 1]
  run(gather_kernel<std::uint32_t, std::int64_t>, 1, x, indices, columns, 3, 4, 1, 8);
  EXPECT_THAT(columns, ElementsAre(20, 10, 20, 0, 31, 21, 31, 0));
  const float updates[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const float* const none = nullptr;
  float sums[6];
  run(scatter_add_kernel<float, std::int64_t>, 1, none, indices, updates, sums, 4, 3, 2, 6);
  EXPECT_THAT(sums, ElementsAre(3, 4, 0, 0, 6, 8));
  const float base[] = {100, 0, 0, 0, 0, 200};
  run(scatter_add_kernel<float, std::int64_t>, 1, base, indices, updates, sums, 4, 3, 1, 6);
  EXPECT_THAT(sums, ElementsAre(102, 0, 4, 6, 0, 212));
  float hot[12];
  run(one_hot_kernel<float, std::int64_t>, 1, indices, hot, 3, 12);
  EXPECT_THAT(hot, ElementsAre(0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0));
}

TEST(CudaKernels, CoordinatesBecomeNumbers) {
  const std::int32_t coordinates[] = {1, 2, 0, 0, 2, 0, 1, -1};  // of [2, 3]
  std::int64_t numbers[4];
  run(row_numbers_kernel<std::int32_t>, 1, Coordinates{.count = 2, .extents = {2, 3}}, coordinates,
      numbers, 4);
  EXPECT_THAT(numbers, ElementsAre(5, 0, -1, -1));
  std::int64_t along[8];  // the indices are [2, 2, 2], into [2, 3, 2]
  run(numbers_along_kernel<std::int32_t>, 1, coordinates, along, 3, 2, 2, 8);
  EXPECT_THAT(along, ElementsAre(2, 5, 0, 1, 10, 7, 8, -1));
}

TEST(CudaKernels, ReduceSumsTheNamedAxes) {
  // [3, 50, 2] over the middle axis; more results than blocks, more elements than threads.
  const auto x = floats(300);
  ReduceAxes axes;
  axes.kept = {.rank = 2, .extents = {3, 2}, .strides = {100, 1}};
  axes.reduced = {.rank = 1, .extents = {50}, .strides = {2}};
  axes.results = 6;
  axes.count = 50;
  float sum[6], most[6], least[6];
  run(reduce_kernel<SumOf, float>, 4, x.data(), sum, axes, 10);
  run(reduce_kernel<LargestOf, float>, 4, x.data(), most, axes, 1);
  run(reduce_kernel<LeastOf, float>, 4, x.data(), least, axes, 1);
  float product[6];
  run(reduce_kernel<ProductOf, float>, 4, x.data(), product, axes, 1);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 2; ++k) {
      double total = 0, factors = 1;
      float high = -9, low = 9;
      for (std::size_t j = 0; j < 50; ++j) {
        const float value = x[i * 100 + j * 2 + k];
        total += value;
        factors *= value;
        high = std::max(high, value);
        low = std::min(low, value);
      }
      EXPECT_NEAR(sum[i * 2 + k], total / 10, 1e-6);
      EXPECT_EQ(most[i * 2 + k], high);
      EXPECT_EQ(least[i * 2 + k], low);
      EXPECT_NEAR(product[i * 2 + k] / factors, 1, 1e-5);
    }
}

TEST(CudaKernels, ReduceOfNothingIsZeroAndNaNLeads) {
  ReduceAxes axes;
  axes.count = 0;
  axes.reduced = {.rank = 1, .extents = {0}, .strides = {1}};
  float y = 5;
  run(reduce_kernel<SumOf, float>, 1, static_cast<const float*>(&y), &y, axes, 1);
  EXPECT_EQ(y, 0);
  run(reduce_kernel<ProductOf, float>, 1, static_cast<const float*>(&y), &y, axes, 1);
  EXPECT_EQ(y, 1);
  std::vector<float> x = floats(100);
  x[57] = NAN;
  axes.count = 100;
  axes.reduced.extents[0] = 100;
  run(reduce_kernel<LargestOf, float>, 1, x.data(), &y, axes, 1);
  EXPECT_TRUE(std::isnan(y));
}

TEST(CudaKernels, ArgExtremesTakeTheFirst) {
  const float x[] = {1, 5, 5, 2, 7, 0, -1, 7};  // [2, 4]
  std::int64_t y[2];
  run(arg_extreme_kernel<true, float>, 1, x, y, 4, 1, 2);
  EXPECT_THAT(y, ElementsAre(1, 0));
  run(arg_extreme_kernel<false, float>, 1, x, y, 4, 1, 2);
  EXPECT_THAT(y, ElementsAre(0, 2));
  const float with_nan[] = {1, NAN, 9, 2};
  run(arg_extreme_kernel<true, float>, 1, with_nan, y, 4, 1, 1);
  EXPECT_EQ(y[0], 1);
  run(arg_extreme_kernel<false, float>, 1, with_nan, y, 4, 1, 1);
  EXPECT_EQ(y[0], 1);
}

// Lines shorter and longer than a block, along the middle axis of three.
TEST(CudaKernels, CumsumAddsUpBothWays) {
  for (const std::size_t n : {1, 31, 32, 33, 100}) {
    constexpr std::size_t outer = 2, inner = 3;
    const auto x = floats(outer * n * inner);
    std::vector<float> y(x.size());
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true}) {
        run(cumsum_kernel<float>, 4, x.data(), y.data(), outer * inner, n, inner, exclusive,
            reverse);
        for (std::size_t line = 0; line < outer * inner; ++line) {
          double sum = 0;
          for (std::size_t k = 0; k < n; ++k) {
            const std::size_t j = reverse ? n - 1 - k : k;
            const std::size_t at = (line / inner * n + j) * inner + line % inner;
            const double before = sum;
            sum += x[at];
            EXPECT_NEAR(y[at], exclusive ? before : sum, 1e-5);
          }
        }
      }
  }
}

TEST(CudaKernels, BiasGradientSumsColumnsOfWhatReluLetThrough) {
  constexpr std::size_t rows = 70, channels = 3;
  const auto dy = floats(rows * channels), y = floats(rows * channels, 1, 2);
  std::vector<float> dz(rows * channels), bias(channels), plain(channels);
  run(bias_gradient_kernel<float>, 2, dy.data(), y.data(), dz.data(), bias.data(), rows, channels);
  run(bias_gradient_kernel<float>, 2, dy.data(), static_cast<const float*>(nullptr),
      static_cast<float*>(nullptr), plain.data(), rows, channels);
  for (std::size_t c = 0; c < channels; ++c) {
    double passed = 0, all = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t i = r * channels + c;
      EXPECT_EQ(dz[i], y[i] > 0 ? dy[i] : 0);
      passed += dz[i];
      all += dy[i];
    }
    EXPECT_NEAR(bias[c], passed, 1e-5);
    EXPECT_NEAR(plain[c], all, 1e-5);
  }
}

TEST(CudaKernels, NormsAreSummedInTwoSteps) {
  const auto x = floats(500);
  double partial[3], total = 2, expected = 2;
  for (const float value : x) expected += double{value} * double{value};
  run(square_sums_kernel<float>, 3, x.data(), partial, 500);
  run(add_partials_kernel<double>, 1, static_cast<const double*>(partial), &total, 3);
  EXPECT_NEAR(total, expected, 1e-12 * expected);
  float root = 0;
  run(square_root_kernel<float>, 1, static_cast<const double*>(&total), &root);
  EXPECT_FLOAT_EQ(root, static_cast<float>(std::sqrt(expected)));
  bool all = true;
  run(all_finite_kernel<float>, 2, x.data(), &all, 500);
  EXPECT_TRUE(all);
  auto broken = x;
  broken[321] = INFINITY;
  run(all_finite_kernel<float>, 2, broken.data(), &all, 500);
  EXPECT_FALSE(all);
}

// exp(x[i] - max) and their sum, in double.
struct Exps {
  std::vector<double> exps;
  double max = -1e300, sum = 0;
  Exps(const float* x, std::size_t n, std::size_t step) {
    for (std::size_t i = 0; i < n; ++i) max = std::max(max, double{x[i * step]});
    for (std::size_t i = 0; i < n; ++i) sum += exps.emplace_back(std::exp(x[i * step] - max));
  }
};

TEST(CudaKernels, SoftmaxAlongAnyAxis) {
  constexpr std::size_t outer = 2, n = 40, inner = 3, rows = outer * inner;
  const auto x = floats(outer * n * inner, 5), dy = floats(outer * n * inner, 1, 2);
  std::vector<float> y(x.size()), log_y(x.size()), dx(x.size()), log_dx(x.size());
  run(softmax_kernel<float>, 4, x.data(), y.data(), rows, n, inner, false);
  run(softmax_kernel<float>, 4, x.data(), log_y.data(), rows, n, inner, true);
  run(softmax_gradient_kernel<float>, 4, dy.data(), y.data(), dx.data(), rows, n, inner, false);
  run(softmax_gradient_kernel<float>, 4, dy.data(), log_y.data(), log_dx.data(), rows, n, inner,
      true);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t begin = row / inner * n * inner + row % inner;
    const Exps e(&x[begin], n, inner);
    double weighted = 0, total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      weighted += dy[begin + i * inner] * e.exps[i] / e.sum;
      total += dy[begin + i * inner];
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = begin + i * inner;
      const double p = e.exps[i] / e.sum;
      EXPECT_NEAR(y[at], p, 1e-6);
      EXPECT_NEAR(log_y[at], std::log(p), 1e-5);
      EXPECT_NEAR(dx[at], p * (dy[at] - weighted), 1e-6);
      EXPECT_NEAR(log_dx[at], dy[at] - p * total, 1e-5);
    }
  }
}

TEST(CudaKernels, CrossEntropiesAndTheirGradients) {
  constexpr std::size_t rows = 5, n = 37;
  const auto x = floats(rows * n, 5), d = floats(rows, 1, 2);
  const std::int64_t labels[] = {0, 36, 7, 7, 40};  // the last does not exist
  std::vector<float> weights = floats(rows * n, 0.5, 3), loss(rows), exps(rows * n), scale(rows),
                     dx(rows * n), dense_loss(rows), dense_dx(rows * n);
  run(sparse_losses_kernel<float, std::int64_t>, 2, labels, x.data(), loss.data(), exps.data(),
      scale.data(), rows, n);
  run(sparse_losses_gradient_kernel<float, std::int64_t>, 2, d.data(), labels,
      static_cast<const float*>(exps.data()), static_cast<const float*>(scale.data()), dx.data(), n,
      rows * n);
  run(dense_losses_kernel<float>, 2, static_cast<const float*>(weights.data()), x.data(),
      dense_loss.data(), exps.data(), scale.data(), rows, n);
  run(dense_losses_gradient_kernel<float>, 2, d.data(), static_cast<const float*>(weights.data()),
      static_cast<const float*>(exps.data()), static_cast<const float*>(scale.data()),
      dense_dx.data(), rows, n);
  for (std::size_t r = 0; r < rows; ++r) {
    const Exps e(&x[r * n], n, 1);
    double dense = 0, total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      dense += weights[r * n + i] * (std::log(e.sum) + e.max - x[r * n + i]);
      total += weights[r * n + i];
    }
    EXPECT_NEAR(dense_loss[r], dense, 2e-5);
    if (r + 1 < rows)
      EXPECT_NEAR(loss[r], std::log(e.sum) + e.max - x[r * n + static_cast<std::size_t>(labels[r])],
                  1e-5);
    else
      EXPECT_TRUE(std::isnan(loss[r]));
    for (std::size_t i = 0; i < n; ++i) {
      const double p = e.exps[i] / e.sum;
      EXPECT_NEAR(dx[r * n + i], d[r] * (p - (static_cast<std::int64_t>(i) == labels[r])), 1e-6);
      EXPECT_NEAR(dense_dx[r * n + i], d[r] * (p * total - weights[r * n + i]), 1e-5);
    }
  }
}

// Rows of few different values and NaNs, so that order among equals shows.
TEST(CudaKernels, MergePassesSort) {
  using Places = std::vector<int>;
  constexpr std::size_t rows = 3;
  for (const std::size_t n : {1, 2, 3, 31, 64, 200})
    for (const std::size_t k : {std::size_t{1}, (n + 1) / 2, n})
      for (const bool descending : {false, true}) {
        auto x = floats(rows * n, 4);
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = i % 7 == 3 ? NAN : i % 5 == 1 ? -0.0f : std::round(x[i]);
        std::vector<float> from = x, moved(rows * n), values(rows * k);
        Places places(rows * n), moved_places(rows * n), indices(rows * k);
        std::size_t length = 1;
        for (; 2 * length < n; length *= 2) {
          run(merge_kernel<float>, 2, from.data(), length == 1 ? nullptr : places.data(),
              moved.data(), moved_places.data(), n, length, n, descending, rows * n);
          std::swap(from, moved);
          std::swap(places, moved_places);
        }
        run(merge_kernel<float>, 2, from.data(), length == 1 ? nullptr : places.data(),
            values.data(), indices.data(), n, length, k, descending, rows * n);
        for (std::size_t r = 0; r < rows; ++r) {
          Places expected(n);
          std::iota(expected.begin(), expected.end(), 0);
          std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) {
            const auto rank = [&](int i) {
              const float value = x[r * n + static_cast<std::size_t>(i)];
              return std::isnan(value) ? 1e9 : double{value};
            };
            return descending ? rank(a) > rank(b) : rank(a) < rank(b);
          });
          for (std::size_t j = 0; j < k; ++j) {
            ASSERT_EQ(indices[r * k + j], expected[j]) << n << ", " << k << ": " << j;
            const float value = x[r * n + static_cast<std::size_t>(expected[j])];
            EXPECT_THAT(values[r * k + j], ::testing::NanSensitiveFloatEq(value));
          }
        }
      }
}

TEST(CudaKernels, Updates) {
  constexpr std::size_t n = 70;
  const auto start = floats(n), gradient = floats(n, 1, 2);
  const double rate = 0.1, scale = 0.5;
  for (const testing::UpdateRow& row : testing::update_rows())
    visit_update_rule(row.rule, [&]<class Rule>(Rule, const auto& options) {
      SCOPED_TRACE(row.name);
      std::vector<std::vector<float>> state{start};
      for (const UpdateSlot& slot : update_slots(row.rule))
        state.emplace_back(n, static_cast<float>(slot.start));
      Values<float*, 1 + Rule::kSlots> arrays{};
      for (std::size_t k = 0; k < state.size(); ++k) arrays.of[k] = state[k].data();
      std::vector<testing::Doubles> expected;
      for (const auto& x : state) expected.emplace_back(x.begin(), x.end());
      testing::Doubles scaled(gradient.begin(), gradient.end());
      for (double& g : scaled) g *= scale;
      for (int t = 1; t <= 3; ++t) {
        const double number = t;
        const UpdateNumbers numbers{&rate, &number, &scale, 0.01};
        double partial[2 * 3], squares[2];
        if constexpr (kMeasures<Rule>) {
          run(measure_kernel<Rule, float>, 3, arrays, gradient.data(), numbers, options, partial,
              n);
          run(add_measures_kernel<double>, 1, partial, squares, 3);
        }
        run(update_kernel<Rule, float>, 2, arrays, gradient.data(), numbers, options, squares, n);
        testing::update_by_formula(row, expected, scaled, rate, t, 0.01);
      }
      for (std::size_t k = 0; k < state.size(); ++k)
        for (std::size_t i = 0; i < n; ++i)
          EXPECT_NEAR(state[k][i], expected[k][i], 1e-5 * (1 + std::abs(expected[k][i])));
    });
}

// ---- windows

// Two images of 5 x 6, 4 channels in 2 groups, 6 channels out; strides, dilation and padding differ.
const Convolution kConvolution{.batch = 2,
                               .in_h = 5,
                               .in_w = 6,
                               .in_c = 4,
                               .out_h = 3,
                               .out_w = 6,
                               .out_c = 6,
                               .kernel_h = 3,
                               .kernel_w = 2,
                               .stride_h = 2,
                               .stride_w = 1,
                               .dilation_h = 1,
                               .dilation_w = 2,
                               .pad_top = 1,
                               .pad_bottom = 1,
                               .pad_left = 1,
                               .pad_right = 1,
                               .groups = 2};
// The same of three axes: 3 planes, of which the kernels see 2 at distance 2 and step by 1.
Convolution with_depth() {
  Convolution c = kConvolution;
  c.axes = 3;
  c.in_d = c.out_d = 3;
  c.kernel_d = c.dilation_d = 2;
  c.pad_front = c.pad_back = 1;
  return c;
}

// Calls f(offset in x, in w, in y) for every product of the convolution.
template <class F>
void for_each_product(const Convolution& c, F&& f) {
  const Index in = c.in_c / c.groups, out = c.out_c / c.groups;
  for (Index plane = 0; plane < c.batch * c.out_d * c.kernel_d; ++plane) {
    const Index e = plane % c.kernel_d,
                n = plane / c.kernel_d;  // n: images and planes of the result
    const Index depth = n % c.out_d * c.stride_d + e * c.dilation_d - c.pad_front;
    if (depth < 0 || depth >= c.in_d) continue;
    const Index image = n / c.out_d * c.in_d + depth;
    for (Index r = 0; r < c.out_h; ++r)
      for (Index s = 0; s < c.out_w; ++s)
        for (Index o = 0; o < c.out_c; ++o)
          for (Index a = 0; a < c.kernel_h; ++a)
            for (Index b = 0; b < c.kernel_w; ++b) {
              const Index row = r * c.stride_h + a * c.dilation_h - c.pad_top;
              const Index column = s * c.stride_w + b * c.dilation_w - c.pad_left;
              if (row < 0 || row >= c.in_h || column < 0 || column >= c.in_w) continue;
              const Index tap = (e * c.kernel_h + a) * c.kernel_w + b;
              for (Index k = 0; k < in; ++k)
                f(static_cast<std::size_t>(((image * c.in_h + row) * c.in_w + column) * c.in_c +
                                           o / out * in + k),
                  static_cast<std::size_t>((tap * in + k) * c.out_c + o),
                  static_cast<std::size_t>(((n * c.out_h + r) * c.out_w + s) * c.out_c + o));
            }
  }
}

void expect_convolution(const Convolution& c) {
  const std::size_t nx = static_cast<std::size_t>(c.batch * c.in_pixels() * c.in_c),
                    nw = static_cast<std::size_t>(c.taps() * c.in_c / c.groups * c.out_c),
                    ny = static_cast<std::size_t>(c.batch * c.out_pixels() * c.out_c);
  const auto x = floats(nx), w = floats(nw, 1, 2), bias = floats(6, 1, 3), dy = floats(ny, 1, 4);
  std::vector<float> y(ny), relu(ny), dx(nx), dw(nw);
  run(convolve_kernel<float>, 3, c, x.data(), w.data(), bias.data(), false, y.data(), ny);
  run(convolve_kernel<float>, 3, c, x.data(), w.data(), static_cast<const float*>(nullptr), true,
      relu.data(), ny);
  run(convolve_input_gradient_kernel<float>, 3, c, dy.data(), w.data(), dx.data(), nx);
  run(convolve_weight_gradient_kernel<float>, 3, c, x.data(), dy.data(), dw.data(), nw);
  std::vector<double> expected_y(ny), expected_dx(nx), expected_dw(nw);
  for_each_product(c, [&](std::size_t i, std::size_t k, std::size_t o) {
    expected_y[o] += double{x[i]} * w[k];
    expected_dx[i] += double{dy[o]} * w[k];
    expected_dw[k] += double{dy[o]} * x[i];
  });
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], expected_y[i] + bias[i % 6], 1e-5);
    EXPECT_NEAR(relu[i], std::max(expected_y[i], 0.0), 1e-5);
  }
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], expected_dx[i], 1e-5);
  for (std::size_t i = 0; i < dw.size(); ++i) EXPECT_NEAR(dw[i], expected_dw[i], 2e-5);
}

TEST(CudaKernels, ConvolutionAndItsGradients) {
  expect_convolution(kConvolution);
  expect_convolution(with_depth());
}

TEST(CudaKernels, PoolingAndItsGradients) {
  // [1, 4, 5, 2], windows of 3 x 2 that overlap and reach over the edge.
  const Pool pool{.batch = 1,
                  .in_h = 4,
                  .in_w = 5,
                  .out_h = 2,
                  .out_w = 3,
                  .channels = 2,
                  .window_h = 3,
                  .window_w = 2,
                  .stride_h = 2,
                  .stride_w = 2,
                  .pad_top = 1,
                  .pad_left = 0};
  const auto x = floats(40), dy = floats(12, 1, 2);
  std::vector<float> largest(12), gathered(12), mean(12), dx(40), mean_dx(40);
  std::vector<std::uint8_t> taps(12);
  run(max_pool_kernel<float, std::uint8_t>, 1, pool, x.data(), largest.data(), taps.data(), 12);
  run(pool_gather_kernel<float, std::uint8_t>, 1, pool, x.data(),
      static_cast<const std::uint8_t*>(taps.data()), gathered.data(), 12);
  run(pool_scatter_kernel<float, std::uint8_t>, 1, pool, dy.data(),
      static_cast<const std::uint8_t*>(taps.data()), dx.data(), 40);
  run(mean_pool_kernel<float>, 1, pool, x.data(), mean.data(), 12);
  run(mean_pool_gradient_kernel<float>, 1, pool, dy.data(), mean_dx.data(), 40);
  std::vector<double> expected_dx(40), expected_mean_dx(40);
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t s = 0; s < 3; ++s)
      for (std::size_t c = 0; c < 2; ++c) {
        const std::size_t to = (r * 3 + s) * 2 + c;
        std::vector<std::size_t> inside;
        std::size_t best = 0;
        for (std::size_t a = 0; a < 3; ++a)
          for (std::size_t b = 0; b < 2; ++b) {
            const std::size_t row = r * 2 + a, column = s * 2 + b;  // one row of padding above
            if (row < 1 || row > 4 || column > 4) continue;
            const std::size_t at = ((row - 1) * 5 + column) * 2 + c;
            if (inside.empty() || x[at] > x[best]) best = at;
            inside.push_back(at);
          }
        double sum = 0;
        for (const std::size_t at : inside) {
          sum += x[at];
          expected_mean_dx[at] += dy[to] / static_cast<double>(inside.size());
        }
        expected_dx[best] += dy[to];
        EXPECT_EQ(largest[to], x[best]);
        EXPECT_EQ(gathered[to], x[best]);
        EXPECT_NEAR(mean[to], sum / static_cast<double>(inside.size()), 1e-6);
      }
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_NEAR(dx[i], expected_dx[i], 1e-6);
    EXPECT_NEAR(mean_dx[i], expected_mean_dx[i], 1e-6);
  }
}

// ---- the emulator itself

__global__ void reverse_kernel(int* y, bool synchronized) {
  LOCKSTEP_SHARED(int, shared, kBlock);
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (synchronized) __syncthreads();
  y[threadIdx.x] = shared[kBlock - 1 - static_cast<int>(threadIdx.x)];
}

TEST(CudaEmulator, ShowsAMissingBarrier) {
  int wrong = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    int y[kBlock];
    emulator::run(reverse_kernel, 1, kBlock, seed, y, true);
    for (int i = 0; i < kBlock; ++i) ASSERT_EQ(y[i], kBlock - 1 - i);
    emulator::run(reverse_kernel, 1, kBlock, seed, y, false);
    bool right = true;
    for (int i = 0; i < kBlock; ++i) right = right && y[i] == kBlock - 1 - i;
    wrong += !right;
  }
  EXPECT_EQ(wrong, 20);
}

}  // namespace
}  // namespace lockstep::cuda

#endif
