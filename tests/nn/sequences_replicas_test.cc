// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/nn.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/random.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include "support/replicas.h"
#include "support/traced.h"

namespace lockstep::nn {
namespace {

// Models of sequences under strategies.

struct Example {
  Tensor text, next;
};

// 22 sequences of 6 of the numbers 0 .. 4; what follows is the sum of the last two, modulo 5.
data::Dataset<Example> sums() {
  constexpr std::int64_t kRows = 22, kLength = 6;
  std::vector<std::int32_t> text, next;
  for (std::int32_t row = 0; row < kRows; ++row)
    for (std::int32_t i = 0, before = row % 5, last = row / 5; i < kLength; ++i) {
      text.push_back(last);
      next.push_back((before + last) % 5);
      before = std::exchange(last, next.back());
    }
  const auto tensor = [](const std::vector<std::int32_t>& numbers) {
    return Tensor({kRows, kLength}, std::span<const std::int32_t>(numbers));
  };
  return data::from_tensor_slices(Example{tensor(text), tensor(next)});
}

Sequential make_transformer() {
  return Sequential{PositionEmbedding(6, 8), TransformerBlock(8, 2, {.causal = true}),
                    TransformerBlock(8, 2, {.causal = true, .rotary = RotaryEmbeddingOptions{}}),
                    Residual{FeedForward(8, 8)}, Dense(8, 5)};
}

Sequential make_recurrent() {
  return Sequential{LSTM(8, 6, {.return_sequences = true}), GRU(6, 6, {.return_sequences = true}),
                    Dense(6, 5)};
}

std::vector<double> train(const Strategy& strategy, int epochs, Sequential (*make_model)()) {
  const auto batches = strategy.distribute_dataset(sums().batch(8));
  const auto scope = strategy.scope();
  const Variable embeddings(normal({5, 8}), {.name = "embeddings"});
  const Sequential model = make_model();
  std::vector<Variable> variables = model.trainable_variables();
  variables.push_back(embeddings);
  optim::Adam optimizer({.learning_rate = 0.01});
  const auto step = [&](const Example& mine) {
    GradientTape tape;
    const Tensor logits = model(embedding_lookup(embeddings, mine.text), {.training = true});
    const Tensor losses = sparse_softmax_cross_entropy(mine.next, logits);
    const Tensor loss = compute_average_loss(mean(losses, {.axes = {1}}));
    optimizer.minimize(loss, variables, tape);
    return loss;
  };
  std::vector<double> losses;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (const auto& batch : batches)
      losses.push_back(strategy.reduce(ReduceOp::sum, strategy.run(step, batch)).item<double>());
  lockstep::testing::require_equal_replicas(variables);
  return losses;
}

TEST(SequencesInReplicas, AreLearnedTheSameOnAnyNumberOfThem) {
  for (const auto make_model : {make_transformer, make_recurrent}) {
    const std::vector<double> one = train(testing::replicas(1), 20, make_model);
    EXPECT_GT(one.front(), 1.5);
    EXPECT_LT(one.back(), 0.8 * one.front());
    for (const int count : {2, 3})
      EXPECT_THAT(train(testing::replicas(count), 20, make_model),
                  ::testing::Pointwise(::testing::DoubleNear(1e-3), one));
  }
}

TEST(SequencesInReplicas, AreLearnedIn16Bits) {
  for (const auto make_model : {make_transformer, make_recurrent}) {
    const std::vector<double> full = train(testing::replicas(2), 20, make_model);
    const PolicyScope mixed_layers(mixed_bfloat16);
    const std::vector<double> mixed = train(testing::replicas(2), 20, make_model);
    EXPECT_NE(mixed, full);
    EXPECT_THAT(mixed, ::testing::Pointwise(::testing::DoubleNear(0.1), full));
  }
}

TEST(SequencesXla, AreLearnedTheSameInATrace) {
  LOCKSTEP_REQUIRE_PLUGIN();
  for (const auto make_model : {make_transformer, make_recurrent}) {
    const std::vector<double> eager = train(testing::replicas(2), 17, make_model);
    ASSERT_GE(eager.size(), 50u);
    EXPECT_THAT(train(TPUStrategy({.replicas = 2}), 17, make_model),
                ::testing::Pointwise(::testing::DoubleNear(1e-3), eager));
  }
}

// Takes a prompt and goes on with the likeliest number, one program for all steps.
TEST(SequencesXla, AreContinuedInATraceFromACache) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const auto generate = [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const TransformerBlock block(8, 2, {.causal = true, .rotary = RotaryEmbeddingOptions{}});
    std::vector<float> results;
    KeyValueCache cache = block.make_cache(2, 6);
    Tensor x = make_tensor<float>({2, 1, 8}, [](std::span<float> values) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5);
    });
    for (int i = 0; i < 6; ++i) {
      struct Step {
        Tensor y;
        KeyValueCache cache;
      };
      const auto step = strategy.run([&] {
        Step result{.y = {}, .cache = cache};
        result.y = block.extend(x, result.cache);
        return result;
      });
      x = step[0].y.to_host();
      cache = step[0].cache;
      const auto values = x.to_vector<float>();
      results.insert(results.end(), values.begin(), values.end());
    }
    return results;
  };
  EXPECT_THAT(generate(TPUStrategy({.replicas = 1})),
              ::testing::Pointwise(::testing::FloatNear(1e-4f), generate(testing::replicas(1))));
}

}  // namespace
}  // namespace lockstep::nn
