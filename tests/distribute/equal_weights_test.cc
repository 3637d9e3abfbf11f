// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/testing.h>

#include <cmath>
#include <cstring>

#include "support/errors.h"
#include "support/networks.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::LeNet;
using lockstep::testing::Mlp;
using lockstep::testing::name_of;
using lockstep::testing::throws;
using lockstep::testing::train;
using lockstep::testing::vec;
using lockstep::testing::weights_after;

// Weights on all replicas are the same bits after every step; and the same numbers, whatever the
// number of replicas that the same global batches were dealt over.

TEST(EqualWeights, AfterEveryStepOnEveryReplica) {
  for (const ReplicaThreads threads : testing::kBothModes)
    for (const std::int64_t bytes_per_pack : {0, 64, 1000}) {
      const auto strategy = testing::replicas(3, threads, bytes_per_pack);
      train<Mlp<float>>(strategy, 20, [](std::span<const Variable> variables) {
        testing::require_equal_replicas(variables);
      });
    }
}

TEST(EqualWeights, RerunsGiveTheSameBits) {
  const auto first = weights_after<Mlp<float>>(testing::replicas(4), 30);
  for (int repeat = 0; repeat < 3; ++repeat)
    EXPECT_EQ(weights_after<Mlp<float>>(testing::replicas(4), 30), first);
  EXPECT_EQ(weights_after<Mlp<float>>(testing::replicas(4, ReplicaThreads::one_at_a_time), 30),
            first);
  EXPECT_EQ(weights_after<Mlp<float>>(testing::replicas(4, ReplicaThreads::concurrent, 64), 30),
            first)
      << "buckets do not enter the order of summation";
  for (const int num_packs : {0, 1, 2}) {
    const MirroredStrategy packed(
        {.devices = testing::cpus(4), .communication = {.num_packs = num_packs}});
    EXPECT_EQ(weights_after<Mlp<float>>(packed, 30), first);
  }
}

// The largest difference of two lists of weights, relative to the largest weight.
template <class T>
double distance(const std::vector<std::vector<T>>& a, const std::vector<std::vector<T>>& b) {
  double difference = 0, largest = 0;
  for (std::size_t v = 0; v < a.size(); ++v)
    for (std::size_t i = 0; i < a[v].size(); ++i) {
      difference = std::max(difference, std::abs(static_cast<double>(a[v][i] - b[v][i])));
      largest = std::max(largest, std::abs(static_cast<double>(a[v][i])));
    }
  return difference / largest;
}

template <class Network, class T>
void expect_same_numbers(int steps, double tolerance) {
  const auto one = weights_after<Network>(testing::replicas(1), steps);
  for (const int count : {2, 4})
    EXPECT_LT(distance<T>(weights_after<Network>(testing::replicas(count), steps), one), tolerance)
        << count << " replicas";
}

TEST(ReplicaCounts, AnMlpOfDoublesAgreesTo1e5) {
  expect_same_numbers<Mlp<double>, double>(100, 1e-5);
}
TEST(ReplicaCounts, AnMlpOfFloatsAgreesTo1e3) { expect_same_numbers<Mlp<float>, float>(100, 1e-3); }
TEST(ReplicaCounts, ALeNetOfDoublesAgreesTo1e5) {
  expect_same_numbers<LeNet<double>, double>(100, 1e-5);
}
TEST(ReplicaCounts, ALeNetOfFloatsAgreesTo1e3) {
  expect_same_numbers<LeNet<float>, float>(100, 1e-3);
}

TEST(RequireEqualReplicas, FindsOneFlippedBit) {
  const auto strategy = testing::replicas(2);
  const auto scope = strategy.scope();
  std::vector<Variable> variables{Variable(vec({1, 2}), {.name = "dense/kernel"}),
                                  Variable(vec({3, 4, 5}), {.name = "dense/bias"})};
  testing::require_equal_replicas(variables);
  std::vector<float> values = variables[1].local_values()[1].to_vector<float>();
  std::uint32_t bits = 0;
  std::memcpy(&bits, &values[2], sizeof bits);
  bits ^= 1;
  std::memcpy(&values[2], &bits, sizeof bits);
  variables[1].set_local_value(1, Tensor(Shape{3}, std::span<const float>(values)));
  EXPECT_THAT([&] { testing::require_equal_replicas(variables); },
              throws<InternalError>("'dense/bias'", "index 2", "replica 0", "replica 1"));
}

TEST(RequireEqualReplicas, LooksAtBitsAndNotAtOnReadVariables) {
  const auto strategy = testing::replicas(2);
  const auto scope = strategy.scope();
  Variable zero(Tensor(0.0f)),
      counter(Tensor(0.0f), {.synchronization = VariableSynchronization::on_read});
  counter.set_local_value(1, Tensor(5.0f));
  const Variable nan(Tensor(std::nanf("")));
  testing::require_equal_replicas(std::vector{zero, counter, nan});
  zero.set_local_value(1, Tensor(-0.0f));
  EXPECT_THAT([&] { testing::require_equal_replicas(std::vector{zero}); },
              throws<InternalError>("replica 1"));
}

}  // namespace
}  // namespace lockstep
