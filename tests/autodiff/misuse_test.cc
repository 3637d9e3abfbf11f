// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "support/errors.h"

namespace lockstep {
namespace {

using testing::throws;

float gradient_of_square(const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(mul(x, x), {x})[0].item<float>();
}

TEST(TapeMisuse, AnotherThreadIsRefused) {
  const Tensor x(3.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = mul(x, x);
  std::thread([&] {
    EXPECT_THAT([&] { static_cast<void>(tape.gradient(y, {x})); },
                throws<FailedPrecondition>("[GradientTape::gradient]", "another thread"));
    EXPECT_THAT([&] { tape.watch(x); }, throws<FailedPrecondition>("[GradientTape::watch]"));
  }).join();
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 6);
}

TEST(TapeMisuse, UndefinedTensorsAreNamedByCallAndLine) {
  const Tensor x(3.0f);
  GradientTape tape({.persistent = true});
  EXPECT_THAT([&] { tape.watch(Tensor()); },
              throws<InvalidArgument>("[GradientTape::watch]", "misuse_test.cc"));
  tape.watch(x);
  const Tensor y = mul(x, x);
  EXPECT_THAT([&] { static_cast<void>(tape.gradient(Tensor(), {x})); },
              throws<InvalidArgument>("[GradientTape::gradient]", "target", "misuse_test.cc"));
  EXPECT_THAT(
      [&] {
        static_cast<void>(tape.gradient(y, {x, Tensor()}));
      },
      throws<InvalidArgument>("[GradientTape::gradient]", "number 1", "misuse_test.cc"));
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 6);
}

TEST(TapeMisuse, DestructionByAnotherThreadLeavesTheOwnUsable) {
  const Tensor x(3.0f);
  auto tape = std::make_unique<GradientTape>();
  std::thread([&] { tape.reset(); }).join();
  EXPECT_EQ(gradient_of_square(x), 6);
}

TEST(TapeMisuse, DestructionOutOfOrderLeavesTheInnerTapeUsable) {
  const Tensor x(3.0f);
  auto outer = std::make_unique<GradientTape>();
  std::optional<GradientTape> inner(std::in_place);
  inner->watch(x);
  outer.reset();
  EXPECT_EQ(inner->gradient(mul(x, x), {x})[0].item<float>(), 6);
  inner.reset();
  EXPECT_EQ(gradient_of_square(x), 6);
}

}  // namespace
}  // namespace lockstep
