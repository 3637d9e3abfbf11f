// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include <cstring>

#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::vec;

// An arena of f32 whose ranges are handed out by source, filled with a value that no gradient has.
class Arena {
 public:
  explicit Arena(std::vector<std::int64_t> counts) {
    for (const std::int64_t count : counts) {
      offsets_.push_back(size_);
      bytes_.push_back(static_cast<std::size_t>(count) * sizeof(float));
      size_ += 64 + bytes_.back() / 64 * 64;
    }
    buffer_ = Buffer::allocate({}, size_);
    std::memset(buffer_.data(), 0x7f, size_);
  }
  Buffer place(std::size_t i) const { return buffer_.slice(offsets_[i], bytes_[i]); }

 private:
  std::size_t size_ = 0;
  std::vector<std::size_t> offsets_, bytes_;
  Buffer buffer_;
};

TEST(Placement, TheGradientIsWrittenToItsRange) {
  const Tensor a = vec({1, 2, 3}), b = vec({4, 5, 6, 7});
  const Arena arena({3, 4});
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const auto g = tape.gradient(sum(a * 2) + sum(square(b)), {a, b},
                               {.place = [&](std::size_t i) { return arena.place(i); }});
  EXPECT_THAT(g[0], holds({2, 2, 2}));
  EXPECT_THAT(g[1], holds({8, 10, 12, 14}));
  EXPECT_EQ(g[0].raw_data(), arena.place(0).data());
  EXPECT_EQ(g[1].raw_data(), arena.place(1).data());
}

TEST(Placement, TwoUsesAddUpInTheRange) {
  const Tensor x = vec({1, 2, 3});
  const Arena arena({3});
  GradientTape tape;
  tape.watch(x);
  const Tensor g = tape.gradient(sum(x * 10) + sum(square(x)), {x},
                                 {.place = [&](std::size_t i) { return arena.place(i); }})[0];
  EXPECT_THAT(g, holds({12, 14, 16}));
  EXPECT_EQ(g.raw_data(), arena.place(0).data());
}

TEST(Placement, OneValueAsBothArguments) {
  const Tensor x = vec({1, 2, 3});
  const Arena arena({3});
  GradientTape tape;
  tape.watch(x);
  const Tensor g =
      tape.gradient(x * x, {x}, {.place = [&](std::size_t i) { return arena.place(i); }})[0];
  EXPECT_THAT(g, holds({2, 4, 6}));
  EXPECT_EQ(g.raw_data(), arena.place(0).data());
}

TEST(Placement, IsAskedForOncePerSource) {
  const Tensor x = vec({1, 2}), y = vec({3, 4});
  const Arena arena({2, 2});
  std::vector<std::size_t> asked;
  GradientTape tape;
  tape.watch(x);
  tape.watch(y);
  tape.gradient(x * y + x * x + x, {x, y}, {.place = [&](std::size_t i) {
                  asked.push_back(i);
                  return arena.place(i);
                }});
  EXPECT_THAT(asked, ::testing::UnorderedElementsAre(0, 1));
}

TEST(Placement, AWeightGradientOfAMatrixProduct) {
  const Tensor x(Shape{2, 2}, {1.0f, 2.0f, 3.0f, 4.0f}), w = ones({2, 3}), bias = zeros({3});
  const Arena arena({6, 3});
  GradientTape tape;
  tape.watch(w);
  tape.watch(bias);
  const auto g = tape.gradient(dense(x, w, bias), {w, bias},
                               {.place = [&](std::size_t i) { return arena.place(i); }});
  EXPECT_THAT(g[0], holds({4, 4, 4, 6, 6, 6}));
  EXPECT_THAT(g[1], holds({2, 2, 2}));
  EXPECT_EQ(g[0].raw_data(), arena.place(0).data());
  EXPECT_EQ(g[1].raw_data(), arena.place(1).data());
}

TEST(Placement, AnEmptyBufferMeansAnywhere) {
  const Tensor x = vec({1, 2, 3});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(square(x), {x}, {.place = [](std::size_t) { return Buffer(); }})[0],
              holds({2, 4, 6}));
}

TEST(Placement, AGradientThatStandsElsewhereIsStillRight) {
  // y = x hands dy on: nothing is computed that could be written to the range.
  const Tensor x = vec({1, 2, 3});
  const Arena arena({3});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x.with_identity(new_tensor_key(), false);
  record("identity", {&x}, y,
         [](const Tensor& dy, GradientSink& sink) { sink.put(0, [&] { return dy; }); });
  const Tensor g =
      tape.gradient(y, {x}, {.place = [&](std::size_t i) { return arena.place(i); }})[0];
  EXPECT_THAT(g, holds({1, 1, 1}));
}

TEST(Placement, IntermediateSourcesKeepTheirGradientForLaterRules) {
  const Tensor x = vec({1, 2});
  const Arena arena({2, 2});
  GradientTape tape;
  tape.watch(x);
  const Tensor h = square(x);
  const auto g =
      tape.gradient(square(h), {h, x}, {.place = [&](std::size_t i) { return arena.place(i); }});
  EXPECT_THAT(g[0], holds({2, 8}));
  EXPECT_THAT(g[1], holds({4, 32}));
}

}  // namespace
}  // namespace lockstep
