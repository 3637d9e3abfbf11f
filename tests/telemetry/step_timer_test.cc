// SPDX-License-Identifier: Apache-2.0
#include <lockstep/telemetry/step_timer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace lockstep::telemetry {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

double milliseconds(const PhaseTimes& times, Phase phase) {
  return std::chrono::duration<double, std::milli>(times.of(phase)).count();
}

TEST(PhaseTimes, NestedScopesCountEachMomentOnce) {
  PhaseTimes times;
  const auto start = PhaseTimes::Clock::now();
  {
    const PhaseTimesScope mine(&times);
    times.start(Phase::compute);
    std::this_thread::sleep_for(5ms);
    {
      const PhaseScope update(Phase::update);
      std::this_thread::sleep_for(10ms);
      const PhaseScope communication(Phase::communication);
      std::this_thread::sleep_for(20ms);
    }
    std::this_thread::sleep_for(5ms);
    times.stop();
  }
  const auto wall = std::chrono::duration<double, std::milli>(PhaseTimes::Clock::now() - start);
  EXPECT_GE(milliseconds(times, Phase::compute), 10);
  EXPECT_GE(milliseconds(times, Phase::update), 10);
  EXPECT_GE(milliseconds(times, Phase::communication), 20);
  double sum = 0;
  for (const Phase phase : {Phase::input, Phase::compute, Phase::communication, Phase::update})
    sum += milliseconds(times, phase);
  EXPECT_LE(sum, wall.count());
  EXPECT_EQ(milliseconds(times, Phase::input), 0);
}

TEST(PhaseTimes, CountNothingWhileStopped) {
  PhaseTimes times;
  const PhaseTimesScope mine(&times);
  times.start(Phase::compute);
  times.stop();
  const double before = milliseconds(times, Phase::compute);
  std::this_thread::sleep_for(5ms);
  { const PhaseScope update(Phase::update); }
  EXPECT_EQ(milliseconds(times, Phase::compute), before);
  EXPECT_EQ(milliseconds(times, Phase::update), 0);
}

TEST(PhaseScope, CountsOnlyWhereTheThreadHasTimes) {
  PhaseTimes times;
  const PhaseTimesScope mine(&times);
  times.start(Phase::compute);
  std::thread([] {
    const PhaseScope update(Phase::update);
    std::this_thread::sleep_for(2ms);
  }).join();
  {
    const PhaseTimesScope nobodys(nullptr);
    const PhaseScope update(Phase::update);
  }
  times.stop();
  EXPECT_EQ(milliseconds(times, Phase::update), 0);
}

TEST(StepReport, TableShowsMillisecondsPerStepAndShares) {
  const StepReport report{
      .steps = 10, .input = 1, .compute = 5, .communication = 2, .update = 1, .total = 10};
  const std::string table = report.to_table();
  EXPECT_THAT(table, HasSubstr("compute                     500.000    50.0%"));
  EXPECT_THAT(table, HasSubstr("exposed communication       200.000    20.0%"));
  EXPECT_THAT(table, HasSubstr("outside steps               100.000    10.0%"));
  EXPECT_THAT(StepReport().to_table(), HasSubstr("total                         0.000     0.0%"));
}

}  // namespace
}  // namespace lockstep::telemetry
