// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>
#include <lockstep/cluster/cluster_view.h>

#include "support/errors.h"
#include "support/quiet_log.h"

namespace lockstep {
namespace {

using lockstep::testing::caught;
using lockstep::testing::throws;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const ClusterSpec kTwoWorkers({{"worker", {"a:1", "b:1"}}});
const ClusterSpec kChiefAndTwoWorkers({{"worker", {"b:1", "c:1"}}, {"chief", {"a:1"}}});

std::vector<std::string> texts(const std::vector<ClusterMember>& members) {
  std::vector<std::string> result;
  for (const ClusterMember& member : members) result.push_back(member.to_string());
  return result;
}

TEST(ClusterView, TrainsByItselfWithoutACluster) {
  for (const ClusterView& view :
       {ClusterView(), ClusterView({}, std::nullopt), ClusterView({}, Task{"worker", 7})}) {
    EXPECT_EQ(view.num_workers(), 1);
    EXPECT_EQ(view.rank(), 0);
    EXPECT_TRUE(view.is_chief());
    EXPECT_EQ(view.address(), "");
    EXPECT_EQ(view.task(), (Task{"worker", 0}));
    EXPECT_EQ(view.to_string(), "worker 0, by itself");
  }
}

TEST(ClusterView, AClusterOfOneIsASingleWorker) {
  const ClusterView view(ClusterSpec({{"worker", {"a:1"}}}), Task{"worker", 0});
  EXPECT_EQ(view.num_workers(), 1);
  EXPECT_TRUE(view.is_chief());
  EXPECT_EQ(view.address(), "a:1");
}

TEST(ClusterView, CLU01_TheChiefComesFirst) {
  const ClusterSpec spec({{"chief", {"a:1"}}, {"worker", {"b:1", "c:1"}}, {"ps", {"d:1", "e:1"}}});
  const testing::QuietLog quiet;
  const auto view = [&](const char* type, int index) {
    return ClusterView(spec, Task{type, index});
  };
  EXPECT_EQ(view("chief", 0).rank(), 0);
  EXPECT_EQ(view("worker", 1).rank(), 2);
  EXPECT_EQ(view("worker", 1).num_workers(), 3);
  EXPECT_FALSE(view("worker", 0).is_chief());
  EXPECT_TRUE(view("chief", 0).is_chief());
  EXPECT_EQ(view("worker", 0).workers().front().task, (Task{"chief", 0}));
  EXPECT_THAT(texts(view("worker", 0).workers()),
              ElementsAre("chief 0 (a:1)", "worker 0 (b:1)", "worker 1 (c:1)"));
}

TEST(ClusterView, CLU02_WithoutAChiefWorker0IsIt) {
  EXPECT_EQ(ClusterView(kTwoWorkers, Task{"worker", 1}).rank(), 1);
  EXPECT_FALSE(ClusterView(kTwoWorkers, Task{"worker", 1}).is_chief());
  EXPECT_TRUE(ClusterView(kTwoWorkers, Task{"worker", 0}).is_chief());
  EXPECT_EQ(ClusterView(kTwoWorkers, Task{"worker", 1}).workers().front().task,
            (Task{"worker", 0}));
  EXPECT_THAT([] { ClusterView(kTwoWorkers, Task{"chief", 0}); }, throws<InvalidArgument>("chief"));
  EXPECT_THAT([] { ClusterView(kTwoWorkers, Task{"worker", 2}); }, throws<InvalidArgument>("2"));
}

TEST(ClusterView, RanksFollowTheIndexEvenBeyondTen) {
  std::vector<std::string> addresses;
  for (int i = 0; i < 12; ++i) addresses.push_back("host" + std::to_string(i) + ":1");
  const ClusterSpec spec({{"worker", addresses}});
  for (int i = 0; i < 12; ++i) {
    const ClusterView view(spec, Task{"worker", i});
    EXPECT_EQ(view.rank(), i);
    EXPECT_EQ(view.workers()[static_cast<std::size_t>(i)].address,
              addresses[static_cast<std::size_t>(i)]);
  }
}

TEST(ClusterView, S21_ATaskOfAJobThatIsNotThere) {
  const auto error = caught<InvalidArgument>([] { ClusterView(kTwoWorkers, Task{"chief", 0}); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), StartsWith("[ClusterView] this process is chief 0"));
  EXPECT_THAT(error->what(), HasSubstr("only \"worker\" (2 tasks)"));
  EXPECT_THAT(error->location().file, HasSubstr("cluster_view_test"));
}

TEST(ClusterView, S21_AnIndexOutOfRange) {
  EXPECT_THAT(
      [] {
        ClusterView(kTwoWorkers, Task{"worker", 2});
      },
      throws<InvalidArgument>("worker 2", "2 tasks", "0 to 1"));
  EXPECT_THAT(
      [] {
        ClusterView(kChiefAndTwoWorkers, Task{"chief", 1});
      },
      throws<InvalidArgument>("chief 1", "1 task of", "with index 0;"));
  EXPECT_THAT(
      [] {
        ClusterView(kTwoWorkers, Task{"worker", -1});
      },
      throws<InvalidArgument>("worker -1", "from 0"));
}

TEST(ClusterView, CLU07_ATaskMustBeGivenAndKnown) {
  EXPECT_THAT([] { ClusterView(kTwoWorkers, std::nullopt); },
              throws<InvalidArgument>("\"worker\" (2 tasks)", "type and index"));
  EXPECT_THAT(
      [] {
        ClusterView(kTwoWorkers, Task{"master", 0});
      },
      throws<InvalidArgument>("\"master\"", "chief, worker or evaluator", "is chief today"));
  EXPECT_THAT(
      [] {
        ClusterView(kTwoWorkers, Task{"trainer", 0});
      },
      throws<InvalidArgument>("\"trainer\"", "\"worker\" (2 tasks)"));
  EXPECT_THAT([] { ClusterView(kTwoWorkers, Task{"", 0}); }, throws<InvalidArgument>("\"\""));
}

TEST(ClusterView, RefusesToBeAParameterServer) {
  const ClusterSpec spec({{"worker", {"a:1"}}, {"ps", {"b:1"}}});
  EXPECT_THAT(
      [&] {
        ClusterView(spec, Task{"ps", 0});
      },
      throws<InvalidArgument>("ps 0", "parameter server", "chief and worker tasks only"));
}

TEST(ClusterView, SaysThatParameterServersTakeNoPart) {
  std::vector<std::string> lines;
  logging::set_sink([&](logging::Level, std::string_view text) { lines.emplace_back(text); });
  ClusterView(kTwoWorkers, Task{"worker", 0});
  EXPECT_TRUE(lines.empty());
  ClusterView(ClusterSpec({{"worker", {"a:1"}}, {"ps", {"b:1"}}}), Task{"worker", 0});
  logging::set_sink({});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("ps")));
}

TEST(ClusterView, S22_AnEvaluatorIsAClusterOfItsOwn) {
  const ClusterSpec listed({{"worker", {"a:1", "b:1"}}, {"evaluator", {"c:1"}}});
  for (const auto& [spec, address] : {std::pair(listed, "c:1"), std::pair(kTwoWorkers, "")}) {
    const ClusterView view(spec, Task{"evaluator", 0});
    EXPECT_EQ(view.num_workers(), 1);
    EXPECT_EQ(view.rank(), 0);
    EXPECT_TRUE(view.is_chief());
    EXPECT_EQ(view.task(), (Task{"evaluator", 0}));
    EXPECT_EQ(view.address(), address);
  }
  EXPECT_THAT(texts(ClusterView(listed, Task{"worker", 1}).workers()),
              ElementsAre("worker 0 (a:1)", "worker 1 (b:1)"));
  EXPECT_THAT(
      [&] {
        ClusterView(listed, Task{"evaluator", 1});
      },
      throws<InvalidArgument>("evaluator 1", "1 task"));
}

TEST(ClusterView, RefusesUnknownJobsAndSecondChiefs) {
  const auto of = [](const char* job, std::vector<std::string> addresses) {
    return ClusterSpec({{"worker", {"a:1"}}, {job, std::move(addresses)}});
  };
  const Task worker{"worker", 0};
  EXPECT_THAT([&] { ClusterView(of("master", {"b:1"}), worker); },
              throws<InvalidArgument>("\"master\"", "is chief today"));
  EXPECT_THAT([&] { ClusterView(of("123", {"b:1"}), worker); },
              throws<InvalidArgument>("\"123\"", "chief, worker and evaluator"));
  EXPECT_THAT(
      [&] {
        ClusterView(of("chief", {"b:1", "c:1"}), worker);
      },
      throws<InvalidArgument>("2 tasks of job \"chief\"", "one"));
  EXPECT_THAT(
      [&] {
        ClusterView(of("evaluator", {"b:1", "c:1"}), worker);
      },
      throws<InvalidArgument>("2 tasks of job \"evaluator\"", "one"));
}

TEST(ClusterView, RefusesHolesInTheNumbersOfWorkers) {
  const auto spec = ClusterSpec::sparse({{"worker", {{0, "a:1"}, {2, "c:1"}}}});
  EXPECT_THAT(
      [&] {
        ClusterView(spec, Task{"worker", 0});
      },
      throws<InvalidArgument>("2 tasks of job \"worker\"", "up to 2"));
}

TEST(ClusterView, ReadsAsOneLine) {
  EXPECT_EQ(ClusterView(kChiefAndTwoWorkers, Task{"worker", 0}).to_string(),
            "worker 0 (b:1), rank 1 of 3, chief chief 0 (a:1)");
}

}  // namespace
}  // namespace lockstep
