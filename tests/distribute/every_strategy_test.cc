// SPDX-License-Identifier: Apache-2.0
// Steps that let replicas differ by data alone, under every kind of strategy.
#include <lockstep/lockstep.h>

#include "support/strategies.h"

namespace lockstep {
namespace {

using lockstep::testing::items;
using ::testing::DoubleNear;
using ::testing::Each;

class EveryStrategy : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(EveryStrategy);

Tensor is_replica(int index) {
  return equal(get_replica_context()->replica_id_in_sync_group(), index);
}

TEST_P(EveryStrategy, S05_ClipAfterAggregation) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable a(Tensor(0.0f)), b(Tensor(0.0f));
    optim::SGD sgd({.learning_rate = 1, .clip = {.global_norm = 1}});
    strategy.run([&] {
      GradientTape tape;
      sgd.minimize(select(is_replica(0), a * 3.0f, b * 4.0f), {a, b}, tape);
    });
    EXPECT_THAT(items(a.local_values()), Each(DoubleNear(-0.6, 1e-6)));
    EXPECT_THAT(items(b.local_values()), Each(DoubleNear(-0.8, 1e-6)));
  });
}

TEST_P(EveryStrategy, S06_ATermThatDoesNotDependOnData) {
  for (const int count : {2, 4})
    run(count, [](const Strategy& strategy) {
      const auto scope = strategy.scope();
      const Variable w(Tensor(2.0f));
      optim::SGD sgd({.learning_rate = 1});
      strategy.run([&] {
        GradientTape tape;
        sgd.minimize(nn::scale_regularization_loss(square(w) * 0.1), {w}, tape);
      });
      EXPECT_THAT(items(w.local_values()), Each(DoubleNear(2 - 0.4, 1e-6)));
    });
}

TEST_P(EveryStrategy, S10_EveryExampleCountsOnce) {
  // 777 of 1000 examples carry the label that is predicted; batches of 70, the last one short, that
  // four replicas get unevenly.
  struct Example {
    Tensor logits, label;
  };
  const Tensor logits = make_tensor<float>({1000, 2}, [](std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 2);
  });
  const Tensor labels = make_tensor<std::int64_t>({1000}, [](std::span<std::int64_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i < 777;
  });
  run(4, [&](const Strategy& strategy) {
    const auto batches = strategy.distribute_dataset(
        data::from_tensor_slices(Example{logits, labels}).shuffle({.seed = 1}).batch(70));
    const auto scope = strategy.scope();
    metrics::SparseCategoricalAccuracy accuracy;
    for (const auto& batch : batches)
      strategy.run([&](const Example& own) { accuracy.update_state(own.label, own.logits); },
                   batch);
    EXPECT_EQ(accuracy.result().item<double>(), 0.777);
  });
}

TEST_P(EveryStrategy, S13_MasksAreTheReplicasEverywhere) {
  const auto masks = [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const nn::Dropout dropout(0.5);
    const Tensor x = ones({1000});
    std::vector<std::vector<float>> values;
    for (const Tensor& mask : strategy.run([&] { return dropout(x, {.training = true}); }))
      values.push_back(copy_to(mask, Device{}).to_vector<float>());
    return values;
  };
  const auto expected = masks(testing::replicas(4));
  run(4, [&](const Strategy& strategy) {
    const auto got = masks(strategy);
    const std::size_t first = static_cast<std::size_t>(strategy.workers().rank()) * got.size();
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i], expected[first + i]) << "replica " << first + i;
      for (std::size_t j = 0; j < first + i; ++j) EXPECT_NE(got[i], expected[j]);
    }
  });
}

}  // namespace
}  // namespace lockstep
