// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops.h>

#include <algorithm>
#include <set>
#include <string>

#include "conformance/chains/op_chain.h"
#include "ops/every_isa.h"
#include "support/gradient_check.h"
#include "support/traced.h"

namespace lockstep {
namespace {

using testing::OpChain;
using testing::random_chain;
using testing::Tensors;

// The value and those gradients that there are.
Tensors value_and_gradients(const OpChain& chain, const Tensors& inputs) {
  GradientTape tape;
  for (const Tensor& input : inputs) tape.watch(input);
  Tensors results = {chain(inputs)};
  const std::vector<double> weights = testing::chain_weights(results[0].num_elements());
  const Tensor weight(results[0].shape(), std::span<const double>(weights));
  for (const Tensor& gradient : tape.gradient(results[0], inputs, {.target_gradient = weight}))
    if (gradient.defined()) results.push_back(gradient);
  return results;
}

bool traceable(const OpChain& chain) {
  return std::none_of(chain.steps.begin(), chain.steps.end(), [](const testing::ChainStep& step) {
    return step.op->name == std::string("where") || step.op->name == std::string("segment_sum");
  });
}

std::string names_of(const OpChain& chain) {
  std::string names;
  for (const testing::ChainStep& step : chain.steps) names += step.op->name + std::string(" ");
  return names;
}

TEST(Chains, HoldEveryOpAndTensorsOfAllSizes) {
  std::set<std::string> ops;
  bool empty = false, one = false, odd = false;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const OpChain chain = random_chain(seed);
    EXPECT_LE(chain.steps.size(), 12u);
    for (const testing::ChainStep& step : chain.steps) ops.insert(step.op->name);
    for (const Tensor& input : chain.inputs) {
      empty |= input.num_elements() == 0;
      one |= input.num_elements() == 1;
      odd |= input.num_elements() > 1 && input.num_elements() % 2 == 1;
    }
  }
  EXPECT_TRUE(empty && one && odd);
  for (const testing::ChainOp& op : testing::chain_ops())
    EXPECT_TRUE(ops.contains(op.name)) << op.name;
}

TEST(Chains, AreTheSameUnderEachIsa) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const OpChain chain = random_chain(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + names_of(chain));
    const testing::IsaGuard guard;
    set_isa(testing::runnable_isas().front());
    const Tensors expected = value_and_gradients(chain, chain.inputs);
    testing::under_each_isa([&] {
      const Tensors got = value_and_gradients(chain, chain.inputs);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        testing::expect_close(got[i], expected[i], 1e-8, std::to_string(i));
    });
  }
}

TEST(ChainsXla, EqualCpu) {
  LOCKSTEP_REQUIRE_PLUGIN();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const OpChain chain = random_chain(seed);
    if (!traceable(chain)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + names_of(chain));
    testing::expect_same_traced(chain.inputs,
                                [&](const Tensors& x) { return value_and_gradients(chain, x); },
                                {.tolerance = 1e-8, .gradients = false});
  }
}

}  // namespace
}  // namespace lockstep
