// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/thread.h>
#include <lockstep/distribute/strategy.h>

#include <cstdlib>

#include "support/errors.h"
#include "support/process.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

using lockstep::testing::cpus;
using lockstep::testing::num_threads;
using lockstep::testing::throws;
using ::testing::HasSubstr;

TEST(MakeStrategy, ReadsTheKindAndTheReplicas) {
  EXPECT_EQ(make_strategy("one_device").num_replicas_in_sync(), 1);
  EXPECT_EQ(make_strategy("one_device:CPU:1").describe(), "OneDeviceStrategy on CPU:1");
  EXPECT_EQ(make_strategy("mirrored:4").num_replicas_in_sync(), 4);
  EXPECT_EQ(make_strategy("mirrored:CPU:0,CPU:2").describe(), "MirroredStrategy on CPU:0 CPU:2");
  EXPECT_EQ(make_strategy("mirrored").num_replicas_in_sync(), available_cores());
}

TEST(MakeStrategy, RefusesTheRestByName) {
  for (const char* text : {"", "mirrord", "mirrored2", "1"})
    EXPECT_THAT([&] { make_strategy(text); },
                throws<InvalidArgument>("[make_strategy]", "one_device", "mirrored", text));
  for (const char* text : {"mirrored:CPU:x", "mirrored:CPU:0,", "one_device:", "one_device:NPU:0"})
    EXPECT_THAT([&] { make_strategy(text); }, throws<InvalidArgument>("device")) << text;
  for (const char* text : {"mirrored:", "mirrored:0", "mirrored:-1", "mirrored:257",
                           "mirrored:2147483647", "mirrored:9999999999"})
    EXPECT_THAT([&] { make_strategy(text); },
                throws<InvalidArgument>("[make_strategy]", "a count of 1 or more"))
        << text;
  EXPECT_THAT([] { make_strategy("multi_worker:0"); },
              throws<InvalidArgument>("a count of 1 or more", "multi_worker"));
  for (const char* text : {"tpu:", "tpu:0", "tpu:x"})
    EXPECT_THAT([&] { make_strategy(text); },
                throws<InvalidArgument>("[make_strategy]", "a count of 1 or more"))
        << text;
}

TEST(MakeStrategy, OfManyWorkersTrainsAloneWithoutACluster) {
  ::unsetenv("TF_CONFIG");
  EXPECT_EQ(make_strategy("multi_worker").num_replicas_in_sync(), 1);
  EXPECT_EQ(make_strategy("multi_worker:3").num_replicas_in_sync(), 3);
  EXPECT_EQ(make_strategy("multi_worker:CPU:0,CPU:2").num_replicas_in_sync(), 2);
}

TEST(Mirrored, TakesNoDeviceTwice) {
  EXPECT_THAT(
      [] {
        MirroredStrategy({.devices = {"CPU:0", "CPU:1", "cpu:0"}});
      },
      throws<InvalidArgument>("[MirroredStrategy]", "CPU:0", "twice"));
}

TEST(Mirrored, RefusesDevicesBeyondTheLast) {
  for (const char* name : {"CPU:256", "CPU:2147483647"})
    EXPECT_THAT(
        [&] {
          MirroredStrategy({.devices = {"CPU:0", name}});
        },
        throws<InvalidArgument>("[parse_device]", "below 256", name));
  EXPECT_EQ(MirroredStrategy({.devices = {"CPU:255"}}).num_replicas_in_sync(), 1);
}

TEST(Mirrored, RefusesNegativePackSizes) {
  EXPECT_THAT(
      [] { MirroredStrategy({.devices = cpus(2), .communication = {.bytes_per_pack = -1}}); },
      throws<InvalidArgument>("bytes_per_pack", "-1"));
  EXPECT_THAT([] { MirroredStrategy({.devices = cpus(2), .communication = {.num_packs = -1}}); },
              throws<InvalidArgument>("num_packs", "-1"));
}

TEST(Mirrored, SaysHowItRuns) {
  EXPECT_EQ(testing::replicas(2, ReplicaThreads::one_at_a_time).describe(),
            "MirroredStrategy on CPU:0 CPU:1, one replica at a time");
}

TEST(Mirrored, OwnsItsThreads) {
  const int before = num_threads();
  {
    const auto strategy = testing::replicas(4);
    strategy.run([] {});
    EXPECT_EQ(num_threads(), before + 3) << "the caller's thread is replica 0";
  }
  EXPECT_EQ(testing::num_threads_once_settled(before), before);
}

TEST(Mirrored, TellsWhereStepsSpentTheirTime) {
  using namespace std::chrono_literals;
  const auto strategy = testing::replicas(2);
  for (int i = 0; i < 3; ++i)
    strategy.run([] {
      std::this_thread::sleep_for(testing::replica_index() == 0 ? 20ms : 10ms);
      get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f));
    });
  const telemetry::StepReport report = strategy.step_report();
  EXPECT_EQ(report.steps, 3);
  // The average over the replicas: one computes for 20 ms, the other for 10 and waits for 10.
  EXPECT_GT(report.compute, 3 * 0.0145);
  EXPECT_GT(report.communication, 3 * 0.004);
  EXPECT_GE(report.total, 3 * 0.020);
  EXPECT_THAT(report.to_table(), HasSubstr("communication"));
}

}  // namespace
}  // namespace lockstep
