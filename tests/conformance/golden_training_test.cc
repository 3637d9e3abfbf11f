// SPDX-License-Identifier: Apache-2.0
// Training as TensorFlow trains: see golden_training.h.
#include <gtest/gtest.h>

#include "conformance/golden_training.h"

namespace lockstep::testing {
namespace {

const GoldenProgram kMlp = {
    .data =
        [](Noise& noise, std::int64_t rows) {
          return classified(noise, {rows, 64}, 10);
        },
    .make =
        [] {
          return classifier(nn::Sequential{nn::Dense(64, 256, {.activation = nn::relu}),
                                           nn::Dense(256, 144, {.activation = nn::tanh}),
                                           nn::Dense(144, 10)});
        },
};

TEST(GoldenTraining, MlpWithSgd) { expect_trained_as_golden("mlp_sgd", kMlp); }
TEST(GoldenTraining, MlpWithMomentum) { expect_trained_as_golden("mlp_momentum", kMlp); }
TEST(GoldenTraining, MlpWithAdam) { expect_trained_as_golden("mlp_adam", kMlp); }

GoldenProgram cnn(bool synchronized) {
  return {
      .data =
          [](Noise& noise, std::int64_t rows) {
            return classified(noise, {rows, 8, 8, 3}, 10);
          },
      .make =
          [=] {
            const nn::Conv2DOptions conv = {.padding = Padding::same, .use_bias = false};
            const nn::BatchNormOptions norm = {.momentum = 0.75, .synchronized = synchronized};
            return classifier(nn::Sequential{
                nn::Conv2D(3, 32, conv), nn::BatchNorm(32, norm), nn::relu, nn::MaxPool2D(),
                nn::Conv2D(32, 64, conv), nn::BatchNorm(64, norm), nn::relu, nn::MaxPool2D(),
                nn::Flatten(), nn::Dense(256, 320, {.activation = nn::relu}), nn::Dense(320, 10)});
          },
  };
}

TEST(GoldenTraining, CnnWithLocalBatchNorm) { expect_trained_as_golden("cnn_local", cnn(false)); }
TEST(GoldenTraining, CnnWithSynchronizedBatchNorm) {
  expect_trained_as_golden("cnn_synchronized", cnn(true));
}

// Rows of six numbers, of which small ones repeat in a row, on a replica and over the replicas.
const GoldenProgram kEmbedding = {
    .data =
        [](Noise& noise, std::int64_t rows) {
          std::vector<std::int64_t> ids, labels;
          for (std::int64_t row = 0; row < rows; ++row) {
            labels.push_back(0);
            for (int i = 0; i < 6; ++i) {
              const double part = (noise.next() + 1) / 2;
              ids.push_back(static_cast<std::int64_t>(part * part * 2500));
              labels.back() += ids.back();
            }
            labels.back() %= 5;
          }
          return Examples{Tensor({rows, 6}, std::span<const std::int64_t>(ids)),
                          Tensor({rows}, std::span<const std::int64_t>(labels))};
        },
    .make =
        [] {
          return classifier(nn::Sequential{
              nn::Embedding(2500, 24), [](const Tensor& x) { return mean(x, {.axes = {1}}); },
              nn::Dense(24, 16, {.activation = nn::tanh}), nn::Dense(16, 5)});
        },
};

TEST(GoldenTraining, EmbeddingWithSgd) { expect_trained_as_golden("embedding_sgd", kEmbedding); }
TEST(GoldenTraining, EmbeddingWithMomentum) {
  expect_trained_as_golden("embedding_momentum", kEmbedding);
}
TEST(GoldenTraining, EmbeddingWithAdam) { expect_trained_as_golden("embedding_adam", kEmbedding); }

// Predicts the next of each sequence's tokens.
const GoldenProgram kTransformer = {
    .data =
        [](Noise& noise, std::int64_t rows) {
          const auto below = [&](double end) {
            return static_cast<std::int64_t>((noise.next() + 1) / 2 * end);
          };
          std::vector<std::int64_t> tokens, next;
          for (std::int64_t row = 0; row < rows; ++row) {
            std::int64_t token = below(50);
            for (int i = 0; i < 8; ++i) {
              tokens.push_back(token);
              token = (3 * token + below(3)) % 50;
              next.push_back(token);
            }
          }
          return Examples{Tensor({rows, 8}, std::span<const std::int64_t>(tokens)),
                          Tensor({rows, 8}, std::span<const std::int64_t>(next))};
        },
    .make =
        [] {
          const nn::Sequential model{nn::Embedding(50, 64), nn::PositionEmbedding(8, 64),
                                     nn::TransformerBlock(64, 4, {.causal = true}),
                                     nn::Dense(64, 50)};
          return GoldenModel{model.variables(), [model](const Examples& batch) {
                               return mean(nn::sparse_softmax_cross_entropy(
                                               batch.y, model(batch.x, {.training = true})),
                                           {.axes = {1}});
                             }};
        },
};

TEST(GoldenTraining, TransformerBlock) { expect_trained_as_golden("transformer", kTransformer); }

}  // namespace
}  // namespace lockstep::testing
