// SPDX-License-Identifier: Apache-2.0
// Articles of clothing, told apart by a convolutional network on any number of replicas, in 32 or 16
// bits. The data are in Debian's package dataset-fashion-mnist.
#include <lockstep/lockstep.h>

#include <string>
#include <vector>

#include "program.h"
namespace ls = lockstep;

struct Example {
  ls::Tensor image, label;
};

ls::nn::Sequential convolution(std::int64_t in, std::int64_t out) {
  return {ls::nn::Conv2D(in, out, {.padding = ls::Padding::same, .use_bias = false}),
          ls::nn::MaxPool2D(), ls::nn::BatchNorm(out, {.momentum = 0.9, .synchronized = true}),
          ls::nn::relu};
}

struct Training {
  double dropout;
  ls::optim::Schedule learning_rate;
  ls::nn::Sequential model{convolution(1, 32),
                           convolution(32, 64),
                           ls::nn::Flatten(),
                           ls::nn::Dropout(dropout),
                           ls::nn::Dense(7 * 7 * 64, 128, {.activation = ls::nn::relu}),
                           ls::nn::Dropout(dropout),
                           ls::nn::Dense(128, 10, {.dtype = ls::nn::float32})};
  ls::optim::Adam adam{{.learning_rate = learning_rate}};
  ls::optim::LossScaleOptimizer optimizer{adam};  // mixed_float16 needs it, the others lose nothing
  ls::metrics::SparseCategoricalAccuracy accuracy{};
  ls::metrics::Mean mean_loss{};

  ls::Tensor step(const Example& batch) {
    ls::GradientTape tape;
    const ls::Tensor logits = model(batch.image, {.training = true});
    const ls::Tensor losses = ls::nn::sparse_softmax_cross_entropy(batch.label, logits);
    const ls::Tensor loss = ls::nn::compute_average_loss(losses);
    optimizer.minimize(loss, variables(), tape);
    mean_loss.update_state(losses);
    return loss;
  }
  void test(const Example& batch) { accuracy.update_state(batch.label, model(batch.image)); }

  std::vector<ls::Variable> variables() const { return model.trainable_variables(); }
  ls::Tensor metric() const { return mean_loss.result(); }
};

int main(int argc, char** argv) try {
  const examples::Flags flags(
      argc, argv,
      {{"precision", "float32", "float32, mixed_bfloat16 or mixed_float16"},
       {"data", "", "the folder with the data set's files; empty: see data/fashion_mnist.h"},
       {"batch_size", "128", "rows of a step on all replicas together"},
       {"epochs", "8", "passes over the training data"},
       {"learning_rate", "3e-3", "the highest, a third of the way"},
       {"dropout", "0.25", "part of the features that a step leaves out, drawn by each replica"},
       {"print_every", "0", "steps between two lines with the loss; 0: none"},
       examples::kDoctor});
  const ls::Strategy strategy = flags.strategy();
  const ls::data::FashionMnistOptions files{.folder = flags.text("data")};
  const auto articles = ls::data::fashion_mnist<Example>("train", files);
  const auto train = strategy.distribute_dataset(
      articles.shuffle({.seed = 7}).batch(flags.number<std::int64_t>("batch_size")).prefetch(2));
  const auto test =
      strategy.distribute_dataset(ls::data::fashion_mnist<Example>("test", files).batch(500));
  const int epochs = flags.number<int>("epochs");

  const ls::nn::PolicyScope policy(flags.text("precision"));  // of the layers made from here on
  const ls::optim::Schedule rate = ls::optim::one_cycle(
      flags.number<double>("learning_rate"), {.total_steps = epochs * train.cardinality()});
  // Dropout draws other numbers on one replica: beside a batch norm over all rows nothing could be compared.
  if (flags.given("doctor"))
    return examples::doctor([&] { return Training{.dropout = 0, .learning_rate = rate}; },
                            articles);

  examples::print(strategy, "%s\n", strategy.describe().c_str());
  const auto scope = strategy.scope();
  Training training{.dropout = flags.number<double>("dropout"), .learning_rate = rate};
  const auto train_step = [&](const Example& batch) { return training.step(batch); };
  const auto test_step = [&](const Example& batch) { training.test(batch); };

  const int print_every = flags.number<int>("print_every");
  int step = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    training.mean_loss.reset_state();
    training.accuracy.reset_state();
    ls::train::ProgressBar bar(
        {.title = "epoch " + std::to_string(epoch), .total_steps = train.cardinality()});
    for (const auto& batch : train) {
      const auto loss = strategy.run(train_step, batch);
      bar.step(batch.rows()->global);
      if (print_every > 0 && ++step % print_every == 0)
        examples::print(strategy, "step %d: loss %.6f\n", step,
                        strategy.reduce(ls::ReduceOp::sum, loss).item<double>());
    }
    for (const auto& batch : test) strategy.run(test_step, batch);
    bar.finish(
        {{"loss", training.mean_loss.result()}, {"test accuracy", training.accuracy.result()}});
  }
  examples::print(strategy, "test accuracy %.4f\n", training.accuracy.result().item<double>());
} catch (const std::exception& error) {
  return examples::failed(error);
}
