// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/random.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "ops/every_isa.h"
#include "ops/random_kernels.h"
#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT
using ::testing::ElementsAre;

// Runs f with a random state of its own and gives what it returns.
template <class F>
auto with_state(RandomState state, F&& f) {
  const RandomScope scope(state);
  return f();
}

std::vector<double> doubles(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

// The vectors that come with Random123: counter and key of zeros, of ones, and of digits of pi.
TEST(Philox, GivesTheKnownAnswers) {
  const IsaGuard guard;
  for (const Isa isa : runnable_isas()) {
    set_isa(isa);
    std::uint32_t y[4];
    random_kernels().words({.seed = 0, .stream = 0, .counter = 0}, y, 1);
    EXPECT_THAT(y, ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
    random_kernels().words({.seed = ~0ull, .stream = ~0ull, .counter = ~0ull}, y, 1);
    EXPECT_THAT(y, ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
    random_kernels().words(
        {.seed = 0x299f31d0a4093822, .stream = 0x0370734413198a2e, .counter = 0x85a308d3243f6a88},
        y, 1);
    EXPECT_THAT(y, ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
  }
}

// The largest distance between the distribution of `values` and `cdf` (Kolmogorov and Smirnov),
// times the square root of the count: above 1.95 with probability 0.001.
double distance(std::vector<double> values, double (*cdf)(double)) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    worst = std::max({worst, std::abs(p - static_cast<double>(i) / n),
                      std::abs(p - static_cast<double>(i + 1) / n)});
  }
  return worst * std::sqrt(n);
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(const std::vector<double>& values) {
  Moments result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  for (const double value : values)
    result.variance += (value - result.mean) * (value - result.mean) / n;
  return result;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

constexpr std::int64_t kMany = 100000;

TEST(Uniform, IsUniformInItsRange) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto values =
        with_state({.seed = 1}, [&] { return doubles(uniform({kMany}, 0, 1, dtype)); });
    EXPECT_LT(distance(values, [](double x) { return std::clamp(x, 0.0, 1.0); }), 1.95)
        << name_of(dtype);
    EXPECT_NEAR(moments(values).mean, 0.5, 4e-3);
    EXPECT_NEAR(moments(values).variance, 1.0 / 12, 1e-3);
  }
}

TEST(Uniform, NeverReachesItsUpperBound) {
  // So narrow a range that almost all sums round to a bound.
  const float low = 1.0f, high = std::nextafter(1.0f, 2.0f);
  for (const float value : with_state({}, [&] {
         return uniform({1000}, static_cast<double>(low), static_cast<double>(high))
             .to_vector<float>();
       }))
    EXPECT_EQ(value, low);
  for (const double value : with_state({}, [] { return doubles(uniform({kMany}, -3, 5)); })) {
    EXPECT_GE(value, -3);
    EXPECT_LT(value, 5);
  }
  EXPECT_THAT(with_state({}, [] { return uniform({2}, 4, 4); }), holds<float>({4, 4}));
}

TEST(Uniform, ReachesAcrossAlmostAllOfItsDType) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double most = dtype == DType::f64 ? 8e307 : 1.6e38;
    const std::vector<double> draws = doubles(uniform({1000}, -most, most, dtype));
    const auto [least, largest] = std::minmax_element(draws.begin(), draws.end());
    EXPECT_GE(*least, -most);
    EXPECT_LT(*least, -0.9 * most);
    EXPECT_LT(*largest, most);
    EXPECT_GT(*largest, 0.9 * most);
  }
}

TEST(Normal, IsNormal) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto values =
        with_state({.seed = 2}, [&] { return doubles(normal({kMany}, 0, 1, dtype)); });
    EXPECT_LT(distance(values, normal_cdf), 1.95) << name_of(dtype);
    EXPECT_NEAR(moments(values).mean, 0, 0.013);
    EXPECT_NEAR(moments(values).variance, 1, 0.018);
  }
  const auto shifted = with_state({}, [] { return doubles(normal({kMany}, 10, 0.5)); });
  EXPECT_NEAR(moments(shifted).mean, 10, 0.007);
  EXPECT_NEAR(moments(shifted).variance, 0.25, 0.005);
}

// Both numbers of a Box-Muller pair come from the same two words; they must not be correlated.
TEST(Normal, NeighboursAreIndependent) {
  const auto values = with_state({.seed = 3}, [] { return doubles(normal({kMany})); });
  for (const std::size_t lag : {1u, 2u, 3u, 4u}) {
    double product = 0;
    for (std::size_t i = 0; i + lag < values.size(); ++i) product += values[i] * values[i + lag];
    EXPECT_NEAR(product / kMany, 0, 0.013) << lag;
  }
}

TEST(TruncatedNormal, StaysWithinTwoDeviations) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto values =
        with_state({.seed = 4}, [&] { return doubles(truncated_normal({kMany}, 0, 1, dtype)); });
    for (const double value : values) ASSERT_LE(std::abs(value), 2.0);
    EXPECT_LT(distance(values,
                       [](double x) {
                         return (normal_cdf(x) - normal_cdf(-2)) / (normal_cdf(2) - normal_cdf(-2));
                       }),
              1.95)
        << name_of(dtype);
  }
  const auto shifted = with_state({}, [] { return doubles(truncated_normal({kMany}, 5, 3)); });
  EXPECT_NEAR(moments(shifted).mean, 5, 0.04);
  EXPECT_GE(*std::min_element(shifted.begin(), shifted.end()), -1);
}

TEST(Bernoulli, IsTrueWithItsProbability) {
  for (const double p : {0.0, 0.1, 0.5, 1.0})
    for (const DType dtype : {DType::boolean, DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const auto values =
          with_state({.seed = 5}, [&] { return doubles(bernoulli({kMany}, p, dtype)); });
      EXPECT_NEAR(moments(values).mean, p, p * (1 - p) * 0.02 + 1e-9) << name_of(dtype);
      for (const double value : values) ASSERT_TRUE(value == 0 || value == 1);
    }
}

TEST(Permutation, HoldsEveryNumberOnce) {
  for (const std::int64_t n : {0, 1, 2, 5, 3000}) {
    std::vector<std::int64_t> values =
        with_state({.seed = 6}, [&] { return permutation(n).to_vector<std::int64_t>(); });
    std::sort(values.begin(), values.end());
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i);
  }
}

// As keys increase strictly, no number comes twice. Sizes of one and two pairs of digits.
TEST(Permutation, IsTheOrderOfItsRandomBits) {
  const RandomState state{.seed = 21, .stream = 22, .counter = 23};
  for (const std::size_t n : {2, 1000, 65536, 100001, 1 << 24}) {
    std::vector<std::uint32_t> words((n + 1) / 2 * 4);
    random_kernels().words({state.seed, state.stream, state.counter}, words.data(),
                           static_cast<std::int64_t>(words.size() / 4));
    const auto key = [&](std::int64_t number) {
      const auto i = static_cast<std::size_t>(number);
      return ((words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32) & ~(std::bit_ceil(n) - 1)) | i;
    };
    const Tensor order = with_state(state, [&] { return permutation(static_cast<int>(n)); });
    const auto y = order.data<std::int64_t>();
    ASSERT_EQ(y.size(), n);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(y[i] >= 0 && static_cast<std::size_t>(y[i]) < n) << y[i];
      if (i > 0) {
        ASSERT_LT(key(y[i - 1]), key(y[i])) << i << " of " << n;
      }
    }
  }
}

TEST(Permutation, AllOrdersAreEquallyLikely) {
  RandomState state{.seed = 7};
  const RandomScope scope(state);
  std::map<std::vector<std::int64_t>, int> counts;
  for (int i = 0; i < 12000; ++i) ++counts[permutation(3).to_vector<std::int64_t>()];
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 2000, 165);  // 4 deviations
}

TEST(UniformInt, IsUniformInItsRange) {
  for (const DType dtype : {DType::i32, DType::i64, DType::u8}) {
    std::vector<int> counts(7);
    for (const double value :
         with_state({.seed = 8}, [&] { return doubles(uniform_int({70000}, 3, 10, dtype)); })) {
      ASSERT_GE(value, 3);
      ASSERT_LT(value, 10);
      ++counts[static_cast<std::size_t>(value) - 3];
    }
    for (const int count : counts) EXPECT_NEAR(count, 10000, 370) << name_of(dtype);
  }
  // Three quarters of all 64-bit numbers: by 32-bit words, or modulo, a third came twice as often.
  constexpr std::int64_t kQuarter = std::int64_t{1} << 62;
  int lower = 0;
  const auto wide = with_state({.seed = 9}, [] {
    return uniform_int({30000}, -2 * kQuarter, kQuarter).to_vector<std::int64_t>();
  });
  for (const std::int64_t value : wide) {
    ASSERT_LT(value, kQuarter);
    lower += value < -kQuarter;
  }
  EXPECT_NEAR(lower, 10000, 330);
}

// Philox's first words at state 0 are 6627e8d5 e169c58d bc57ac4c 9b00dbd8, the lower half first.
TEST(UniformInt, ScalesTheWords) {
  const auto fraction = [](std::uint64_t word) { return static_cast<double>(word) * 0x1p-64; };
  const double first = fraction(0xe169c58d6627e8d5), second = fraction(0x9b00dbd8bc57ac4c);
  const auto values = with_state({}, [] { return uniform_int({2}, -10, 1000000); });
  EXPECT_THAT(values, holds<std::int64_t>({-10 + static_cast<std::int64_t>(first * 1000010),
                                           -10 + static_cast<std::int64_t>(second * 1000010)}));
}

TEST(Categorical, DrawsClassesWithTheirProbabilities) {
  const double p[2][4] = {{0.1, 0.2, 0.3, 0.4}, {0.97, 0.02, 0, 0.01}};
  std::vector<float> logits;
  for (const auto& row : p)
    for (const double each : row) logits.push_back(static_cast<float>(std::log(each) + 5));
  const Tensor x(Shape{2, 4}, std::span<const float>(logits));
  constexpr std::int64_t kDraws = 40000;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor y = with_state({.seed = 10}, [&] { return categorical(cast(x, dtype), kDraws); });
    ASSERT_EQ(y.shape(), (Shape{2, kDraws}));
    ASSERT_EQ(y.dtype(), DType::i64);
    int counts[2][4] = {};
    for (std::size_t i = 0; i < 2 * kDraws; ++i)
      ++counts[i / kDraws][static_cast<std::size_t>(y.data<std::int64_t>()[i])];
    // 4 deviations, and what 8 bits round a probability by.
    const double rounding = is_floating(dtype) && size_of(dtype) == 2 ? 0.03 : 0;
    for (int row = 0; row < 2; ++row)
      for (int k = 0; k < 4; ++k)
        EXPECT_NEAR(counts[row][k], kDraws * p[row][k],
                    4 * std::sqrt(kDraws * p[row][k]) + rounding * kDraws * p[row][k])
            << name_of(dtype) << row << k;
  }
}

TEST(Categorical, TakesTheClassAtWhichTheRunningSumExceedsTheDraw) {
  const Tensor x = normal({7, 300});
  const Tensor y = with_state({.seed = 12}, [&] { return categorical(x, 50); });
  const Tensor draws = with_state({.seed = 12}, [] { return uniform({7, 50}); });
  int others = 0;
  for (std::size_t i = 0; i < 7 * 50; ++i) {
    const float* const logits = x.data<float>().data() + i / 50 * 300;
    double whole = 0, sum = 0;
    for (int k = 0; k < 300; ++k) whole += std::exp(static_cast<double>(logits[k]));
    int expected = 0;
    for (sum = std::exp(static_cast<double>(logits[0]));
         sum <= whole * static_cast<double>(draws.data<float>()[i]);
         sum += std::exp(static_cast<double>(logits[expected])))
      ++expected;
    others += y.data<std::int64_t>()[i] != expected;
  }
  EXPECT_LE(others, 1);  // where a draw is closer to a sum than f32 tells
}

TEST(Categorical, NeverDrawsWhatIsImpossible) {
  std::vector<float> logits(1000, -INFINITY);
  logits[700] = -1e30f;
  const Tensor x(Shape{1, 1000}, std::span<const float>(logits));
  EXPECT_THAT(categorical(x, 3, DType::i32), holds<std::int32_t>({700, 700, 700}));
  EXPECT_EQ(categorical(zeros({0, 3}), 2).shape(), (Shape{0, 2}));
  EXPECT_EQ(categorical(zeros({2, 3}), 0).shape(), (Shape{2, 0}));
  EXPECT_THAT(categorical(zeros({1, 1}), 4), holds<std::int64_t>({0, 0, 0, 0}));
}

TEST(Categorical, GivesTheLastClassOfRowsThatSayNothing) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x({4, 3}, {0.0f, kNan, 1.0f, kNan, 0.0f, 1.0f, 1.0f, INFINITY, 0.0f, -INFINITY,
                          -INFINITY, -INFINITY});
  EXPECT_THAT(categorical(x, 2), holds<std::int64_t>({2, 2, 2, 2, 2, 2, 2, 2}));
}

TEST(Shuffle, MovesWholeRows) {
  const Tensor x(Shape{3, 2}, {1, 2, 3, 4, 5, 6});
  const auto y = with_state({.seed = 13}, [&] { return shuffle(x); });
  const auto order = with_state({.seed = 13}, [] { return permutation(3); });
  for (std::size_t i = 0; i < 3; ++i) {
    const auto from = static_cast<std::size_t>(order.data<std::int64_t>()[i]);
    EXPECT_EQ(y.data<std::int32_t>()[2 * i], x.data<std::int32_t>()[2 * from]);
    EXPECT_EQ(y.data<std::int32_t>()[2 * i + 1], x.data<std::int32_t>()[2 * from + 1]);
  }
  EXPECT_EQ(shuffle(Tensor(Shape{0, 2}, std::initializer_list<float>{})).shape(), (Shape{0, 2}));
}

TEST(Random, TheSameStateGivesTheSameBitsOnEveryIsa) {
  const IsaGuard guard;
  std::vector<std::vector<float>> results;
  for (const Isa isa : runnable_isas()) {
    set_isa(isa);
    results.push_back(with_state({.seed = 8, .stream = 9, .counter = 10}, [] {
      std::vector<float> all;
      for (const auto& x : {uniform({1001}, -1, 2), normal({1001}), truncated_normal({1001})}) {
        const auto values = x.to_vector<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    }));
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Random, CountersAdvanceByTheBlocksUsed) {
  RandomState state{.seed = 11};
  const RandomScope scope(state);
  const auto advance = [&](auto&& draw) {
    const std::uint64_t before = state.counter;
    draw();
    return state.counter - before;
  };
  EXPECT_EQ(advance([] { uniform({9}); }), 3u);
  EXPECT_EQ(advance([] { uniform({9}, 0, 1, DType::f64); }), 5u);
  EXPECT_EQ(advance([] { uniform({8}, 0, 1, DType::bf16); }), 2u);
  EXPECT_EQ(advance([] { normal({5}); }), 2u);
  EXPECT_EQ(advance([] { normal({5}, 0, 1, DType::f64); }), 3u);
  EXPECT_EQ(advance([] { truncated_normal({4}); }), 1u);
  EXPECT_EQ(advance([] { bernoulli({4, 4}, 0.5); }), 4u);
  EXPECT_EQ(advance([] { permutation(3); }), 2u);
  EXPECT_EQ(advance([] { uniform_int({9}, 0, 2); }), 5u);
  EXPECT_EQ(advance([] { uniform_int({9}, 0, 2, DType::u8); }), 5u);
  EXPECT_EQ(advance([] { categorical(Tensor(Shape{1, 3}, {0.0f, 1.0f, 2.0f}), 5); }), 2u);
  EXPECT_EQ(advance([] { shuffle(Tensor(Shape{3}, {1, 2, 3})); }), 2u);
  EXPECT_EQ(advance([] { uniform({0}); }), 0u);
}

// A longer draw begins with the shorter one, and drawing in two steps continues it.
TEST(Random, ElementsDependOnTheirPlaceOnly) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16})
    for (const auto op : {uniform, normal, truncated_normal}) {
      const auto draw = [&](std::int64_t n) {
        return doubles(op({n}, 0, 1, dtype, SourceLocation{}));
      };
      const auto whole = with_state({.seed = 12}, [&] { return draw(3000); });
      const auto parts = with_state({.seed = 12}, [&] {
        auto first = draw(1024);
        const auto second = draw(1976);
        first.insert(first.end(), second.begin(), second.end());
        return first;
      });
      EXPECT_EQ(whole, parts) << name_of(dtype);
    }
}

TEST(Random, SeedsAndStreamsDiffer) {
  std::set<std::vector<double>> draws;
  for (const RandomState& state :
       {RandomState{.seed = 1}, RandomState{.seed = 2}, RandomState{.stream = 1},
        RandomState{.stream = 2}, RandomState{.counter = 1}})
    draws.insert(with_state(state, [] { return doubles(uniform({8})); }));
  EXPECT_EQ(draws.size(), 5u);
}

TEST(Random, ParametersAreChecked) {
  EXPECT_THAT([] { uniform({2}, 1, 0); }, throws<InvalidArgument>("[uniform]", "1 and 0"));
  EXPECT_THAT([] { uniform({2}, 0, 1, DType::i32); }, throws<InvalidArgument>("[uniform]", "i32"));
  EXPECT_THAT([] { uniform({2}, -1e308, 1e308, DType::f64); },
              throws<InvalidArgument>("[uniform]", "overflows"));
  EXPECT_THAT([] { uniform({2}, -3e38, 3e38); }, throws<InvalidArgument>("overflows"));
  EXPECT_THAT([] { uniform({2}, 0, 1e39); }, throws<InvalidArgument>("[uniform]", "f32"));
  EXPECT_THAT([] { uniform({2}, 0, 1e5, DType::f16); }, throws<InvalidArgument>("f16"));
  EXPECT_THAT([] { normal({2}, 0, -1); }, throws<InvalidArgument>("[normal]", "-1"));
  EXPECT_THAT([] { truncated_normal({2}, NAN); }, throws<InvalidArgument>("[truncated_normal]"));
  EXPECT_THAT([] { bernoulli({2}, 1.5); }, throws<InvalidArgument>("[bernoulli]", "1.5"));
  EXPECT_THAT([] { bernoulli({2}, 0.5, DType::i32); }, throws<InvalidArgument>("i32"));
  EXPECT_THAT([] { permutation(-1); }, throws<InvalidArgument>("-1"));
  EXPECT_THAT([] { uniform_int({2}, 3, 3); }, throws<InvalidArgument>("[uniform_int]", "3 and 3"));
  EXPECT_THAT([] { uniform_int({2}, 0, 257, DType::u8); }, throws<InvalidArgument>("u8", "257"));
  EXPECT_THAT([] { uniform_int({2}, -1, 5, DType::u8); }, throws<InvalidArgument>("u8", "-1"));
  EXPECT_THAT([] { uniform_int({2}, 0, 5, DType::f32); }, throws<InvalidArgument>("f32"));
  EXPECT_THAT([] { categorical(zeros({3}), 1); }, throws<InvalidArgument>("[categorical]", "[3]"));
  EXPECT_THAT([] { categorical(zeros({3, 0}), 1); }, throws<InvalidArgument>("[3, 0]"));
  EXPECT_THAT([] { categorical(zeros({3, 2}), -1); }, throws<InvalidArgument>("-1"));
  EXPECT_THAT([] { categorical(zeros({3, 2}), 1, DType::f32); }, throws<InvalidArgument>("f32"));
  EXPECT_THAT([] { categorical(zeros({3, 2}, DType::i32), 1); }, throws<InvalidArgument>("i32"));
  EXPECT_THAT([] { shuffle(zeros({})); }, throws<InvalidArgument>("[shuffle]", "scalar"));
}

}  // namespace
}  // namespace lockstep
