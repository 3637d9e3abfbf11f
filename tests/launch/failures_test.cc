// SPDX-License-Identifier: Apache-2.0
// How a run of lockstep-run ends: by itself, by a worker's failure, by a signal, by its own death.
#include "launch.h"

namespace lockstep {
namespace {

using lockstep::testing::is_running;
using lockstep::testing::Launch;
using lockstep::testing::lines;
using lockstep::testing::soon;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// For a worker's script: what only one of them does.
std::string only(int rank, const std::string& script) {
  return "if [ $LOCKSTEP_RANK = " + std::to_string(rank) + " ]; then " + script + "; fi; ";
}
const std::string kForever = "while :; do sleep 0.02; done";
// A shell that waits for a signal is up only when it says so.
const std::string kUp = "echo $$ > up$LOCKSTEP_RANK; ";

TEST(LockstepRun, EndsWith0WhenAllDo) {
  Launch launch(4, "exit 0");
  EXPECT_EQ(launch.wait(), 0);
  EXPECT_THAT(launch.err(), IsEmpty());
}

TEST(LockstepRun, EndsWithTheCodeOfTheFirstFailure) {
  Launch launch(3, only(1, "exit 3") + "while ! [ -e go ]; do sleep 0.01; done; " +
                       only(0, "exit 4") + "exit 0");
  ASSERT_TRUE(
      soon([&] { return launch.err().find("worker 1 exited with code 3") != std::string::npos; }));
  std::ofstream(launch.path("go"));
  EXPECT_EQ(launch.wait(), 3);
  EXPECT_THAT(lines(launch.err()),
              ElementsAre("lockstep-run: worker 1 exited with code 3; the others have 15 s to end",
                          "lockstep-run: worker 0 exited with code 4"));
}

TEST(LockstepRun, NamesTheSignalThatKilledAWorker) {
  Launch launch(2, only(1, "kill -9 $$") + "exit 0");
  EXPECT_EQ(launch.wait(), 128 + SIGKILL);
  EXPECT_THAT(launch.err(), HasSubstr("worker 1 was killed by signal 9 (Killed)"));
}

TEST(LockstepRun, TellsACodeFromASignal) {
  Launch launch(1, "exit 137");
  EXPECT_EQ(launch.wait(), 137);
  EXPECT_THAT(launch.err(), HasSubstr("worker 0 exited with code 137"));
}

TEST(LockstepRun, ExplainsAProgramThatCannotBeRun) {
  Launch missing({"-n", "2", "./there-is-none"});
  EXPECT_EQ(missing.wait(), 127);
  EXPECT_THAT(missing.err(),
              HasSubstr("[worker 1] lockstep-run: cannot run ./there-is-none: No such"));
  Launch folder({"-n", "1", "/"});
  EXPECT_EQ(folder.wait(), 126);
  EXPECT_THAT(folder.err(), HasSubstr("cannot run /: Permission denied"));
}

TEST(LockstepRun, LetsTheOthersReportAfterAFailure) {
  Launch launch(2, only(0, "exit 5") + "sleep 0.5; echo PeerError: worker 0 is gone; exit 6");
  EXPECT_EQ(launch.wait(), 5);
  EXPECT_THAT(launch.out(), HasSubstr("[worker 1] PeerError: worker 0 is gone\n"));
  EXPECT_LT(launch.seconds(), 10);
}

TEST(LockstepRun, TerminatesWhatOutstaysItsGrace) {
  Launch launch(2,
                only(0, "while ! [ -e up1 ]; do sleep 0.01; done; exit 5") +
                    "trap 'echo saved; exit 0' TERM; " + kUp + kForever,
                {"--grace", "0.3"});
  EXPECT_EQ(launch.wait(), 5);
  EXPECT_EQ(launch.out(), "[worker 1] saved\n");
  EXPECT_THAT(launch.err(), AllOf(HasSubstr("the others have 0.3 s to end"),
                                  HasSubstr("worker 1 still running; sending SIGTERM")));
  EXPECT_GE(launch.seconds(), 0.3);
  EXPECT_LT(launch.seconds(), 5);
}

TEST(LockstepRun, KillsWhatIgnoresSIGTERMOrIsStopped) {
  Launch launch(3,
                only(0, "while ! [ -e up1 -a -e up2 ]; do sleep 0.01; done; exit 5") +
                    "trap '' TERM; " + kUp + only(2, "kill -STOP $$") + kForever,
                {"--grace", "0.2"});
  EXPECT_EQ(launch.wait(), 5);
  EXPECT_THAT(launch.err(), AllOf(HasSubstr("worker 1, worker 2 still running; sending SIGKILL"),
                                  HasSubstr("worker 1 was killed by signal 9"),
                                  HasSubstr("worker 2 was killed by signal 9")));
  EXPECT_GE(launch.seconds(), 5.2);
  EXPECT_LT(launch.seconds(), 15);
}

class PassesOn : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(LockstepRun, PassesOn, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_P(PassesOn, ASignal) {
  // Background jobs of a shell ignore SIGINT for good, so the shell itself waits.
  Launch launch(2, "trap 'echo stopping; exit 0' INT TERM HUP; " + kUp + kForever);
  for (const char* file : {"up0", "up1"}) launch.pid_in(file);
  launch.signal(GetParam());
  EXPECT_EQ(launch.wait(), 0);
  EXPECT_THAT(lines(launch.out()),
              ::testing::UnorderedElementsAre("[worker 0] stopping", "[worker 1] stopping"));
  EXPECT_THAT(launch.err(), HasSubstr("passing on signal " + std::to_string(GetParam())));
}

TEST(LockstepRun, EndsLikeAProgramThatDiesOfASignal) {
  Launch launch(2, kUp + kForever);
  for (const char* file : {"up0", "up1"}) launch.pid_in(file);
  launch.signal(SIGTERM);
  EXPECT_EQ(launch.wait(), 128 + SIGTERM);
}

TEST(LockstepRun, TakesSignalsAtOnceForOneAndALaterOneForAKill) {
  Launch launch(1, "trap 'echo once' TERM; " + kUp + kForever);
  launch.pid_in("up0");
  launch.signal(SIGTERM);
  ASSERT_TRUE(soon([&] { return !launch.out().empty(); }));
  launch.signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_TRUE(is_running(launch.pid_in("up0")));
  EXPECT_EQ(launch.out(), "[worker 0] once\n");
  launch.signal(SIGTERM);
  EXPECT_EQ(launch.wait(), 128 + SIGKILL);
  EXPECT_THAT(launch.err(), HasSubstr("killing all workers"));
  EXPECT_LT(launch.seconds(), 14);
}

TEST(LockstepRun, PatienceEndsAfterASignal) {
  Launch launch(1, "trap '' TERM; " + kUp + kForever, {"--grace", "0.1"});
  launch.pid_in("up0");
  launch.signal(SIGTERM);
  EXPECT_EQ(launch.wait(), 128 + SIGKILL);
  EXPECT_LT(launch.seconds(), 15);
}

// A worker whose child ignores what can be ignored and writes nothing.
const std::string kWithChild =
    "(trap '' INT TERM HUP; exec sleep 600) & "
    "echo $! > child$LOCKSTEP_RANK; ";

TEST(LockstepRun, LeavesNobodyBehindWhenItIsKilled) {
  Launch launch(2, kWithChild + kUp + kForever);
  std::vector<pid_t> processes;
  for (const char* file : {"up0", "up1", "child0", "child1"}) {
    processes.push_back(launch.pid_in(file));
    EXPECT_TRUE(is_running(processes.back())) << file;
  }
  launch.signal(SIGKILL);
  EXPECT_EQ(launch.wait(), 128 + SIGKILL);
  for (const pid_t process : processes)
    EXPECT_TRUE(soon([&] { return !is_running(process); }, std::chrono::seconds(10)));
}

TEST(LockstepRun, LeavesNobodyBehindWhenAWorkerEnds) {
  Launch launch(1, kWithChild + "exit 0");
  const pid_t child = launch.pid_in("child0");
  EXPECT_EQ(launch.wait(), 0);
  EXPECT_TRUE(soon([&] { return !is_running(child); }, std::chrono::seconds(10)));
  EXPECT_LT(launch.seconds(), 30);
}

TEST(LockstepRun, DoesNotWaitForADaemonThatKeepsItsOutput) {
  Launch launch(
      1,
      "setsid sh -c 'echo $$ > daemon; exec sleep 600' & while ! [ -s daemon ]; do sleep 0.01; done");
  const pid_t daemon = launch.pid_in("daemon");
  EXPECT_EQ(launch.wait(), 0);
  EXPECT_LT(launch.seconds(), 30);
  kill(daemon, SIGKILL);
}

}  // namespace
}  // namespace lockstep
