// SPDX-License-Identifier: Apache-2.0
// The models of the benchmarks; peers/torch_models.py and peers/tensorflow_models.py are the same
// in PyTorch and in Keras.
#pragma once

#include <lockstep/lockstep.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "random_data.h"

namespace benchmark {

struct Example {
  ls::Tensor input, label;
};

struct Model {
  ls::nn::Sequential layers;
  ls::Shape input;  // a replica's rows
  std::int64_t classes = kClasses;
  bool tokens = false;  // the input is of classes, too, each with a label

  Example random_example(std::uint32_t seed) const {
    const std::int64_t labels = tokens ? input.num_elements() : input[0];
    const ls::Tensor label = random_labels(labels, classes, seed);
    if (!tokens) return {random_floats(input, seed), label};
    return {ls::reshape(random_labels(labels, classes, seed + 1), input),
            ls::reshape(label, input)};
  }
};

// relu(main(x) + shortcut(x)), as in He et al., arXiv:1512.03385.
struct Block {
  ls::nn::Sequential main;
  std::optional<ls::nn::Sequential> shortcut;  // x itself without one

  ls::Tensor operator()(const ls::Tensor& x, ls::nn::CallOptions options) const {
    return ls::relu(main(x, options) + (shortcut ? (*shortcut)(x, options) : x));
  }
  std::vector<ls::Variable> variables() const {
    std::vector<ls::Variable> all = main.variables();
    if (shortcut) all.insert(all.end(), shortcut->variables().begin(), shortcut->variables().end());
    return all;
  }
};

inline ls::nn::Conv2D convolution(std::int64_t in, std::int64_t out, std::int64_t size,
                                  std::int64_t stride) {
  const std::int64_t edge = size / 2;
  return {in,
          out,
          {.kernel_size = size,
           .strides = stride,
           .padding = {edge, edge, edge, edge},
           .use_bias = false,
           .kernel_initializer = ls::nn::he_normal}};
}

inline Block block(std::int64_t in, std::int64_t out, std::int64_t stride) {
  namespace nn = ls::nn;
  Block made{.main = nn::Sequential{convolution(in, out, 3, stride), nn::BatchNorm(out), nn::relu,
                                    convolution(out, out, 3, 1), nn::BatchNorm(out)},
             .shortcut = {}};
  if (in != out)
    made.shortcut = nn::Sequential{convolution(in, out, 1, stride), nn::BatchNorm(out)};
  return made;
}

inline Model resnet20() {
  namespace nn = ls::nn;
  return {nn::Sequential{convolution(3, 16, 3, 1), nn::BatchNorm(16), nn::relu, block(16, 16, 1),
                         block(16, 16, 1), block(16, 16, 1), block(16, 32, 2), block(32, 32, 1),
                         block(32, 32, 1), block(32, 64, 2), block(64, 64, 1), block(64, 64, 1),
                         nn::GlobalAveragePool(), nn::Dense(64, kClasses)},
          {64, 32, 32, 3}};
}

inline Model gpt() {
  namespace nn = ls::nn;
  constexpr std::int64_t kPositions = 64, kSize = 128, kHeads = 4, kTokens = 256;
  const auto transformer = [] { return nn::TransformerBlock(kSize, kHeads, {.causal = true}); };
  return {nn::Sequential{
              nn::Embedding(kTokens, kSize,
                            {.embeddings_initializer = nn::random_normal({.stddev = 0.02})}),
              nn::PositionEmbedding(kPositions, kSize), transformer(), transformer(), transformer(),
              transformer(), nn::LayerNorm(kSize, {.epsilon = 1e-5}), nn::Dense(kSize, kTokens)},
          {32, kPositions},
          kTokens,
          true};
}

// As good as all of its time goes to matrix products.
inline Model wide_mlp() {
  namespace nn = ls::nn;
  constexpr std::int64_t kSize = 1024;
  return {nn::Sequential{nn::Dense(kSize, kSize, {.activation = nn::relu}),
                         nn::Dense(kSize, kSize, {.activation = nn::relu}),
                         nn::Dense(kSize, kSize, {.activation = nn::relu}),
                         nn::Dense(kSize, kClasses, {.dtype = ls::DType::f32})},
          {512, kSize}};
}

inline Model make_model(const std::string& name) {
  namespace nn = ls::nn;
  if (name == "mlp")
    return {nn::Sequential{nn::Dense(784, 512, {.activation = nn::relu}),
                           nn::Dense(512, 512, {.activation = nn::relu}), nn::Dense(512, kClasses)},
            {kRows, 784}};
  if (name == "lenet")
    return {
        nn::Sequential{nn::Conv2D(1, 32, {.activation = nn::relu}), nn::MaxPool2D(),
                       nn::Conv2D(32, 64, {.activation = nn::relu}), nn::MaxPool2D(), nn::Flatten(),
                       nn::Dense(1600, 128, {.activation = nn::relu}), nn::Dense(128, kClasses)},
        {kRows, 28, 28, 1}};
  if (name == "resnet20") return resnet20();
  if (name == "gpt") return gpt();
  if (name == "wide_mlp") return wide_mlp();
  if (name == "wide_mlp_bf16") {
    const nn::PolicyScope policy(nn::mixed_bfloat16);
    return wide_mlp();
  }
  throw std::invalid_argument("no such model: " + name);
}

}  // namespace benchmark
