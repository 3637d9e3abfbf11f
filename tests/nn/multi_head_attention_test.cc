// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/multi_head_attention.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include "nn/central_difference.h"
#include "support/errors.h"

namespace lockstep::nn {
namespace {

using testing::caught;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::throws;

// Each with other numbers.
Initializer scattered_kernels() {
  return [phase = std::make_shared<double>(0)](const Shape& shape, DType) {
    return scattered(shape, *phase += 1);
  };
}

MultiHeadAttention layer_of(std::int64_t size, std::int64_t heads,
                            MultiHeadAttentionOptions options = {}) {
  options.kernel_initializer = scattered_kernels();
  options.bias_initializer = scattered_kernels();
  options.dtype = DType::f64;
  return MultiHeadAttention(size, heads, options);
}

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const Tensor& x, std::int64_t example) {
  Rows rows;
  const auto size = static_cast<std::size_t>(x.dim(2));
  const double* from = x.data<double>().data() + example * x.dim(1) * x.dim(2);
  for (std::int64_t i = 0; i < x.dim(1); ++i, from += size) rows.emplace_back(from, from + size);
  return rows;
}

// x kernel + bias, the variables `first` and the next one.
Rows projected(const Rows& x, const MultiHeadAttention& layer, std::size_t first) {
  const Tensor kernel = layer.variables()[first].read(), bias = layer.variables()[first + 1].read();
  const auto out = static_cast<std::size_t>(bias.dim(0));
  Rows y;
  for (const auto& row : x) {
    std::vector<double> sums = bias.to_vector<double>();
    for (std::size_t i = 0; i < row.size(); ++i)
      for (std::size_t o = 0; o < out; ++o) sums[o] += row[i] * kernel.data<double>()[i * out + o];
    y.push_back(sums);
  }
  return y;
}

// The paper's formula for one example; `sees(i, j)` says whether query i sees key j.
template <class Sees>
Rows formula(const MultiHeadAttention& layer, const Rows& query, const Rows& key, const Rows& value,
             const Sees& sees) {
  const Rows q = projected(query, layer, 0), k = projected(key, layer, 2),
             v = projected(value, layer, 4);
  const auto heads = static_cast<std::size_t>(layer.num_heads());
  const std::size_t dim = q[0].size() / heads, out = v[0].size() / heads;
  Rows joined(q.size(), std::vector<double>(heads * out));
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < q.size(); ++i) {
      std::vector<double> weights(k.size());
      double total = 0;
      for (std::size_t j = 0; j < k.size(); ++j) {
        if (!sees(i, j)) continue;
        double product = 0;
        for (std::size_t e = 0; e < dim; ++e) product += q[i][h * dim + e] * k[j][h * dim + e];
        total += weights[j] = std::exp(product / std::sqrt(static_cast<double>(dim)));
      }
      for (std::size_t j = 0; j < k.size() && total > 0; ++j)
        for (std::size_t o = 0; o < out; ++o)
          joined[i][h * out + o] += weights[j] / total * v[j][h * out + o];
    }
  return projected(joined, layer, 6);
}

void expect_rows(const Tensor& y, std::int64_t example, const Rows& expected) {
  const Rows found = rows_of(y, example);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_THAT(found[i], Pointwise(DoubleNear(1e-12), expected[i])) << "position " << i;
}

TEST(MultiHeadAttention, IsThePapersFormula) {
  for (const bool causal : {false, true}) {
    const MultiHeadAttention layer = layer_of(6, 2, {.causal = causal});
    const Tensor x = scattered({2, 5, 6}, 0.3);
    const Tensor y = layer(x);
    ASSERT_EQ(y.shape(), Shape({2, 5, 6}));
    for (const int example : {0, 1}) {
      const Rows rows = rows_of(x, example);
      expect_rows(y, example, formula(layer, rows, rows, rows, [&](std::size_t i, std::size_t j) {
                    return !causal || j <= i;
                  }));
    }
  }
}

TEST(MultiHeadAttention, AttendsToAnotherSequenceWithSizesOfItsOwn) {
  const MultiHeadAttention layer =
      layer_of(4, 3, {.key_dim = 2, .value_dim = 5, .context_size = 7, .output_size = 3});
  EXPECT_EQ(layer.output_size(4), 3);
  const Tensor query = scattered({1, 2, 4}), value = scattered({1, 6, 7}, 1),
               key = scattered({1, 6, 7}, 2);
  const Tensor y = layer.attend(query, value, {.key = key});
  ASSERT_EQ(y.shape(), Shape({1, 2, 3}));
  expect_rows(y, 0,
              formula(layer, rows_of(query, 0), rows_of(key, 0), rows_of(value, 0),
                      [](std::size_t, std::size_t) { return true; }));
}

TEST(MultiHeadAttention, MasksPerExampleForAllHeads) {
  const MultiHeadAttention layer = layer_of(4, 2);
  const Tensor x = scattered({2, 3, 4});
  // The first example sees its first key only, the second one's last query sees nothing.
  const bool sees[] = {true, false, false, true, false, false, true,  false, false,
                       true, true,  true,  true, true,  true,  false, false, false};
  const Tensor mask(Shape{2, 3, 3}, std::span<const bool>(sees));
  const Tensor y = layer.attend(x, x, {.mask = mask});
  for (const int example : {0, 1}) {
    const Rows rows = rows_of(x, example);
    expect_rows(y, example, formula(layer, rows, rows, rows, [&](std::size_t i, std::size_t j) {
                  return sees[static_cast<std::size_t>(example) * 9 + i * 3 + j];
                }));
  }
}

TEST(MultiHeadAttention, HasTheGradientsOfCentralDifferences) {
  for (const bool rotary : {false, true}) {
    MultiHeadAttentionOptions options{.causal = true};
    if (rotary) options.rotary.emplace();
    const MultiHeadAttention layer = layer_of(4, 2, options);
    std::vector<Variable> variables = layer.variables();
    variables.push_back(Variable(scattered({2, 3, 4}, 0.2), {.name = "x"}));
    expect_central_differences(variables, [&] {
      return sum(square(layer(variables.back())) * scattered({2, 3, 4}, 3));
    });
  }
}

TEST(MultiHeadAttention, NeverLetsTheFutureChangeThePast) {
  const MultiHeadAttention layer = layer_of(4, 2, {.causal = true});
  const Tensor x = scattered({1, 6, 4});
  const Tensor before = slice(layer(x), {0, 0, 0}, {1, 4, 4});
  const Tensor other = concat({slice(x, {0, 0, 0}, {1, 4, 4}), scattered({1, 2, 4}, 9)}, 1);
  const Tensor y = layer(other);
  EXPECT_EQ(slice(y, {0, 0, 0}, {1, 4, 4}).to_vector<double>(), before.to_vector<double>());
  EXPECT_NE(slice(y, {0, 4, 0}, {1, 2, 4}).to_vector<double>(),
            slice(layer(x), {0, 4, 0}, {1, 2, 4}).to_vector<double>());
}

TEST(MultiHeadAttention, ContinuesASequenceFromItsCache) {
  for (const bool rotary : {false, true}) {
    MultiHeadAttentionOptions options{.causal = true};
    if (rotary) options.rotary.emplace();
    const MultiHeadAttention layer = layer_of(6, 3, options);
    const Tensor x = scattered({2, 7, 6});
    KeyValueCache cache = layer.make_cache(2, 9);
    std::vector<Tensor> parts;
    std::int64_t begin = 0;
    for (const std::int64_t count : {3, 1, 0, 2, 1}) {
      parts.push_back(layer.extend(slice(x, {0, begin, 0}, {2, count, 6}), cache));
      begin += count;
    }
    EXPECT_EQ(cache.length.item<int>(), 7);
    EXPECT_EQ(cache.keys.shape(), Shape({2, 3, 9, 2}));
    EXPECT_THAT(concat(parts, 1).to_vector<double>(),
                Pointwise(DoubleNear(1e-12), layer(x).to_vector<double>()));
  }
}

TEST(MultiHeadAttention, KeepsItsCacheWhenThereIsNoRoom) {
  const MultiHeadAttention layer = layer_of(4, 2, {.causal = true});
  KeyValueCache cache = layer.make_cache(1, 2);
  layer.extend(scattered({1, 2, 4}), cache);
  EXPECT_THAT([&] { layer.extend(scattered({1, 1, 4}), cache); }, throws<InvalidArgument>("2"));
  EXPECT_EQ(cache.length.item<int>(), 2);
}

TEST(MultiHeadAttention, RefusesACacheOfAnotherLayerOrBatch) {
  const MultiHeadAttention layer = layer_of(4, 2, {.causal = true, .name = "mix"});
  KeyValueCache other_dtype = layer.make_cache(1, 3), half_defined = layer.make_cache(1, 3),
                shorter = layer.make_cache(1, 3);
  other_dtype.keys = cast(other_dtype.keys, DType::f32);
  half_defined.values = Tensor();
  shorter.values = layer.make_cache(1, 2).values;
  KeyValueCache caches[] = {KeyValueCache{},
                            half_defined,
                            other_dtype,
                            shorter,
                            layer.make_cache(2, 3),
                            layer_of(2, 1, {.causal = true}).make_cache(1, 3),
                            layer_of(8, 2, {.causal = true}).make_cache(1, 3)};
  for (KeyValueCache& cache : caches) {
    const auto error = caught<InvalidArgument>([&] { layer.extend(scattered({1, 1, 4}), cache); });
    EXPECT_EQ(error->location().line, __LINE__ - 1);
    EXPECT_THAT(error->message(), HasSubstr("[mix] expected a cache of make_cache(1, capacity)"));
  }
  KeyValueCache one = layer.make_cache(1, 3);  // which would be broadcast to x's batch
  EXPECT_THAT(
      [&] {
        layer.extend(scattered({2, 1, 4}), one);
      },
      throws<InvalidArgument>("make_cache(2, capacity)", "f64[1, 2, 3, 2]"));
  const auto error = caught<InvalidArgument>([&] { layer.make_cache(1, -1); });
  EXPECT_EQ(error->location().line, __LINE__ - 1);
  EXPECT_THAT(error->message(), HasSubstr("[mix]"));
}

TEST(MultiHeadAttention, DropsProbabilitiesInTrainingOnly) {
  // Kernels of 0 leave equal probabilities, of which 9 in 10 are dropped and the others are 10 times
  // as large; values and output are the identity's.
  const Initializer zero = constant(0);
  const MultiHeadAttention layer(1, 1, {.dropout = 0.9, .kernel_initializer = zero});
  for (const std::size_t identity : {4, 6}) {
    Variable kernel = layer.variables()[identity];
    kernel.assign(ones({1, 1}));
  }
  const Tensor x = ones({1, 1000, 1});
  EXPECT_THAT(layer(x).to_vector<float>(), Each(::testing::FloatNear(1, 1e-5f)));
  RandomState state{.seed = 3};
  const RandomScope scope(state);
  const Tensor y = layer(x, {.training = true});
  // A row keeps 1000 draws of probability 0.1: 100 +- 9.5, over 1000 rows.
  EXPECT_NEAR(mean(y).item<double>(), 1, 0.02);
  EXPECT_NEAR(stddev(y).item<double>(), 0.095, 0.01);
}

TEST(MultiHeadAttention, DropsNothingThatIsNotSeen) {
  const MultiHeadAttention layer = layer_of(4, 2, {.causal = true, .dropout = 0.5});
  RandomState state{.seed = 3};
  const RandomScope scope(state);
  const Tensor x = scattered({1, 6, 4});
  const Tensor other = concat({slice(x, {0, 0, 0}, {1, 4, 4}), scattered({1, 2, 4}, 9)}, 1);
  const RandomState before = state;
  const Tensor y = layer(x, {.training = true});
  state = before;
  EXPECT_EQ(slice(layer(other, {.training = true}), {0, 0, 0}, {1, 4, 4}).to_vector<double>(),
            slice(y, {0, 0, 0}, {1, 4, 4}).to_vector<double>());
}

TEST(MultiHeadAttention, RefusesWhatItWouldBroadcast) {
  const MultiHeadAttention layer(4, 2, {.dropout = 0.5, .name = "mix"});
  const Tensor two = ones({2, 3, 4}), one = ones({1, 3, 4});
  const AttendOptions wrong[] = {{.mask = lockstep::ones({2, 3, 3}, DType::i32)},
                                 {.mask = lockstep::ones({3, 3, 3}, DType::boolean)},
                                 {.mask = lockstep::ones({2, 3, 2}, DType::boolean)},
                                 {.key = one},
                                 {.key = ones({2, 1, 4})}};
  for (const bool training : {false, true}) {
    const auto refuse = [&](const Tensor& query, const Tensor& value, AttendOptions options) {
      options.training = training;
      const auto error = caught<InvalidArgument>([&] { layer.attend(query, value, options); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->location().line, __LINE__ - 2);
      EXPECT_THAT(error->message(), HasSubstr("[mix]"));
    };
    refuse(two, one, {});
    refuse(one, two, {});
    refuse(one, one, {.mask = lockstep::ones({2, 3, 3}, DType::boolean)});
    for (const AttendOptions& options : wrong) refuse(two, two, options);
  }
}

TEST(MultiHeadAttention, NamesItsVariables) {
  MultiHeadAttention layer(4, 2, {.name = "block/attention"});
  std::vector<std::string> names;
  for (const Variable& variable : layer.variables()) names.push_back(variable.name());
  EXPECT_THAT(names,
              ::testing::ElementsAre("block/attention/query/kernel", "block/attention/query/bias",
                                     "block/attention/key/kernel", "block/attention/key/bias",
                                     "block/attention/value/kernel", "block/attention/value/bias",
                                     "block/attention/attention_output/kernel",
                                     "block/attention/attention_output/bias"));
  layer.rename("other");
  EXPECT_EQ(layer.variables()[6].name(), "other/attention_output/kernel");
  EXPECT_EQ(MultiHeadAttention(4, 2, {.use_bias = false}).variables().size(), 4u);
}

TEST(MultiHeadAttention, TakesNoRows) {
  EXPECT_EQ(MultiHeadAttention(4, 2)(lockstep::zeros({0, 3, 4})).shape(), Shape({0, 3, 4}));
}

TEST(MultiHeadAttention, SaysWhatDoesNotFit) {
  EXPECT_THAT([] { MultiHeadAttention(5, 2); },
              throws<InvalidArgument>("[MultiHeadAttention]", "5"));
  EXPECT_THAT([] { MultiHeadAttention(0, 2); }, throws<InvalidArgument>("[MultiHeadAttention]"));
  EXPECT_THAT([] { MultiHeadAttention(6, 2, {.rotary = RotaryEmbeddingOptions{}}); },
              throws<InvalidArgument>("even key_dim", "3"));
  EXPECT_THAT([] { MultiHeadAttention(4, 2, {.dropout = 1}); }, throws<InvalidArgument>("rate"));
  const MultiHeadAttention layer(4, 2, {.name = "mix"});
  EXPECT_THAT(
      [&] {
        layer(lockstep::zeros({3, 4}));
      },
      throws<InvalidArgument>("[mix]", "f32[3, 4]"));
  EXPECT_THAT(
      [&] {
        layer(lockstep::zeros({1, 3, 5}));
      },
      throws<InvalidArgument>("4", "f32[1, 3, 5]"));
  EXPECT_THAT(
      [&] {
        layer.attend(lockstep::zeros({1, 3, 4}), Tensor());
      },
      throws<InvalidArgument>("[mix]", "undefined"));
  KeyValueCache cache = layer.make_cache(1, 2);
  EXPECT_THAT(
      [&] {
        layer.extend(lockstep::zeros({1, 1, 4}), cache);
      },
      throws<FailedPrecondition>("[mix]", "causal"));
}

}  // namespace
}  // namespace lockstep::nn
