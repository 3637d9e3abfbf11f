// SPDX-License-Identifier: Apache-2.0
// What lockstep-run gives its workers, and what it makes of their output.
#include <lockstep/cluster.h>

#include <set>

#include "launch.h"
#include "support/errors.h"

namespace lockstep {
namespace {

using lockstep::testing::Launch;
using lockstep::testing::lines;
using lockstep::testing::throws;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// The TF_CONFIG of each of the tasks, in rank order.
std::vector<TFConfig> configs_of(const std::vector<std::string>& options, int count) {
  Launch launch(count, "printf %s \"$TF_CONFIG\" > config$LOCKSTEP_RANK", options);
  EXPECT_EQ(launch.wait(), 0) << launch.err();
  std::vector<TFConfig> configs;
  for (int rank = 0; rank < count; ++rank)
    configs.push_back(parse_tf_config(launch.file("config" + std::to_string(rank))));
  return configs;
}

std::vector<std::string> addresses(const ClusterSpec& spec) {
  std::vector<std::string> result;
  for (const auto& [job, tasks] : spec.jobs())
    for (const auto& [index, address] : tasks) result.push_back(address);
  return result;
}

TEST(LockstepRun, TellsEachWorkerTheClusterAndItsTask) {
  const auto configs = configs_of({}, 3);
  for (int rank = 0; rank < 3; ++rank) {
    const TFConfig& config = configs[static_cast<std::size_t>(rank)];
    EXPECT_EQ(config.cluster, configs[0].cluster);
    EXPECT_EQ(config.task, (Task{"worker", rank}));
    EXPECT_EQ(ClusterView(config.cluster, config.task).rank(), rank);
  }
  EXPECT_EQ(configs[0].cluster.num_tasks("worker"), 3u);
  for (const std::string& address : addresses(configs[0].cluster))
    EXPECT_THAT(address, StartsWith("127.0.0.1:"));
}

TEST(LockstepRun, MakesTheFirstTaskAChiefOnRequest) {
  const auto configs = configs_of({"--chief"}, 3);
  const Task tasks[] = {{"chief", 0}, {"worker", 0}, {"worker", 1}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(configs[rank].task, tasks[rank]);
    EXPECT_EQ(ClusterView(configs[rank].cluster, configs[rank].task).rank(),
              static_cast<int>(rank));
  }
  EXPECT_EQ(configs[0].cluster.num_tasks("chief"), 1u);
  EXPECT_EQ(configs[0].cluster.num_tasks("worker"), 2u);
}

TEST(LockstepRun, RunsSideBySideNeverShareAPort) {
  const std::string script =
      "printf %s \"$TF_CONFIG\" > config; while [ ! -e stop ]; do "
      "sleep 0.01; done";
  std::set<std::string> seen;
  std::vector<std::unique_ptr<Launch>> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(std::make_unique<Launch>(1, script));
    ASSERT_TRUE(testing::soon([&] { return runs.back()->file("config").ends_with('}'); }));
    for (const auto& address : addresses(parse_tf_config(runs.back()->file("config")).cluster))
      EXPECT_TRUE(seen.insert(address).second) << address;
  }
}

TEST(LockstepRun, ItsWorkersCanListenAndMeet) {
  Launch launch({"-n", "3", "--chief", "--", LOCKSTEP_TEST_PYTHON,
                 LOCKSTEP_TEST_SOURCE_DIR "/tests/launch/meet.py"});
  EXPECT_EQ(launch.wait(), 0) << launch.err();
  EXPECT_THAT(lines(launch.out()),
              UnorderedElementsAre("[chief 0] met 3", "[worker 0] met 3", "[worker 1] met 3"));
}

TEST(LockstepRun, NamesTheWorkerBeforeEachLineAndKeepsStreamsApart) {
  Launch launch(2,
                "echo out $LOCKSTEP_RANK; echo err $LOCKSTEP_RANK >&2; echo; printf 'no newline'");
  EXPECT_EQ(launch.wait(), 0);
  EXPECT_THAT(lines(launch.out()),
              UnorderedElementsAre("[worker 0] out 0", "[worker 0] ", "[worker 0] no newline",
                                   "[worker 1] out 1", "[worker 1] ", "[worker 1] no newline"));
  EXPECT_TRUE(launch.out().ends_with('\n'));
  EXPECT_THAT(lines(launch.err()), UnorderedElementsAre("[worker 0] err 0", "[worker 1] err 1"));
}

// Written in pieces, some of them longer than a pipe takes at once.
TEST(LockstepRun, NeverMixesLines) {
  Launch launch(4, R"sh(c=$(printf "\\$(printf %o $((65 + LOCKSTEP_RANK)))")
      long=$(head -c 5000 /dev/zero | tr '\0' $c); i=0
      while [ $i -lt 300 ]; do
        printf %s $long; printf '%s %d\n' $long $i; i=$((i + 1))
      done)sh");
  EXPECT_EQ(launch.wait(), 0) << launch.err();
  int next[4] = {};
  for (const std::string& line : lines(launch.out())) {
    ASSERT_THAT(line, StartsWith("[worker "));
    const int worker = line[8] - '0';
    ASSERT_TRUE(worker >= 0 && worker < 4);
    // Every line of a worker, whole and in order.
    ASSERT_EQ(line, "[worker " + std::to_string(worker) + "] " +
                        std::string(10'000, static_cast<char>('A' + worker)) + " " +
                        std::to_string(next[worker]++));
  }
  EXPECT_THAT(next, ::testing::Each(300));
}

TEST(LockstepRun, PassesOnALineAsSoonAsItIsWhole) {
  Launch launch(1, "echo first; while [ ! -e stop ]; do sleep 0.01; done");
  EXPECT_TRUE(testing::soon([&] { return launch.out() == "[worker 0] first\n"; }));
}

TEST(LockstepRun, KeepsTheProgramsOwnArguments) {
  Launch launch({"-n", "1", "printf", "%s|", "-n", "two words", "--chief", ""});
  EXPECT_EQ(launch.wait(), 0);
  EXPECT_EQ(launch.out(), "[worker 0] -n|two words|--chief||\n");
}

TEST(LockstepRun, GivesAnEmptyInputAndNoDescriptorsOfItsOwn) {
  // The shell becomes ls, whose 3 is the folder it lists.
  Launch launch(2, "cat; exec ls -m /proc/self/fd");
  EXPECT_EQ(launch.wait(), 0);
  EXPECT_THAT(lines(launch.out()),
              UnorderedElementsAre("[worker 0] 0, 1, 2, 3", "[worker 1] 0, 1, 2, 3"));
}

TEST(LockstepRun, ExplainsACommandLineThatItCannotRead) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "how many workers"},
      {{"-n", "2"}, "which program"},
      {{"-n", "2", "--"}, "which program"},
      {{"-n", "0", "true"}, "\"0\"; expected a number from 1 to 1000"},
      {{"-n", "1001", "true"}, "\"1001\""},
      {{"-n", "two", "true"}, "\"two\""},
      {{"-n", "2x", "true"}, "\"2x\""},
      {{"-n", "2", "--grace", "-1", "true"}, "--grace is \"-1\""},
      {{"-n", "2", "--grace", "nan", "true"}, "--grace is \"nan\""},
      {{"-n", "2", "--what", "true"}, "--what"},
  };
  for (const auto& [arguments, word] : cases) {
    Launch launch(arguments);
    EXPECT_EQ(launch.wait(), 2);
    EXPECT_THAT(launch.err(), AllOf(HasSubstr(word), HasSubstr("lockstep-run --help")));
    EXPECT_THAT(launch.out(), IsEmpty());
  }
}

TEST(LockstepRun, HelpsOnRequest) {
  Launch help({"--help"});
  EXPECT_EQ(help.wait(), 0);
  EXPECT_THAT(help.out(), AllOf(HasSubstr("--grace SECONDS"), HasSubstr("Exit code")));
  Launch version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_THAT(version.out(), ::testing::MatchesRegex("lockstep-run [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace lockstep
