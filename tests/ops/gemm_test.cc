// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.h"

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/threads.h>

#include <thread>

#include "ops/every_isa.h"
#include "support/values.h"

namespace lockstep {
namespace {

using testing::Noise;
using testing::under_each_isa;

// Small integers, so that all sums are exact in every element type and can be compared as such.
template <class T>
std::vector<T> small_integers(std::int64_t count, std::uint64_t seed) {
  Noise noise(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values)
    value = static_cast<T>(static_cast<float>(static_cast<int>(4 * noise.next())));
  return values;
}

template <class T>
double number(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<float>(x);
}

// The definition, in double.
template <class T>
std::vector<double> reference(const Gemm& g, const std::vector<T>& a, const std::vector<T>& b,
                              const std::vector<T>& bias, const std::vector<T>& c) {
  std::vector<double> result(c.size());
  std::transform(c.begin(), c.end(), result.begin(), number<T>);
  const auto at = [](const std::vector<T>& x, std::int64_t i) {
    return number(x[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t i = 0; i < g.batch; ++i)
    for (std::int64_t r = 0; r < g.m; ++r)
      for (std::int64_t s = 0; s < g.n; ++s) {
        double sum = g.bias ? at(bias, s) : 0;
        for (std::int64_t t = 0; t < g.k; ++t)
          sum += at(a, i * g.stride_a + (g.transpose_a ? t * g.row_a + r : r * g.row_a + t)) *
                 at(b, i * g.stride_b + (g.transpose_b ? s * g.row_b + t : t * g.row_b + s));
        double& element = result[static_cast<std::size_t>(i * g.stride_c + r * g.row_c + s)];
        if (g.accumulate) sum += element;
        element = g.relu ? std::max(sum, 0.0) : sum;
      }
  return result;
}

using Compute = void (*)(const Gemm&, DType, Device, const void*, const void*, const void*, void*);

template <class T>
void expect_product(Compute compute, const Gemm& g) {
  const std::int64_t extent_a = g.batch * g.stride_a + g.row_a * (g.transpose_a ? g.k : g.m);
  const std::int64_t extent_b = g.batch * g.stride_b + g.row_b * (g.transpose_b ? g.n : g.k);
  const auto a = small_integers<T>(extent_a, 1);
  const auto b = small_integers<T>(extent_b, 2);
  const auto bias = small_integers<T>(g.n, 3);
  auto c = small_integers<T>(g.batch * g.stride_c + g.m * g.row_c, 4);
  const std::vector<double> expected = reference(g, a, b, bias, c);
  compute(g, dtype_of<T>, Device{}, a.data(), b.data(), g.bias ? bias.data() : nullptr, c.data());
  for (std::size_t i = 0; i < c.size(); ++i)
    ASSERT_EQ(number(c[i]), expected[i])
        << name_of(dtype_of<T>) << " element " << i << " of batch " << g.batch << ", " << g.m << "x"
        << g.n << "x" << g.k << " transposed " << g.transpose_a << g.transpose_b << " bias "
        << g.bias << " relu " << g.relu << " accumulate " << g.accumulate;
}

// Extents around the widths of registers and blocks, and every combination of flags.
std::vector<Gemm> cases() {
  std::vector<Gemm> all;
  const std::int64_t extents[][3] = {{1, 1, 1},    {1, 17, 5},   {16, 1, 33},  {7, 5, 0},
                                     {33, 65, 31}, {48, 32, 64}, {130, 70, 19}};
  for (const auto& [m, n, k] : extents)
    for (int flags = 0; flags < 16; ++flags)
      all.push_back({.m = m,
                     .n = n,
                     .k = k,
                     .transpose_a = (flags & 1) != 0,
                     .transpose_b = (flags & 2) != 0,
                     .bias = (flags & 4) != 0,
                     .relu = (flags & 8) != 0});
  return all;
}

template <class T>
void expect_all_cases(Compute compute) {
  for (const Gemm& gemm : cases()) expect_product<T>(compute, gemm);
}

TEST(Gemm, MultipliesEveryElementType) {
  expect_all_cases<float>(cpu::compute);
  expect_all_cases<double>(cpu::compute);
  expect_all_cases<bfloat16>(cpu::compute);
  expect_all_cases<half>(cpu::compute);
  expect_all_cases<std::int32_t>(cpu::compute);
  expect_all_cases<std::int64_t>(cpu::compute);
}

TEST(Gemm, EigenMultipliesUnderEachIsa) {
  under_each_isa([] {
    expect_all_cases<float>(cpu::compute_with_eigen);
    expect_all_cases<double>(cpu::compute_with_eigen);
    expect_all_cases<std::int32_t>(cpu::compute_with_eigen);
    expect_all_cases<std::int64_t>(cpu::compute_with_eigen);
  });
}

TEST(Gemm, WalksBatchesAndRowsWithGaps) {
  for (const Compute compute : {Compute(cpu::compute), Compute(cpu::compute_with_eigen)}) {
    const Gemm batch{.batch = 5, .m = 9, .n = 17, .k = 6};
    expect_product<float>(compute, batch);
    expect_product<double>(compute, batch);
    // One matrix a, and one matrix b, for the whole batch.
    expect_product<float>(compute, {.batch = 3, .m = 4, .n = 5, .k = 6, .stride_a = 0});
    expect_product<float>(compute, {.batch = 3, .m = 4, .n = 5, .k = 6, .stride_b = 0});
    const Gemm gaps{.m = 6, .n = 10, .k = 7, .row_a = 9, .row_b = 16, .row_c = 12};
    expect_product<float>(compute, gaps);
    expect_product<double>(compute, gaps);
    const Gemm accumulating{.m = 6, .n = 10, .k = 7, .accumulate = true, .row_c = 12};
    expect_product<float>(compute, accumulating);
    expect_product<double>(compute, accumulating);
  }
}

TEST(Gemm, GivesTheSameWithMoreThreads) {
  set_intra_op_threads(3);
  expect_all_cases<float>(cpu::compute);
  expect_all_cases<double>(cpu::compute);
  expect_product<double>(cpu::compute, {.batch = 7, .m = 5, .n = 6, .k = 4});
  set_intra_op_threads(1);
}

// Compiled kernels are kept per thread, up to a number of them.
TEST(Gemm, ComputesMoreShapesThanAreKept) {
  for (std::int64_t m = 1; m <= 530; ++m)
    expect_product<float>(cpu::compute, {.m = m, .n = 2, .k = 3});
  expect_product<float>(cpu::compute, {.m = 1, .n = 2, .k = 3});
}

TEST(Gemm, RunsOnSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      expect_all_cases<float>(cpu::compute);
      expect_all_cases<double>(cpu::compute);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Gemm, LeavesTheResultOfNothingAlone) {
  float untouched = 7;
  for (const Gemm& empty : {Gemm{.m = 0, .n = 3, .k = 2}, Gemm{.m = 3, .n = 0, .k = 2},
                            Gemm{.batch = 0, .m = 3, .n = 3, .k = 2}})
    cpu::compute(empty, DType::f32, Device{}, nullptr, nullptr, nullptr, &untouched);
  EXPECT_EQ(untouched, 7);
}

}  // namespace
}  // namespace lockstep
