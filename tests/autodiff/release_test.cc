// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/factory.h>

#include "support/values.h"

namespace lockstep {
namespace {

constexpr std::int64_t kElements = 1 << 18;  // a MiB of f32
constexpr std::int64_t kActivation = kElements * 4;
constexpr int kLayers = 8;

std::int64_t in_use() { return memory_stats({}).in_use; }

// Bytes in use when backward reaches each layer of a chain of exponentials, the last layer first.
std::vector<std::int64_t> bytes_during_backward(bool persistent) {
  std::vector<std::int64_t> bytes;
  const Tensor x = zeros({kElements});
  GradientTape tape({.persistent = persistent});
  tape.watch(x);
  Tensor h = x;
  for (int layer = 0; layer < kLayers; ++layer) {
    h = exp(h * 0.1);
    const Tensor y = h.with_identity(new_tensor_key(), false);
    record("probe", {&h}, y, [&bytes](const Tensor& dy, GradientSink& sink) {
      bytes.push_back(in_use());
      sink.put(0, [&] { return dy; });
    });
    h = y;
  }
  const Tensor target = std::exchange(h, Tensor());
  tape.gradient(target, {x});
  return bytes;
}

TEST(Release, ActivationsAreFreedWhileBackwardGoesOn) {
  const std::int64_t before = in_use();
  const auto bytes = bytes_during_backward(false);
  ASSERT_EQ(bytes.size(), kLayers);
  for (std::size_t i = 1; i < bytes.size(); ++i) EXPECT_LT(bytes[i], bytes[i - 1]) << "layer " << i;
  // All but the gradient that flows and what is held for the first layers are gone at the end.
  EXPECT_GE(bytes.front() - bytes.back(), (kLayers - 2) * kActivation);
  EXPECT_EQ(in_use(), before);
}

TEST(Release, APersistentTapeKeepsThemUntilItDies) {
  const std::int64_t before = in_use();
  const auto bytes = bytes_during_backward(true);
  EXPECT_GE(bytes.back(), before + kLayers * kActivation);
  EXPECT_EQ(in_use(), before);
}

TEST(Release, ATapeThatIsNeverAskedLetsGoToo) {
  const std::int64_t before = in_use();
  {
    const Tensor x = zeros({kElements});
    GradientTape tape;
    tape.watch(x);
    const Tensor y = exp(exp(x));
  }
  EXPECT_EQ(in_use(), before);
}

TEST(Release, NothingIsKeptOfOpsThatNobodyWatches) {
  const Tensor x = zeros({kElements});
  GradientTape tape;
  const std::int64_t before = in_use();
  Tensor y = exp(exp(exp(x)));
  EXPECT_LE(in_use(), before + kActivation + kActivation / 8);
  y = Tensor();
  EXPECT_EQ(in_use(), before);
}

TEST(Release, ASecondStepAllocatesNothingFromTheSystem) {
  const auto step = [] {
    const Tensor x = zeros({kElements});
    GradientTape tape;
    tape.watch(x);
    tape.gradient(exp(exp(x)), {x});
  };
  step();
  const std::int64_t before = memory_stats({}).system_allocations;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(memory_stats({}).system_allocations, before);
}

}  // namespace
}  // namespace lockstep
