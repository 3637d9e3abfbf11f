// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer_block.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn/residual.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/norm.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <memory>

#include "nn/central_difference.h"
#include "support/errors.h"

namespace lockstep::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using testing::throws;

Initializer scattered_kernels() {
  return [phase = std::make_shared<double>(0)](const Shape& shape, DType) {
    return scattered(shape, *phase += 1);
  };
}

TransformerBlock block_of(std::int64_t size, std::int64_t heads,
                          TransformerBlockOptions options = {}) {
  options.kernel_initializer = scattered_kernels();
  options.dtype = DType::f64;
  return TransformerBlock(size, heads, options);
}

Variable named(const Layer& layer, const std::string& role) {
  for (const Variable& variable : layer.variables())
    if (variable.name() == layer.name() + "/" + role) return variable;
  throw std::out_of_range(role);
}

TEST(TransformerBlock, AddsBothPartsToItsInput) {
  const TransformerBlock block = block_of(4, 2, {.hidden_size = 6, .causal = true});
  // The attention with the block's weights, and the rest by the formula.
  const MultiHeadAttention attention(4, 2, {.causal = true, .dtype = DType::f64});
  for (std::size_t i = 0; i < attention.variables().size(); ++i) {
    Variable mine = attention.variables()[i];
    mine.assign(named(block, "attention" + mine.name().substr(mine.name().find('/'))).read());
  }
  const auto norm = [&](const Tensor& x, const std::string& part) {
    const Tensor middle = x - mean(x, {.axes = {-1}, .keep_dims = true});
    return middle / sqrt(mean(square(middle), {.axes = {-1}, .keep_dims = true}) + 1e-5) *
               named(block, part + "/gamma") +
           named(block, part + "/beta");
  };
  for (const char* part : {"attention_norm", "feed_forward_norm"}) {
    Variable gamma = named(block, part + std::string("/gamma")),
             beta = named(block, part + std::string("/beta"));
    gamma.assign(scattered({4}, 5));
    beta.assign(scattered({4}, 6));
  }
  const auto product = [](const Tensor& x, const Tensor& w) {
    return sum(expand_dims(x, -1) * w, {.axes = {2}});
  };
  const Tensor x = scattered({2, 3, 4}, 0.4);
  const Tensor y = x + attention(norm(x, "attention_norm"));
  const Tensor hidden =
      gelu(product(norm(y, "feed_forward_norm"), named(block, "feed_forward/inner/kernel").read()));
  const Tensor expected = y + product(hidden, named(block, "feed_forward/outer/kernel").read());
  EXPECT_THAT(block(x).to_vector<double>(),
              Pointwise(DoubleNear(1e-12), expected.to_vector<double>()));
}

TEST(TransformerBlock, HasTheGradientsOfCentralDifferences) {
  const TransformerBlock block =
      block_of(4, 2, {.hidden_size = 3, .activation = silu, .causal = true});
  std::vector<Variable> variables = block.variables();
  variables.push_back(Variable(scattered({1, 3, 4}, 0.2), {.name = "x"}));
  expect_central_differences(variables, [&] {
    return sum(square(block(variables.back())) * scattered({1, 3, 4}, 3));
  });
}

TEST(TransformerBlock, ContinuesASequenceFromItsCache) {
  const TransformerBlock first =
                             block_of(4, 2, {.causal = true, .rotary = RotaryEmbeddingOptions{}}),
                         second = block_of(4, 1, {.causal = true});
  const Tensor x = scattered({2, 5, 4});
  std::vector<KeyValueCache> caches{first.make_cache(2, 5), second.make_cache(2, 5)};
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < 5; ++i)
    parts.push_back(
        second.extend(first.extend(slice(x, {0, i, 0}, {2, 1, 4}), caches[0]), caches[1]));
  EXPECT_THAT(concat(parts, 1).to_vector<double>(),
              Pointwise(DoubleNear(1e-12), second(first(x)).to_vector<double>()));
}

TEST(TransformerBlock, MasksAndDropsInTraining) {
  const TransformerBlock block = block_of(4, 2, {.dropout = 0.5});
  const Tensor x = scattered({1, 3, 4});
  const Tensor first_only(Shape{1, 3}, {true, false, false});
  const auto last = [](const Tensor& y) {
    return slice(y, {0, 0, 0}, {1, 1, 4}).to_vector<double>();
  };
  const Tensor other = concat({slice(x, {0, 0, 0}, {1, 1, 4}), scattered({1, 2, 4}, 8)}, 1);
  EXPECT_EQ(last(block.attend(x, {.mask = first_only})),
            last(block.attend(other, {.mask = first_only})));
  RandomState state{.seed = 3};
  const RandomScope scope(state);
  EXPECT_EQ(block(x).to_vector<double>(), block(x).to_vector<double>());
  EXPECT_EQ(state.counter, 0u);
  EXPECT_NE(block(x, {.training = true}).to_vector<double>(),
            block(x, {.training = true}).to_vector<double>());
}

TEST(TransformerBlock, NamesItsVariables) {
  TransformerBlock block(4, 2, {.use_bias = false, .name = "first"});
  block.rename("block_3");
  std::vector<std::string> names;
  for (const Variable& variable : block.variables()) names.push_back(variable.name());
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre(
                  "block_3/attention_norm/gamma", "block_3/attention_norm/beta",
                  "block_3/attention/query/kernel", "block_3/attention/key/kernel",
                  "block_3/attention/value/kernel", "block_3/attention/attention_output/kernel",
                  "block_3/feed_forward_norm/gamma", "block_3/feed_forward_norm/beta",
                  "block_3/feed_forward/inner/kernel", "block_3/feed_forward/outer/kernel"));
}

TEST(TransformerBlock, StandsInASequential) {
  const Sequential model{TransformerBlock(4, 2), TransformerBlock(4, 1), Dense(4, 3)};
  EXPECT_EQ(model(ones({2, 3, 4})).shape(), Shape({2, 3, 3}));
  EXPECT_EQ(model.variables().size(), 2 * 16u + 2);
  EXPECT_THAT([] { Sequential(TransformerBlock(4, 2), Dense(5, 3)); },
              throws<InvalidArgument>("4", "5"));
}

TEST(TransformerBlock, SaysWhatDoesNotFit) {
  EXPECT_THAT([] { TransformerBlock(5, 2); }, throws<InvalidArgument>("5"));
  const TransformerBlock block(4, 2, {.name = "block"});
  EXPECT_THAT([&] { block(ones({3, 4})); }, throws<InvalidArgument>("[block]", "f32[3, 4]"));
  EXPECT_THAT([&] { block(ones({1, 3, 5})); }, throws<InvalidArgument>("[block]", "f32[1, 3, 5]"));
  KeyValueCache cache = block.make_cache(1, 3);
  EXPECT_THAT(
      [&] {
        block.extend(ones({1, 1, 4}), cache);
      },
      throws<FailedPrecondition>("[block/attention]", "causal"));
}

TEST(TransformerBlock, ComputesIn16BitsFromVariablesOf32) {
  const auto made = [](PrecisionPolicy policy) {
    return TransformerBlock(
        8, 2,
        {.causal = true,
         .rotary = RotaryEmbeddingOptions{},
         .kernel_initializer = [](const Shape& shape,
                                  DType dtype) { return cast(scattered(shape, 1) * 0.5, dtype); },
         .dtype = policy});
  };
  const TransformerBlock block = made(mixed_bfloat16);
  for (const Variable& variable : block.variables()) EXPECT_EQ(variable.dtype(), DType::f32);
  const Tensor x = cast(scattered({2, 5, 8}), DType::f32);
  const Tensor y = block(x);
  ASSERT_EQ(y.dtype(), DType::bf16);
  // A few roundings of 2^-9 of numbers of about 3.
  EXPECT_THAT(cast(y, DType::f32).to_vector<float>(),
              Pointwise(::testing::FloatNear(0.05f), made(float32)(x).to_vector<float>()));
  EXPECT_EQ(Residual{Dense(8, 8, {.dtype = mixed_bfloat16})}(x).dtype(), DType::bf16);

  KeyValueCache cache = block.make_cache(2, 5);
  EXPECT_EQ(cache.keys.dtype(), DType::bf16);
  std::vector<Tensor> parts;
  for (const Tensor& position : split(x, 5, 1)) parts.push_back(block.extend(position, cache));
  EXPECT_THAT(cast(concat(parts, 1), DType::f32).to_vector<float>(),
              Pointwise(::testing::FloatNear(0.05f), cast(y, DType::f32).to_vector<float>()));
}

TEST(FeedForward, WorksOnEachPositionByItself) {
  const FeedForward layer(
      2, 3, {.activation = relu, .kernel_initializer = [](const Shape& shape, DType) {
               return shape.dim(0) == 2 ? Tensor(shape, {1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 1.0f})
                                        : Tensor(shape, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
             }});
  // [1 2] gives relu([1 2 3]) and then [1 + 6 + 15, 2 + 8 + 18]; [-1 0] gives 0.
  const Tensor y = layer(Tensor({1, 2, 2}, {1.0f, 2.0f, -1.0f, 0.0f}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(22, 28, 0, 0));
}

TEST(Residual, AddsItsLayersResultToTheInput) {
  const auto twice = [](const Tensor& x) { return x * 2; };
  EXPECT_THAT(Residual(twice, twice)(Tensor({2}, {1.0f, 3.0f})).to_vector<float>(),
              ElementsAre(5, 15));
  const Sequential model{Residual{Dense(4, 4), Dense(4, 4)}, Residual{Dense(4, 4)}, Dense(4, 2)};
  std::vector<std::string> names;
  for (const Variable& variable : model.variables())
    if (variable.shape().rank() == 2) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("residual/dense/kernel", "residual/dense_1/kernel",
                                 "residual_1/dense/kernel", "dense/kernel"));
  EXPECT_EQ(Residual(model, Dense(2, 4)).input_size(), 4);
}

TEST(Residual, SaysWhatDoesNotFit) {
  EXPECT_THAT([] { Residual{Dense(4, 3)}; }, throws<InvalidArgument>("[Residual]", "4", "3"));
  const auto half = [](const Tensor& x) { return slice(x, {0}, {1}); };
  EXPECT_THAT([&] { Residual{half}(ones({2})); },
              throws<InvalidArgument>("[residual]", "[2]", "[1]"));
}

}  // namespace
}  // namespace lockstep::nn
