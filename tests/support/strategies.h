// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/comm/in_process.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/tpu.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "distribute/local_replicas.h"
#include "support/replicas.h"
#include "support/traced.h"

namespace lockstep::testing {

// The ways to run a step on several replicas: in this process, at once or one at a time; on two workers
// with half of the replicas each, as threads; as one program for XLA.
enum class Kind { concurrent, one_at_a_time, two_workers, tpu };

inline std::string name_of(Kind kind) {
  constexpr const char* names[] = {"concurrent", "one_at_a_time", "two_workers", "tpu"};
  return names[static_cast<int>(kind)];
}

inline void on_two_workers(int replicas, const std::function<void(const Strategy&)>& main) {
  constexpr std::chrono::seconds kTimeout{30};
  InProcessGroup between(2, {.collective_timeout = kTimeout});
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 2; ++worker)
    workers.emplace_back([&, worker] {
      std::vector<Device> devices;
      for (const std::string& name : cpus(replicas / 2)) devices.push_back(parse_device(name));
      main(Strategy(std::make_shared<LocalReplicas>(LocalReplicas::Options{
          .name = "linked",
          .devices = devices,
          .communication = {.timeout = kTimeout},
          .link = {
              .owner = nullptr, .communicator = &between.rank(worker), .next_epoch = [] {}}})));
    });
  for (std::thread& worker : workers) worker.join();
}

// main(strategy) with `replicas` replicas, an even number. Two workers run it at the same time.
inline void with_strategy(Kind kind, int replicas,
                          const std::function<void(const Strategy&)>& main) {
  switch (kind) {
    case Kind::concurrent:
      return main(testing::replicas(replicas));
    case Kind::one_at_a_time:
      return main(testing::replicas(replicas, ReplicaThreads::one_at_a_time));
    case Kind::two_workers:
      return on_two_workers(replicas, main);
    case Kind::tpu:
      return main(TPUStrategy({.replicas = replicas}));
  }
}

// A test of each of them: run(replicas, main).
class OnStrategies : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::tpu && !has_plugin())
      GTEST_SKIP() << "needs a PJRT plugin: LOCKSTEP_PJRT_CPU_PLUGIN is not set";
  }
  void run(int replicas, const std::function<void(const Strategy&)>& main) const {
    with_strategy(GetParam(), replicas, main);
  }
  bool traced() const { return GetParam() == Kind::tpu; }
};

}  // namespace lockstep::testing

// Of a class derived from OnStrategies; tests of XLA are called Xla/..., as expected_skips.txt has it.
#define LOCKSTEP_ON_STRATEGIES(Suite)                                             \
  INSTANTIATE_TEST_SUITE_P(                                                       \
      Host, Suite,                                                                \
      ::testing::Values(::lockstep::testing::Kind::concurrent,                    \
                        ::lockstep::testing::Kind::one_at_a_time,                 \
                        ::lockstep::testing::Kind::two_workers),                  \
      [](const auto& info) { return ::lockstep::testing::name_of(info.param); }); \
  INSTANTIATE_TEST_SUITE_P(                                                       \
      Xla, Suite, ::testing::Values(::lockstep::testing::Kind::tpu),              \
      [](const auto& info) { return ::lockstep::testing::name_of(info.param); })
