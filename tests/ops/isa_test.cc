// SPDX-License-Identifier: Apache-2.0
#include "ops/isa.h"

#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include <bit>

#include "ops/every_isa.h"
#include "support/elementwise_rows.h"
#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

// The bits of a float tensor; one bit pattern for all NaNs, whose payload is not promised.
std::vector<std::uint32_t> bits(const Tensor& x) {
  std::vector<std::uint32_t> result;
  for (const float value : x.data<float>())
    result.push_back(std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value));
  return result;
}

// Runs f under every instruction set and expects the same bits from all.
template <class F>
void expect_equal_bits(const char* what, F&& f) {
  const IsaGuard guard;
  std::vector<std::uint32_t> first;
  for (const Isa isa : runnable_isas()) {
    set_isa(isa);
    const std::vector<std::uint32_t> own = bits(f());
    if (first.empty()) first = own;
    EXPECT_EQ(own, first) << what << " under " << name_of(isa);
  }
}

// Numbers of all sizes, and all that is special.
Tensor all_sizes() {
  std::vector<float> values = {0.0f,    -0.0f,   INFINITY, -INFINITY, NAN,  1e-45f,
                               -1e-40f, 3.4e38f, 1.0f,     -1.0f,     2e6f, -1e20f};
  Noise noise(1);
  for (int i = 0; i < 3000; ++i)
    values.push_back(static_cast<float>(noise.next() * std::exp2(noise.next() * 20)));
  for (int i = 0; i < 1001; ++i) values.push_back(static_cast<float>(noise.next() * 5));
  return Tensor(Shape{static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
}

TEST(Isa, UnaryOpsAndTheirGradientsGiveEqualBits) {
  const Tensor x = all_sizes();
  for (const UnaryRow& row : kUnaryRows) {
    const auto& [name, op, reference, low, high, ulps, smooth] = row;
    const auto run = op;
    expect_equal_bits(name, [&] { return run(x, {}); });
    expect_equal_bits(name, [&] {
      GradientTape tape;
      tape.watch(x);
      const Tensor dx = tape.gradient(run(x, {}), {x})[0];
      return dx.defined() ? dx : zeros({1});
    });
  }
}

TEST(Isa, BinaryOpsGiveEqualBits) {
  const Tensor x = all_sizes();
  const std::int64_t n = x.num_elements();
  const Tensor y = Noise(2).tensor<float>({n}, 3), column = Noise(3).tensor<float>({n, 1});
  for (const BinaryRow& row : kBinaryRows) {
    const auto& [name, op, reference, ulps, integers] = row;
    const auto run = op;
    expect_equal_bits(name, [&] { return run(x, y); });
    expect_equal_bits(name, [&] { return run(0.1, x); });
    expect_equal_bits(name, [&] { return run(column, vec<float>({1, 2, 3, 4, 5, 6, 7})); });
  }
}

TEST(Isa, SumsRunInOneOrder) {
  for (const std::int64_t n : {1, 15, 63, 64, 65, 127, 1000, 4095, 4096, 4097, 70001}) {
    const Tensor x = Noise(4).tensor<float>({n});
    expect_equal_bits("sum", [&] { return sum(x); });
    expect_equal_bits("mean", [&] { return mean(x); });
    expect_equal_bits("max", [&] { return max(x); });
  }
  for (const Shape& shape :
       {Shape{3, 700}, Shape{700, 3}, Shape{130, 517}, Shape{65, 64}, Shape{7, 33, 5}}) {
    const Tensor x = Noise(5).tensor<float>(shape);
    expect_equal_bits("first axis", [&] { return sum(x, {.axes = {0}}); });
    expect_equal_bits("last axis", [&] { return sum(x, {.axes = {-1}}); });
    expect_equal_bits("second axis", [&] { return sum(x, {.axes = {1}}); });
  }
}

TEST(Isa, OnlyWhatTheCpuHasCanBeChosen) {
  const IsaGuard guard;
  int runnable = 0;
  for (const Isa isa : {Isa::base, Isa::v2, Isa::v3, Isa::v4}) {
    if (supports(isa)) {
      ++runnable;
      set_isa(isa);
      EXPECT_EQ(lockstep::isa(), isa);
    } else {
      EXPECT_THAT([&] { set_isa(isa); }, throws<Unavailable>(name_of(isa)));
    }
  }
  EXPECT_GE(runnable, 1);
}

}  // namespace
}  // namespace lockstep
