// SPDX-License-Identifier: Apache-2.0
// A generative adversarial network on any number of replicas: Wasserstein's, with a gradient penalty
// (arXiv:1704.00028). Two models, two optimizers, and a gradient of a gradient.
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <numbers>
#include <set>
#include <vector>

#include "program.h"
namespace ls = lockstep;

constexpr std::int64_t kBatchSize = 256, kLatentSize = 16;
constexpr int kModes = 8, kCriticSteps = 5;
constexpr double kStddev = 0.1, kSector = 2 * std::numbers::pi / kModes;

// Points [count, 2] around the modes, which lie on a circle of radius 2.
ls::Tensor mixture(std::int64_t count) {
  const ls::Tensor angle = ls::cast(ls::uniform_int({count}, 0, kModes), ls::DType::f32) * kSector;
  return 2 * ls::stack({ls::cos(angle), ls::sin(angle)}, 1) + ls::normal({count, 2}, 0, kStddev);
}

// Says how many modes have points near them, within three standard deviations, and how many of the
// points those are.
void judge(const ls::Tensor& points) {
  std::set<int> modes;
  int near = 0;
  const std::vector<float> xy = points.to_vector<float>();
  for (std::size_t i = 0; i < xy.size(); i += 2) {
    const double mode = std::round(std::atan2(xy[i + 1], xy[i]) / kSector);
    const double distance =
        std::hypot(xy[i] - 2 * std::cos(mode * kSector), xy[i + 1] - 2 * std::sin(mode * kSector));
    if (distance < 3 * kStddev) {
      modes.insert((static_cast<int>(mode) + kModes) % kModes);
      ++near;
    }
  }
  std::printf("%zu of %d modes, %.3f of the points near them\n", modes.size(), kModes,
              2.0 * near / static_cast<double>(xy.size()));
}

// The first four images, of 28 x 28 pixels, side by side.
void draw(const ls::Tensor& images) {
  const std::vector<float> pixels = images.to_vector<float>();
  for (std::size_t row = 0; row < 28; row += 2, std::puts(""))
    for (std::size_t column = 0; column < 4 * 28; ++column) {
      const float pixel = pixels[column / 28 * 784 + row * 28 + column % 28];
      std::putchar(" .:-=+*#%@"[static_cast<int>(std::clamp(pixel, 0.0f, 0.99f) * 10)]);
    }
}

// How steep the critic is at each of the points: the norm of its gradient. A tape around the call
// records that gradient, too.
ls::Tensor slope(const ls::nn::Sequential& critic, const ls::Tensor& points) {
  ls::GradientTape tape;
  tape.watch(points);
  const ls::Tensor gradient = tape.gradient(critic(points), {points})[0];
  return ls::sqrt(ls::sum(ls::square(gradient), {.axes = {1}}) + 1e-12);
}

ls::optim::Adam adam(int updates) {
  return ls::optim::Adam({.learning_rate = ls::optim::cosine_decay(3e-3, {.decay_steps = updates}),
                          .beta_1 = 0.5,
                          .beta_2 = 0.9});
}

struct CriticLoss {
  ls::Tensor loss, distance;  // parts of what all replicas have
};

struct Training {
  std::int64_t size, hidden;
  int steps;
  ls::nn::Sequential generator{ls::nn::Dense(kLatentSize, hidden, {.activation = ls::nn::relu}),
                               ls::nn::Dense(hidden, hidden, {.activation = ls::nn::relu}),
                               ls::nn::Dense(hidden, size)};
  ls::nn::Sequential critic{ls::nn::Dense(size, hidden, {.activation = ls::nn::relu}),
                            ls::nn::Dense(hidden, hidden, {.activation = ls::nn::relu}),
                            ls::nn::Dense(hidden, 1)};
  ls::optim::Adam generator_optimizer = adam(steps), critic_optimizer = adam(steps * kCriticSteps);

  ls::Tensor made(std::int64_t count) const { return generator(ls::normal({count, kLatentSize})); }

  CriticLoss critic_step(const ls::Tensor& real) {
    const ls::Tensor fake = made(real.dim(0)), mix = ls::uniform({real.dim(0), 1});
    ls::GradientTape tape;
    const ls::Tensor penalty = ls::square(slope(critic, mix * real + (1 - mix) * fake) - 1);
    const ls::Tensor distance = ls::squeeze(critic(real) - critic(fake), {1});
    const ls::Tensor loss = ls::nn::compute_average_loss(10 * penalty - distance);
    critic_optimizer.minimize(loss, critic.trainable_variables(), tape);
    return {loss, ls::nn::compute_average_loss(distance)};
  }
  void generator_step(std::int64_t rows) {
    ls::GradientTape tape;
    generator_optimizer.minimize(ls::nn::compute_average_loss(-critic(made(rows))),
                                 generator.trainable_variables(), tape);
  }

  // What the doctor looks at: an update of each.
  ls::Tensor step(const ls::Tensor& real) {
    const ls::Tensor loss = critic_step(real).loss;
    generator_step(real.dim(0));
    return loss;
  }
  std::vector<ls::Variable> variables() const {
    std::vector<ls::Variable> all = critic.trainable_variables();
    for (const ls::Variable& each : generator.trainable_variables()) all.push_back(each);
    return all;
  }
};

int main(int argc, char** argv) try {
  const examples::Flags flags(
      argc, argv,
      {{"data", "mixture", "of eight normal distributions; or fashion_mnist"},
       {"steps", "3000", "updates of the generator"},
       {"print_every", "500", "steps between two lines of output"},
       examples::kDoctor});
  const ls::Strategy strategy = flags.strategy();
  const bool clothes = flags.text("data") == "fashion_mnist";
  const ls::Tensor points =
      clothes ? ls::reshape(ls::data::read_fashion_mnist("train")[0], {-1, 784}) : mixture(20'000);
  const auto rows = ls::data::from_tensor_slices(points);
  const int steps = flags.number<int>("steps");
  const auto make = [&] { return Training{points.dim(1), clothes ? 256 : 64, steps}; };
  if (flags.given("doctor")) return examples::doctor(make, rows);

  examples::print(strategy, "%s\n", strategy.describe().c_str());
  auto batches =
      strategy.distribute_dataset(rows.shuffle({.seed = 7}).repeat().batch(kBatchSize).prefetch(2))
          .iterator();
  const auto scope = strategy.scope();
  Training training = make();
  const std::int64_t part = kBatchSize / strategy.num_replicas_in_sync();  // that a replica makes
  const auto critic_step = [&](const ls::Tensor& real) { return training.critic_step(real); };
  const auto generator_step = [&] { training.generator_step(part); };

  for (int step = 1; step <= steps; ++step) {
    ls::Tensor distance;
    for (int i = 0; i < kCriticSteps; ++i)
      distance =
          strategy.reduce(ls::ReduceOp::sum, strategy.run(critic_step, *batches.next())).distance;
    strategy.run(generator_step);
    if (step % flags.number<int>("print_every", 1) == 0)
      examples::print(strategy, "step %d: distance %.6f\n", step, distance.item<double>());
  }
  const ls::Tensor samples = strategy.gather(strategy.run([&] { return training.made(4 * part); }));
  if (strategy.workers().is_chief()) clothes ? draw(samples) : judge(samples);
} catch (const std::exception& error) {
  return examples::failed(error);
}
