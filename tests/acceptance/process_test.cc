// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/errors.h"
#include "support/process.h"
#include "support/quiet_log.h"
#include "support/replicas.h"
#include "support/sanitizers.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::caught;
using lockstep::testing::items;
using lockstep::testing::name_of;
using lockstep::testing::num_descriptors;
using lockstep::testing::num_threads;
using lockstep::testing::num_threads_once_settled;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::resident_bytes;
using lockstep::testing::throws;
using ::testing::Each;
using ::testing::HasSubstr;

using Seconds = std::chrono::duration<double>;

// What a process that trains for long, or with many strategies, relies on.
class Process : public ::testing::TestWithParam<ReplicaThreads> {};
INSTANTIATE_TEST_SUITE_P(Modes, Process, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Process, S16_RunFromTwoThreads) {
  const auto strategy = replicas(2, GetParam());
  const auto start = std::chrono::steady_clock::now();
  const auto host_thread = [&](int number) {
    for (int i = 0; i < 200; ++i) {
      const float mine = static_cast<float>(1000 * number + i);
      const auto results = strategy.run([&] {
        return get_replica_context()->all_reduce(
            ReduceOp::sum, Tensor(mine + static_cast<float>(replica_index())));
      });
      ASSERT_THAT(items(results), Each(2 * mine + 1));
    }
  };
  std::thread first(host_thread, 1), second(host_thread, 2);
  first.join();
  second.join();
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - start).count(), 60);
}

TEST(ALongRun, S32_NoGrowth) {
  const auto strategy = replicas(2);
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Tensor(Shape{2, 1}, {1.0f, 2.0f})).repeat().batch(2));
  const auto scope = strategy.scope();
  const Variable w(full({1 << 18}, 2.0));  // a MiB
  optim::SGD sgd({.learning_rate = 0.01});
  auto batch = batches.iterator();
  std::int64_t after_500 = 0, after_1500 = 0;
  const int steps = testing::kSanitized ? 200 : 2000;
  for (int step = 1; step <= steps; ++step) {
    strategy.run(
        [&](const Tensor& x) {
          GradientTape tape;
          sgd.minimize(nn::compute_average_loss(mean(square(w * x - 1), {.axes = {1}})), {w}, tape);
        },
        *batch.next());
    if (step == 500) after_500 = resident_bytes();
    if (step == 1500) after_1500 = resident_bytes();
  }
  if (testing::kSanitized) GTEST_SKIP() << "resident memory is the sanitizer's";
  EXPECT_LE(static_cast<double>(after_1500 - after_500), 0.02 * static_cast<double>(after_500));
}

TEST(Devices, S38_MoreReplicasThanCores) {
  EXPECT_EQ(MirroredStrategy({.devices = testing::cpus(4)}).num_replicas_in_sync(), 4);
}

TEST(Devices, S38_AGpuThatIsNotThereIsAnError) {
  EXPECT_THAT([] { MirroredStrategy({.devices = {"GPU:0"}}); }, throws<Unavailable>("GPU:0"));
  EXPECT_THAT([] { OneDeviceStrategy({.device = "GPU:0"}); }, throws<Unavailable>("GPU:0"));
  EXPECT_THAT(
      [] {
        MirroredStrategy({.devices = {"CPU:0", "GPU:0"}});
      },
      throws<Unavailable>("GPU:0"));
  EXPECT_THAT([] { MirroredStrategy({.devices = {"GPU:*"}}); },
              throws<Unavailable>("GPU", "fallback_to_cpu"));
}

TEST(Devices, S38_FallingBackIsTheCallersChoice) {
  const MirroredStrategy strategy({.devices = {"GPU:*"}, .fallback_to_cpu = true});
  EXPECT_THAT(strategy.describe(), HasSubstr("CPU:0"));
}

// Creates a strategy, uses it once, in every third case leaves it by an exception.
void use_once(int number, ReplicaThreads threads) {
  const int count = 1 + number % 4;
  const auto strategy = replicas(count, threads);
  const auto scope = strategy.scope();
  Variable v(Tensor(1.0f), {.aggregation = VariableAggregation::sum});
  const auto results =
      strategy.run([&] { return v.assign_add(Tensor(static_cast<float>(replica_index()))); });
  EXPECT_THAT(items(results), Each(1 + count * (count - 1) / 2));
  if (number % 3 == 0)
    strategy.run([&] {
      if (replica_index() == count - 1) throw std::runtime_error("pending");
      get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f));
    });
  if (number % 3 == 1) throw std::runtime_error("pending");
}

TEST_P(Process, S42_ManyStrategies) {
  const testing::QuietLog quiet;
  const auto round = [&](int number) {
    try {
      use_once(number, GetParam());
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "pending");
    }
  };
  const int threads = num_threads();
  round(0);  // what the first strategy of a process opens, stays open
  const int descriptors = num_descriptors();
  for (int number = 0; number < 30; ++number) {
    round(number);
    EXPECT_EQ(num_threads_once_settled(threads), threads);
    EXPECT_EQ(num_descriptors(), descriptors);
  }
}

TEST_P(Process, S43_OutOfMemoryOnOneReplica) {
  constexpr std::int64_t kMiB = 1 << 20;
  const Device second{DeviceKind::cpu, 1};
  const auto strategy = replicas(2, GetParam());
  const auto step = [&](std::int64_t bytes) {
    return strategy.run([&] {
      const Tensor activations = ones({bytes / 4});
      return get_replica_context()->all_reduce(ReduceOp::sum, mean(activations));
    });
  };
  set_memory_limit(second, 64 * kMiB);
  const auto start = std::chrono::steady_clock::now();
  const auto error = caught<ResourceExhausted>([&] { step(100 * kMiB); });
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - start).count(), 10);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->context().replica, 1);
  for (const char* word :
       {"replica 1", "CPU:1", "asked 104857600", "in use", "peak", "limit 67108864"})
    EXPECT_THAT(error->what(), HasSubstr(word));
  EXPECT_THAT(items(step(10 * kMiB)), Each(2));
  set_memory_limit(second, 0);
  EXPECT_THAT(items(step(100 * kMiB)), Each(2));
}

}  // namespace
}  // namespace lockstep
