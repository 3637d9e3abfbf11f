// SPDX-License-Identifier: Apache-2.0
// MirroredStrategy on devices whose streams run late and in odd orders: the numbers, and that
// nothing but streams, events and collectives orders what depends on each other.
#include <lockstep/autodiff/tape.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/nn/dense.h>
#include <lockstep/nn/losses.h>
#include <lockstep/nn/sequential.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/optim/adam.h>
#include <lockstep/tensor/factory.h>

#include <cmath>

#include "device/fake/devices.h"
#include "distribute/bucket_fault.h"
#include "support/errors.h"
#include "support/replicas.h"
#include "support/sanitizers.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::caught;
using lockstep::testing::cpus;
using lockstep::testing::Noise;
using lockstep::testing::replica_id;
using lockstep::testing::replica_index;
using lockstep::testing::throws;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Example {
  Tensor x, label;
};

struct Trained {
  std::vector<float> weights;
  double loss = 0;  // of the last step
};

// Two steps of Adam on a small network, in buckets of a few tensors each. Of twelve rows the last of
// eight replicas get none.
Trained train(const std::vector<std::string>& devices, ReplicaThreads threads,
              CrossDeviceOps ops = CrossDeviceOps::automatic) {
  constexpr std::int64_t kRows = 12;
  const MirroredStrategy strategy({.devices = devices,
                                   .replica_threads = threads,
                                   .cross_device_ops = ops,
                                   .communication = {.bytes_per_pack = 100}});
  const auto scope = strategy.scope();
  const nn::Sequential model(nn::Dense(6, 5, {.activation = nn::relu}), nn::Dense(5, 4),
                             nn::Dense(4, 3));
  optim::Adam optimizer({.learning_rate = 0.05});
  Noise noise(4);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 2 * kRows; ++i) labels.push_back(i % 3);
  const auto batches = strategy.distribute_dataset(
      data::from_tensor_slices(Example{noise.tensor<float>({2 * kRows, 6}),
                                       Tensor({2 * kRows}, std::span<const std::int64_t>(labels))})
          .batch(kRows));
  Trained trained;
  for (const auto& batch : batches) {
    const auto losses = strategy.run(
        [&](const Example& example) {
          GradientTape tape;
          const Tensor loss = nn::compute_average_loss(
              nn::sparse_softmax_cross_entropy(example.label, model(example.x)));
          optimizer.minimize(loss, model.trainable_variables(), tape);
          return loss;
        },
        batch);
    trained.loss = strategy.reduce(ReduceOp::sum, losses).template item<double>();
  }
  testing::require_equal_replicas(model.trainable_variables());
  for (const Variable& variable : model.trainable_variables())
    for (const float weight : variable.read().to_vector<float>()) trained.weights.push_back(weight);
  return trained;
}

// Under sanitizers, which are slow, a part of the seeds.
const std::uint64_t kSeeds = testing::kSanitized ? 20 : 500;

ReplicaThreads mode_of(std::uint64_t seed) {
  return seed % 2 ? ReplicaThreads::concurrent : ReplicaThreads::one_at_a_time;
}

class FakeReplicas : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Replicas, FakeReplicas, ::testing::Range(2, 9));

TEST_P(FakeReplicas, TrainAsCpusDoWithoutARaceOnEverySeed) {
  const Trained expected = train(cpus(GetParam()), ReplicaThreads::concurrent);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    // Guarding the memory is dear: on some seeds.
    fake::Devices devices({.devices = GetParam(), .seed = seed, .guard_memory = seed % 10 == 0});
    const Trained trained = train(devices.names(), mode_of(seed));
    ASSERT_THAT(devices.findings(), IsEmpty()) << seed;
    ASSERT_NEAR(trained.loss, expected.loss, 1e-5) << seed;
    ASSERT_EQ(trained.weights.size(), expected.weights.size());
    for (std::size_t i = 0; i < trained.weights.size(); ++i)
      ASSERT_NEAR(trained.weights[i], expected.weights[i], 2e-4) << seed << " at " << i;
  }
}

TEST_P(FakeReplicas, TrainByWayOfTheHostToTheBitsOfCpus) {
  const Trained expected = train(cpus(GetParam()), ReplicaThreads::concurrent);
  for (std::uint64_t seed = 0; seed < kSeeds / 5; ++seed) {
    fake::Devices devices({.devices = GetParam(), .seed = seed, .guard_memory = seed % 10 == 0});
    const Trained trained =
        train(devices.names(), mode_of(seed), CrossDeviceOps::reduction_to_one_device);
    ASSERT_THAT(devices.findings(), IsEmpty()) << seed;
    ASSERT_EQ(trained.weights, expected.weights) << seed;
  }
}

// ---- what is wrong with a bucketer is found on every seed

struct Fault {
  BucketFault fault;
  const char* name;
  bool race;                    // found by the fake device; else by the ranks, as a PeerError
  const char *text, *and_text;  // in one of what is found
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class FakeReplicasFault : public ::testing::TestWithParam<Fault> {
 protected:
  FakeReplicasFault() { injected_bucket_fault = GetParam().fault; }
  ~FakeReplicasFault() override { injected_bucket_fault = BucketFault::none; }
};
INSTANTIATE_TEST_SUITE_P(
    Faults, FakeReplicasFault,
    ::testing::Values(
        Fault{BucketFault::no_wait_for_backward, "NoWaitForBackward", true, "race: ", "all_reduce"},
        Fault{BucketFault::no_wait_for_reduction, "NoWaitForReduction", true, "race: apply_update",
              "all_reduce"},
        Fault{BucketFault::wait_before_record, "WaitBeforeRecord", true, "wait before record",
              "communication"},
        Fault{BucketFault::other_order, "OtherOrder", false, "ranks disagree", "gradients/0"},
        Fault{BucketFault::short_count, "ShortCount", false, "ranks disagree", "gradients/0"},
        Fault{BucketFault::skipped_bucket, "SkippedBucket", false, "ranks disagree",
              "gradients/0"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(FakeReplicasFault, IsFoundOnEverySeed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const int replicas = 2 + static_cast<int>(seed % 3);
    fake::Devices devices({.devices = replicas, .seed = seed, .guard_memory = false});
    if (GetParam().race) {
      try {
        train(devices.names(), mode_of(seed));
      } catch (const InternalError&) {  // replicas that are not equal any more
      }
      ASSERT_THAT(devices.findings(),
                  Contains(AllOf(HasSubstr(GetParam().text), HasSubstr(GetParam().and_text))))
          << seed;
    } else {
      ASSERT_THAT([&] { train(devices.names(), mode_of(seed)); },
                  throws<PeerError>(GetParam().text, GetParam().and_text))
          << seed;
    }
  }
}

// A device that runs everything at once shows nothing: the reason for all this.
TEST(FakeReplicas, AnEagerDeviceGetsTheNumbersRightWithoutTheWait) {
  injected_bucket_fault = BucketFault::no_wait_for_backward;
  const Trained expected = train(cpus(2), ReplicaThreads::one_at_a_time);
  fake::Devices devices({.devices = 2, .eager = true});
  const Trained trained = train(devices.names(), ReplicaThreads::one_at_a_time);
  injected_bucket_fault = BucketFault::none;
  for (std::size_t i = 0; i < trained.weights.size(); ++i)
    EXPECT_NEAR(trained.weights[i], expected.weights[i], 1e-4) << i;
}

// ---- the rest of what replicas do

TEST(FakeReplicas, OffersTheReplicaContext) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    fake::Devices devices({.devices = 3, .seed = seed});
    const MirroredStrategy strategy({.devices = devices.names(), .replica_threads = mode_of(seed)});
    EXPECT_THAT(strategy.describe(), HasSubstr("FAKE:2"));
    const auto results = strategy.run([] {
      ReplicaContext& context = *get_replica_context();
      const Tensor own(replica_id() + 1);
      EXPECT_EQ(own.device().kind, DeviceKind::fake);
      EXPECT_EQ(context.all_reduce(ReduceOp::sum, own).item<float>(), 6);
      EXPECT_EQ(context.all_reduce(ReduceOp::mean, own * own).item<float>(), 14.0f / 3);
      EXPECT_EQ(context.all_reduce(ReduceOp::sum, own.to_host()).item<float>(), 6);
      EXPECT_EQ(context.global_count(replica_index()).item<int>(), 3);
      const Tensor rows = full({replica_index(), 2}, replica_id());
      EXPECT_THAT(context.all_gather(rows).to_vector<float>(),
                  ::testing::ElementsAre(1, 1, 2, 2, 2, 2));
      int merged = 0;
      context.merge_call([&] { ++merged; });
      EXPECT_EQ(merged, replica_index() == 0);
      return rows;
    });
    EXPECT_EQ(strategy.gather(results).shape(), Shape({3, 2}));
    EXPECT_THAT(devices.findings(), IsEmpty()) << seed;
  }
}

// Devices that are listed decide, as TensorFlow's do; FAKE stands for GPUs, and what is its own for
// NCCL. TensorFlow brings CPUs and GPUs, and logical GPUs, together by other ops: here they are refused.
TEST(FakeReplicas, CDO_08_CrossDeviceOpsAreChosenByTheDevices) {
  fake::Devices devices({.devices = 2, .seed = 3});
  const auto of = [](const std::vector<std::string>& names,
                     CrossDeviceOps ops = CrossDeviceOps::automatic) {
    return MirroredStrategy({.devices = names, .cross_device_ops = ops});
  };
  EXPECT_THAT(of(cpus(2)).describe(), ::testing::Not(HasSubstr("collectives")));
  EXPECT_THAT(of(devices.names()).describe(), HasSubstr("collectives: fake"));
  EXPECT_THAT(of(devices.names(), CrossDeviceOps::nccl_all_reduce).describe(),
              HasSubstr("collectives: fake"));
  EXPECT_THAT(of(devices.names(), CrossDeviceOps::reduction_to_one_device).describe(),
              HasSubstr("collectives: by way of the host"));
  EXPECT_THAT([&] { of({"CPU:0", "FAKE:0"}); }, throws<InvalidArgument>("two kinds"));
  EXPECT_THAT([&] { of({"FAKE:0", "FAKE:1", "FAKE:1"}); }, throws<InvalidArgument>("named twice"));
  EXPECT_THAT([&] { of(cpus(2), CrossDeviceOps::nccl_all_reduce); },
              throws<FailedPrecondition>("nccl_all_reduce", "CPU:0", "automatic"));
  for (const auto ops : {CrossDeviceOps::automatic, CrossDeviceOps::reduction_to_one_device}) {
    const MirroredStrategy strategy = of(devices.names(), ops);
    const auto sums = strategy.run([] {
      const Tensor own(std::int32_t{1} << (20 + replica_index()));
      return get_replica_context()->all_reduce(ReduceOp::sum, own);
    });
    EXPECT_THAT(testing::items<std::int32_t>(sums), ::testing::Each(3 << 20));
  }
  EXPECT_THAT(devices.findings(), IsEmpty());
}

TEST(FakeReplicas, AFailureReleasesTheOthersAndTheNextRunWorks) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    fake::Devices devices({.devices = 3, .seed = seed});
    {
      const MirroredStrategy strategy(
          {.devices = devices.names(),
           .replica_threads = mode_of(seed),
           .cross_device_ops =
               seed % 4 < 2 ? CrossDeviceOps::automatic : CrossDeviceOps::reduction_to_one_device});
      const auto sum_on_all = [&](int failing) {
        strategy.run([&] {
          ReplicaContext& context = *get_replica_context();
          const Tensor one = context.all_reduce(ReduceOp::sum, Tensor(1.0f));
          if (replica_index() == failing) throw InvalidArgument("[test] one replica fails");
          EXPECT_EQ(context.all_reduce(ReduceOp::sum, one).item<float>(), 9);
        });
      };
      sum_on_all(-1);
      for (int failing = 0; failing < 3; ++failing) {
        EXPECT_THAT([&] { sum_on_all(failing); }, throws<InvalidArgument>("one replica fails"));
        sum_on_all(-1);
      }
    }
    EXPECT_THAT(devices.findings(), IsEmpty()) << seed;
  }
}

TEST(FakeReplicas, VariablesAreReadAndWrittenFromBothSides) {
  fake::Devices devices({.devices = 2, .seed = 9});
  const MirroredStrategy strategy({.devices = devices.names()});
  const auto scope = strategy.scope();
  Variable weight(Tensor(2.0f), {.name = "weight"});
  Variable seen(Tensor(0.0f), {.name = "seen",
                               .trainable = false,
                               .synchronization = VariableSynchronization::on_read,
                               .aggregation = VariableAggregation::sum});
  strategy.run([&] {
    seen.assign_add(weight * (replica_id() + 1));
    weight.assign(weight + 1);
  });
  EXPECT_EQ(seen.read().item<float>(), 6);
  EXPECT_EQ(weight.read().item<float>(), 3);
  weight.assign(Tensor(7.0f));
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, weight).item<float>(), 7);
  EXPECT_EQ(weight.read().device(), (Device{DeviceKind::fake, 0}));
  EXPECT_THAT(devices.findings(), IsEmpty());
}

TEST(FakeReplicas, TwoKindsOfDevicesAreRefused) {
  const fake::Devices devices({.devices = 1});
  EXPECT_THAT(
      [] {
        MirroredStrategy({.devices = {"CPU:0", "FAKE:0"}});
      },
      throws<InvalidArgument>("CPU:0", "FAKE:0", "one kind"));
}

TEST(FakeReplicas, OneDeviceStrategyWorks) {
  fake::Devices devices({.devices = 1, .seed = 1});
  const OneDeviceStrategy strategy({.device = "FAKE:0"});
  const auto result = strategy.run(
      [] { return get_replica_context()->all_reduce(ReduceOp::mean, Tensor(3.0f)) * 2; });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, result).item<float>(), 6);
  EXPECT_THAT(devices.findings(), IsEmpty());
}

}  // namespace
}  // namespace lockstep
