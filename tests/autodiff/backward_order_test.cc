// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::throws;
using lockstep::testing::vec;

// y = x, whose gradient rule calls `seen` before it passes dy on.
Tensor probe(const Tensor& x, std::function<void()> seen) {
  const Tensor y = x.with_identity(new_tensor_key(), false);
  record("probe", {&x}, y, [seen = std::move(seen)](const Tensor& dy, GradientSink& sink) {
    seen();
    if (sink.wants(0)) sink.put(0, [&] { return dy; });
  });
  return y;
}

TEST(BackwardOrder, SourcesAreReadyLastLayerFirst) {
  const Tensor x = ones({1, 2});
  std::vector<Tensor> weights, sources;
  GradientTape tape;
  Tensor h = x;
  for (int layer = 0; layer < 3; ++layer) {
    sources.push_back(full({2, 2}, 0.5));  // kernel
    sources.push_back(ones({2}));          // bias
    for (std::size_t i = sources.size() - 2; i < sources.size(); ++i) tape.watch(sources[i]);
    h = dense(h, sources[sources.size() - 2], sources.back());
  }
  std::vector<std::size_t> layers;
  tape.gradient(h, sources,
                {.on_ready = [&](std::size_t i, const Tensor&) { layers.push_back(i / 2); }});
  EXPECT_THAT(layers, ::testing::ElementsAre(2, 2, 1, 1, 0, 0));
}

TEST(BackwardOrder, ASourceIsReadyBeforeEarlierRulesRun) {
  std::vector<std::string> events;
  const Tensor w0(2.0f), w1(3.0f);
  GradientTape tape;
  tape.watch(w0);
  tape.watch(w1);
  const Tensor h = probe(w0 * 5, [&] { events.push_back("first layer's rule"); });
  tape.gradient(h * w1, {w0, w1}, {.on_ready = [&](std::size_t i, const Tensor&) {
                  events.push_back("ready " + std::to_string(i));
                }});
  EXPECT_THAT(events, ::testing::ElementsAre("ready 1", "first layer's rule", "ready 0"));
}

TEST(BackwardOrder, ASharedSourceIsReadyOnceAfterItsFirstUse) {
  std::vector<std::string> events;
  const Tensor w(2.0f);
  GradientTape tape;
  tape.watch(w);
  const Tensor h = probe(w * w, [&] { events.push_back("first use's rule"); });
  const Tensor g = tape.gradient(h * w, {w}, {.on_ready = [&](std::size_t, const Tensor& ready) {
                                   events.push_back("ready");
                                   EXPECT_EQ(ready.item<float>(), 12);  // 3 w^2
                                 }})[0];
  EXPECT_THAT(events, ::testing::ElementsAre("first use's rule", "ready"));
}

TEST(BackwardOrder, UnreachableSourcesAreReadyAtOnce) {
  std::vector<std::string> events;
  const Tensor w(2.0f), unused(3.0f);
  GradientTape tape;
  tape.watch(w);
  tape.watch(unused);
  const Tensor y = probe(w * 2, [&] { events.push_back("rule"); });
  tape.gradient(y, {w, unused}, {.on_ready = [&](std::size_t i, const Tensor& g) {
                  events.push_back((g.defined() ? "ready " : "unreachable ") + std::to_string(i));
                }});
  EXPECT_THAT(events, ::testing::ElementsAre("unreachable 1", "rule", "ready 0"));
}

TEST(BackwardOrder, RulesOffTheWayToTheTargetDoNotRun) {
  int runs = 0;
  const Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor metric = probe(x * 7, [&] { ++runs; });
  EXPECT_EQ(tape.gradient(square(x), {x})[0].item<float>(), 4);
  EXPECT_EQ(runs, 0);
}

// Two outputs and two inputs: (a, b) -> (a + b, a b), with a count of what was asked of the rule.
struct TwoOutputs {
  Tensor sum, product;
  int ran = 0;
  std::vector<int> wanted;

  TwoOutputs(const Tensor& a, const Tensor& b) {
    const RecorderScope off(nullptr);
    sum = a + b;
    product = a * b;
  }
  void record_for(const Tensor& a, const Tensor& b) {
    if (!recording({&a, &b})) return;
    const Tensor* inputs[] = {&a, &b};
    const Tensor outputs[] = {sum, product};
    current_recorder()->record("two_outputs", inputs, outputs,
                               [this, a, b](std::span<const Tensor> dy, GradientSink& sink) {
                                 ++ran;
                                 const Tensor* other[] = {&b, &a};
                                 for (int i = 0; i < 2; ++i) {
                                   if (!sink.wants(i)) continue;
                                   wanted.push_back(i);
                                   sink.put(i, [&] {
                                     Tensor g =
                                         dy[1].defined() ? mul(dy[1], *other[i]) : Tensor(0.0f);
                                     return dy[0].defined() ? add(g, dy[0]) : g;
                                   });
                                 }
                               });
  }
};

TEST(BackwardOrder, ARuleSeesWhichOutputsCarryGradient) {
  const Tensor a(2.0f), b(5.0f);
  GradientTape tape({.persistent = true});
  tape.watch(a);
  tape.watch(b);
  TwoOutputs op(a, b);
  op.record_for(a, b);
  const auto product_only = tape.gradient(op.product, {a, b});
  EXPECT_EQ(product_only[0].item<float>(), 5);
  EXPECT_EQ(product_only[1].item<float>(), 2);
  const auto both = tape.gradient(op.sum * op.product, {a, b});  // (a + b) a b
  EXPECT_EQ(both[0].item<float>(), 45);                          // 2 a b + b^2
  EXPECT_EQ(both[1].item<float>(), 24);                          // a^2 + 2 a b
}

TEST(BackwardOrder, ARuleIsAskedOnlyForWhatIsNeeded) {
  const Tensor a(2.0f), b(5.0f);
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  TwoOutputs op(a, b);
  op.record_for(a, b);
  tape.gradient(op.product, {b});
  EXPECT_EQ(op.ran, 1);
  EXPECT_THAT(op.wanted, ::testing::ElementsAre(1));
}

TEST(BackwardOrder, ARuleThatPutsAnInputTwiceIsOurBug) {
  const Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x.with_identity(new_tensor_key(), false);
  record("twice", {&x}, y, [](const Tensor& dy, GradientSink& sink) {
    sink.put(0, [&] { return dy; });
    sink.put(0, [&] { return dy; });
  });
  EXPECT_THAT([&] { tape.gradient(y, {x}); }, throws<InternalError>("[twice]", "input 0"));
}

TEST(BackwardOrder, UndefinedInputsKeepTheirPosition) {
  const Tensor x = ones({1, 2}), w = full({2, 1}, 3);
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(dense(x, w, Tensor()), {x})[0], holds({3, 3}));
}

}  // namespace
}  // namespace lockstep
