// SPDX-License-Identifier: Apache-2.0
// A table of comma-separated values: who buys? An MLP and its AUC on any number of replicas.
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "program.h"
namespace ls = lockstep;

struct Row {
  ls::Tensor features, label;
};

// Customers as a table would have them: columns of very different size, some incomes missing. Who
// buys depends on all columns, on two of them together, and on chance: no model can reach an AUC
// above 0.89, nor a linear one above 0.78.
std::string customers(int rows) {
  std::mt19937 bits(7);
  const auto uniform = [&] { return (static_cast<double>(bits()) + 0.5) / 0x1p32; };
  const auto normal = [&] {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * 3.141592653589793 * uniform());
  };
  std::string text = "age,income,visits,discount,bought\n";
  for (int i = 0; i < rows; ++i) {
    const double a = normal(), b = normal(), c = normal(), d = normal();
    const double logit = 1.5 * a - b + 2 * c * d;
    char line[128];
    std::snprintf(line, sizeof line, "%.1f,%s,%.3f,%.4f,%d\n", 45 + 12 * a,
                  uniform() < 0.05 ? "" : std::to_string(30000 + 9000 * b).c_str(), 5 + 2 * c,
                  0.1 + 0.05 * d, uniform() < 1 / (1 + std::exp(-logit)));
    text += line;
  }
  return text;
}

// Mean and deviation of each column.
struct Moments {
  ls::Tensor mean, deviation;

  ls::Tensor standardised(const ls::Tensor& features) const {  // what is missing is as the mean
    const ls::Tensor x = (ls::cast(features, ls::DType::f64) - mean) / deviation;
    return ls::cast(ls::select(ls::is_nan(x), 0, x), ls::DType::f32);
  }
};

// Those of the rows of all replicas, as far as they have the column.
Moments moments_of(const ls::Strategy& strategy, const ls::DistributedDataset<Row>& rows) {
  const auto sums_of = [](const Row& batch) {
    const ls::Tensor absent = ls::is_nan(batch.features);
    const ls::Tensor x = ls::select(absent, 0, ls::cast(batch.features, ls::DType::f64));
    const auto over_rows = [](const ls::Tensor& t) { return ls::sum(t, {.axes = {0}}); };
    return ls::stack({over_rows(ls::cast(absent, ls::DType::f64)), over_rows(x), over_rows(x * x)});
  };
  ls::Tensor sums = ls::zeros({1}, ls::DType::f64);
  double num_rows = 0;
  for (const auto& batch : rows) {
    sums = sums + strategy.reduce(ls::ReduceOp::sum, strategy.run(sums_of, batch));
    num_rows += static_cast<double>(batch.rows()->global);
  }
  const auto parts = ls::unstack(sums);
  const ls::Tensor count = num_rows - parts[0], mean = parts[1] / count;
  return {mean, ls::sqrt(parts[2] / count - mean * mean) + 1e-9};
}

struct Training {
  Moments moments;
  ls::nn::Sequential model{ls::nn::Dense(moments.mean.dim(0), 32, {.activation = ls::nn::relu}),
                           ls::nn::Dense(32, 32, {.activation = ls::nn::relu}),
                           ls::nn::Dense(32, 1)};
  ls::optim::Adam optimizer{{.learning_rate = 3e-3}};
  ls::metrics::Mean mean_loss{};
  ls::metrics::AUC auc{{.from_logits = true}};

  ls::Tensor logits(const Row& batch) const { return model(moments.standardised(batch.features)); }
  ls::Tensor step(const Row& batch) {
    ls::GradientTape tape;
    const ls::Tensor losses =
        ls::nn::sigmoid_cross_entropy(ls::expand_dims(batch.label, -1), logits(batch));
    const ls::Tensor loss = ls::nn::compute_average_loss(losses);
    optimizer.minimize(loss, variables(), tape);
    mean_loss.update_state(losses);
    return loss;
  }
  void test(const Row& batch) { auc.update_state(batch.label, logits(batch)); }

  std::vector<ls::Variable> variables() const { return model.trainable_variables(); }
  ls::Tensor metric() const { return mean_loss.result(); }
};

int main(int argc, char** argv) try {
  const examples::Flags flags(
      argc, argv,
      {{"csv", "", "a file with a header, of numbers; without one, 10000 invented customers"},
       {"label", "bought", "the column that is 0 or 1"},
       {"epochs", "15", "passes over the training rows"},
       examples::kDoctor});
  const ls::Strategy strategy = flags.strategy();
  const ls::data::CsvOptions options{.label = ls::data::CsvColumn{.name = flags.text("label")},
                                     .missing = std::nan("")};
  const auto rows = flags.text("csv").empty()
                        ? ls::data::from_csv_text<Row>(customers(10000), options)
                        : ls::data::from_csv<Row>({flags.text("csv")}, options);
  const std::int64_t held_out = rows.cardinality() / 5;
  const auto train =
      strategy.distribute_dataset(rows.skip(held_out).shuffle({.seed = 7}).batch(256).prefetch(2));
  const auto test = strategy.distribute_dataset(rows.take(held_out).batch(1024));
  const Moments moments = moments_of(strategy, train);
  if (flags.given("doctor")) return examples::doctor([&] { return Training{moments}; }, rows);

  const auto scope = strategy.scope();
  Training training{moments};
  const auto train_step = [&](const Row& batch) { training.step(batch); };
  const auto test_step = [&](const Row& batch) { training.test(batch); };

  for (int epoch = 1; epoch <= flags.number<int>("epochs"); ++epoch) {
    training.mean_loss.reset_state();
    training.auc.reset_state();
    ls::train::ProgressBar bar(
        {.title = "epoch " + std::to_string(epoch), .total_steps = train.cardinality()});
    for (const auto& batch : train) {
      strategy.run(train_step, batch);
      bar.step(batch.rows()->global);
    }
    for (const auto& batch : test) strategy.run(test_step, batch);
    bar.finish({{"loss", training.mean_loss.result()}, {"held-out AUC", training.auc.result()}});
  }
} catch (const std::exception& error) {
  return examples::failed(error);
}
