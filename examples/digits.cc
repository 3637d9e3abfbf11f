// SPDX-License-Identifier: Apache-2.0
// Handwritten digits on any number of replicas.
#include <lockstep/lockstep.h>

#include <string>
#include <vector>

#include "program.h"
namespace ls = lockstep;

struct Example {
  ls::Tensor image, label;
};

struct Training {
  ls::nn::Sequential model = ls::nn::Sequential(
      ls::nn::Dense(64, 128, {.activation = ls::nn::relu}), ls::nn::Dense(128, 10));
  ls::optim::Adam optimizer{{.learning_rate = 1e-2}};
  ls::metrics::SparseCategoricalAccuracy accuracy;
  ls::metrics::Mean mean_loss;

  ls::Tensor step(const Example& batch) {  // runs once on every replica
    ls::GradientTape tape;
    const ls::Tensor losses = ls::nn::sparse_softmax_cross_entropy(batch.label, model(batch.image));
    const ls::Tensor loss = ls::nn::compute_average_loss(losses);
    optimizer.minimize(loss, variables(), tape);  // all-reduces during backward
    mean_loss.update_state(losses);
    return loss;
  }
  void test(const Example& batch) { accuracy.update_state(batch.label, model(batch.image)); }

  std::vector<ls::Variable> variables() const { return model.trainable_variables(); }
  ls::Tensor metric() const { return mean_loss.result(); }
};

int main(int argc, char** argv) try {
  const examples::Flags flags(argc, argv, {examples::kDoctor});
  const auto rows = ls::data::digits<Example>("train");
  if (flags.given("doctor")) return examples::doctor([] { return Training(); }, rows);

  const ls::Strategy strategy = flags.strategy();
  examples::print(strategy, "%s\n", strategy.describe().c_str());
  const auto train = strategy.distribute_dataset(  // of each 128 rows a replica gets its part
      rows.shuffle({.seed = 7}).batch(128).prefetch(2));
  const auto test = strategy.distribute_dataset(ls::data::digits<Example>("test").batch(128));

  const auto scope = strategy.scope();  // variables made from here on are mirrored
  Training training;
  const auto train_step = [&](const Example& batch) { training.step(batch); };
  const auto test_step = [&](const Example& batch) { training.test(batch); };

  for (int epoch = 0; epoch < 20; ++epoch) {
    training.mean_loss.reset_state();
    training.accuracy.reset_state();
    ls::train::ProgressBar bar(
        {.title = "epoch " + std::to_string(epoch + 1), .total_steps = train.cardinality()});
    for (const auto& batch : train) {
      strategy.run(train_step, batch);
      bar.step(batch.rows()->global);
    }
    for (const auto& batch : test) strategy.run(test_step, batch);
    bar.finish(
        {{"loss", training.mean_loss.result()}, {"held-out accuracy", training.accuracy.result()}});
  }
  examples::print(strategy, "%s", strategy.step_report().to_table().c_str());
} catch (const std::exception& error) {
  return examples::failed(error);
}
