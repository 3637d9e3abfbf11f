// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <algorithm>
#include <cmath>

#include "support/errors.h"
#include "support/strategies.h"
#include "support/values.h"

namespace lockstep::optim {
namespace {

using testing::Noise;
using testing::throws;

class NoiseScale : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(NoiseScale);

// The gradient of the loss w . x of an example is x itself: the estimates for rows x dealt as here,
// by their definition.
struct Expected {
  double noise, signal;
};
Expected estimate(const std::vector<double>& x, std::size_t width, int replicas) {
  const std::size_t rows = x.size() / width;
  const auto mean_square = [&](std::size_t begin, std::size_t end) {
    double square = 0;
    for (std::size_t k = 0; k < width; ++k) {
      double mean = 0;
      for (std::size_t row = begin; row < end; ++row) mean += x[row * width + k];
      mean /= static_cast<double>(end - begin);
      square += mean * mean;
    }
    return square;
  };
  const double big = mean_square(0, rows), b = static_cast<double>(rows);
  double small = 0, taking_part = 0;
  for (int r = 0; r < replicas; ++r) {
    const auto mine = rows_of_part(static_cast<std::int64_t>(rows), replicas, r);
    if (mine.size() <= 0) continue;
    taking_part += 1;
    small += static_cast<double>(mine.size()) / b *
             mean_square(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.end));
  }
  // small = |G|^2 + taking_part * noise / b, big = |G|^2 + noise / b
  const double noise = (small - big) / (taking_part - 1) * b;
  return {noise, big - noise / b};
}

TEST_P(NoiseScale, ComparesTheReplicasGradientsWithTheirSum) {
  for (const std::int64_t rows : {8, 6, 5}) {
    const Tensor x = Noise(9).tensor<float>({rows, 3}) + 0.5f;
    const auto [noise, signal] = estimate(cast(x, DType::f64).to_vector<double>(), 3, 4);
    for (const bool scaled : {false, true})
      run(4, [&](const Strategy& strategy) {
        const auto batches = strategy.distribute_dataset(data::from_tensor_slices(x).batch(8));
        const auto scope = strategy.scope();
        const Variable w(zeros({3}));
        SGD sgd({.learning_rate = 0});
        LossScaleOptimizer optimizer(sgd, {.initial_scale = 64});
        GradientNoiseScale measured({.momentum = 0});
        sgd.measure(measured);
        for (const auto& batch : batches)
          strategy.run(
              [&](const Tensor& mine) {
                GradientTape tape;
                const Tensor loss = nn::compute_average_loss(sum(mine * w, {.axes = {1}}));
                if (scaled)
                  optimizer.minimize(loss, {w}, tape);
                else
                  sgd.minimize(loss, {w}, tape);
              },
              batch);
        testing::require_equal_replicas(std::vector{measured.noise(), measured.signal()});
        EXPECT_NEAR(measured.noise().read().item<double>(), noise, 1e-5 * std::abs(noise)) << rows;
        EXPECT_NEAR(measured.signal().read().item<double>(), signal, 1e-5) << rows;
        EXPECT_NEAR(measured.result().item<double>(), noise / signal,
                    1e-3 * std::abs(noise / signal));
      });
  }
}

// Calls of 7, 7, 7 and 3 rows on four replicas, one of which the last replica votes out, by the
// definition: of each replica's part of the mean of the other calls' means.
class NoiseOfCalls {
 public:
  static constexpr int kReplicas = 4, kCalls = 3, kBatch = 7, kRows = 24, kWidth = 2;
  const Tensor x = Noise(4).tensor<float>({kRows, kWidth}) + 0.5f;

  // Of all calls but one.
  Expected without(int voted) const;
};

Expected NoiseOfCalls::without(int voted) const {
  const std::vector<double> values = cast(x, DType::f64).to_vector<double>();
  double small = 0, big = 0, per_replica = 0, all = 0;
  std::vector<double> whole(kWidth);
  for (int r = 0; r < kReplicas; ++r) {
    std::vector<double> part(kWidth);
    double share = 0, squares = 0, norm = 0;
    for (int call = 0; call <= kCalls; ++call) {
      if (call == voted) continue;
      const std::int64_t rows = std::min(kBatch, kRows - call * kBatch);
      const double weight = 1.0 / (kCalls * static_cast<double>(rows));
      const auto mine = rows_of_part(rows, kReplicas, r);
      for (std::int64_t row = mine.begin; row < mine.end; ++row) {
        share += weight;
        squares += weight * weight;
        for (std::size_t k = 0; k < kWidth; ++k)
          part[k] += weight * values[static_cast<std::size_t>(call * kBatch + row) * kWidth + k];
      }
    }
    for (std::size_t k = 0; k < kWidth; ++k) {
      norm += part[k] * part[k];
      whole[k] += part[k];
    }
    small += norm / share;
    per_replica += squares / share;
    all += squares;
  }
  for (const double value : whole) big += value * value;
  const double noise = (small - big) / (per_replica - all);
  return {noise, big - noise * all};
}

TEST_P(NoiseScale, WeighsRowsOfUnevenCallsThatAccumulate) {
  const NoiseOfCalls calls;
  run(calls.kReplicas, [&](const Strategy& strategy) {
    const auto batches =
        strategy.distribute_dataset(data::from_tensor_slices(calls.x).batch(calls.kBatch));
    const auto scope = strategy.scope();
    const Variable w(zeros({calls.kWidth}));
    SGD sgd({.learning_rate = 0, .gradient_accumulation_steps = calls.kCalls});
    GradientNoiseScale measured({.momentum = 0});
    sgd.measure(measured);
    for (int voted = 0; voted <= calls.kCalls; ++voted) {
      int call = 0;
      for (const auto& batch : batches) {
        strategy.run(
            [&](const Tensor& mine) {
              ReplicaContext& replica = *get_replica_context();
              replica.vote_skip(equal(replica.replica_id_in_sync_group(), call == voted ? 3 : -1));
              GradientTape tape;
              sgd.minimize(nn::compute_average_loss(sum(mine * w, {.axes = {1}})), {w}, tape);
            },
            batch);
        ++call;
      }
      testing::require_equal_replicas(std::vector{measured.noise(), measured.signal()});
      const Expected expected = calls.without(voted);
      EXPECT_NEAR(measured.noise().read().item<double>(), expected.noise,
                  1e-5 * std::abs(expected.noise))
          << voted;
      EXPECT_NEAR(measured.signal().read().item<double>(), expected.signal, 1e-5) << voted;
    }
  });
}

// Of gradients with mean (1, 1) and independent noise of variance 1/3 * 3^2 = 3 each: 6 / 2 examples.
TEST(NoiseScaleOverTime, FindsTheBatchOfAKnownDistribution) {
  const MirroredStrategy strategy = testing::replicas(4);
  const Tensor x = Noise(5).tensor<float>({64 * 60, 2}, 3) + 1.0f;
  const auto batches = strategy.distribute_dataset(data::from_tensor_slices(x).batch(64));
  const auto scope = strategy.scope();
  const Variable w(zeros({2}));
  SGD sgd({.learning_rate = 0});
  GradientNoiseScale noise({.momentum = 0.99});
  EXPECT_TRUE(std::isnan(noise.result().item<double>()));
  sgd.measure(noise);
  for (const auto& batch : batches)
    strategy.run(
        [&](const Tensor& mine) {
          GradientTape tape;
          sgd.minimize(nn::compute_average_loss(sum(mine * w, {.axes = {1}})), {w}, tape);
        },
        batch);
  EXPECT_NEAR(noise.result().item<double>(), 3, 0.6);
}

TEST(NoiseScaleMisuse, IsATypedError) {
  EXPECT_THROW(GradientNoiseScale({.momentum = 1}), InvalidArgument);
  const Variable w(zeros({2}));
  SGD sgd;
  GradientNoiseScale noise;
  sgd.measure(noise);
  EXPECT_THAT([&] { sgd.apply_gradients({zeros({2})}, {w}); },
              throws<FailedPrecondition>("[GradientNoiseScale]", "distributed batch"));
}

TEST(NoiseScaleMisuse, OutsideTheScopeChangesNothing) {
  GradientNoiseScale noise;
  const MirroredStrategy strategy = testing::replicas(2);
  const auto batches = strategy.distribute_dataset(data::from_tensor_slices(ones({4, 1})).batch(4));
  const auto scope = strategy.scope();
  const Variable w(Tensor(1.0f));
  SGD sgd({.learning_rate = 1});
  sgd.measure(noise);
  for (const auto& batch : batches)
    EXPECT_THAT(
        [&] {
          strategy.run([&](const Tensor&) { sgd.apply_gradients({Tensor(1.0f)}, {w}); }, batch);
        },
        throws<FailedPrecondition>("[GradientNoiseScale]", "scope"));
  ASSERT_TRUE(w.valid());
  EXPECT_EQ(w.read().item<float>(), 1);
  EXPECT_EQ(sgd.steps_attempted().read().item<int>(), 0);
}

}  // namespace
}  // namespace lockstep::optim
