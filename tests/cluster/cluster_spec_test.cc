// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cluster/cluster_spec.h>

#include <type_traits>

#include "support/errors.h"

namespace lockstep {
namespace {

using lockstep::testing::caught;
using lockstep::testing::throws;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

ClusterSpec one_worker(const std::string& address) { return ClusterSpec({{"worker", {address}}}); }

TEST(ClusterSpec, NumbersTasksInTheOrderOfTheirAddresses) {
  const ClusterSpec spec({{"worker", {"b:1", "c:1"}}, {"chief", {"a:1"}}});
  EXPECT_FALSE(spec.empty());
  EXPECT_THAT(spec.jobs(),
              ElementsAre(Pair("chief", ElementsAre(Pair(0, "a:1"))),
                          Pair("worker", ElementsAre(Pair(0, "b:1"), Pair(1, "c:1")))));
  EXPECT_EQ(spec.num_tasks("worker"), 2u);
  EXPECT_EQ(spec.num_tasks("evaluator"), 0u);
  EXPECT_EQ(spec.task_address({"worker", 1}), "c:1");
  EXPECT_EQ(spec.to_string(), "chief: a:1; worker: b:1, c:1");
}

TEST(ClusterSpec, IsEmptyByDefault) {
  const ClusterSpec spec;
  EXPECT_TRUE(spec.empty());
  EXPECT_EQ(spec.to_string(), "");
  EXPECT_EQ(spec, ClusterSpec(std::map<std::string, std::vector<std::string>>()));
  EXPECT_THAT(
      [&] {
        spec.task_address({"worker", 0});
      },
      throws<InvalidArgument>("\"worker\"", "no tasks"));
}

TEST(ClusterSpec, SparseTasksKeepTheirNumbers) {
  const auto spec = ClusterSpec::sparse({{"worker", {{3, "d:1"}, {1, "b:1"}}}});
  EXPECT_EQ(spec.num_tasks("worker"), 2u);
  EXPECT_EQ(spec.task_address({"worker", 3}), "d:1");
  EXPECT_EQ(spec.to_string(), "worker: 1=b:1, 3=d:1");
  EXPECT_THAT(
      [&] {
        spec.task_address({"worker", 2});
      },
      throws<InvalidArgument>("no worker 2", "worker 1 to 3"));
  EXPECT_EQ(ClusterSpec::sparse({{"worker", {{0, "a:1"}, {1, "b:1"}}}}),
            ClusterSpec({{"worker", {"a:1", "b:1"}}}));
  EXPECT_THAT(
      [] {
        ClusterSpec::sparse({{"worker", {{-1, "a:1"}}}});
      },
      throws<InvalidArgument>("task -1", "from 0"));
}

TEST(ClusterSpec, NamesTheCallersLine) {
  const auto error = caught<InvalidArgument>([] { one_worker("nowhere"); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), StartsWith("[ClusterSpec] the address of worker 0 is \"nowhere\""));
  EXPECT_THAT(error->what(), HasSubstr("host:port"));
  EXPECT_THAT(error->location().file, HasSubstr("cluster_spec_test"));
}

TEST(ClusterSpec, AcceptsEveryFormOfAddress) {
  for (const char* address :
       {"a:1", "localhost:65535", "127.0.0.1:20000", "10.0.0.255:2222", "[::1]:2222",
        "[2001:db8::8a2e:370:7334]:80", "[fe80::1%eth0]:2222", "[::ffff:10.0.0.1]:2222",
        "train-worker-0.default.svc.cluster.local:2222", "rooted.example.:2222",
        "compose_service_1:2222", "3com.example:1", "node01:08888"})
    EXPECT_EQ(one_worker(address).task_address({"worker", 0}), address);
}

TEST(ClusterSpec, RefusesWhatIsNoAddress) {
  const std::string label(64, 'a'), name = "a" + [] {
    std::string text;
    for (int i = 0; i < 127; ++i) text += ".b";
    return text;
  }();
  const std::pair<std::string, const char*> cases[] = {
      {"", "it is empty"},
      {"host", "no port"},
      {"[::1]", "no port"},
      {"host:", "its port is \"\""},
      {"host:0", "its port is \"0\", not a number from 1 to 65535"},
      {"host:65536", "its port"},
      {"host:99999999999999999999", "its port"},
      {"host:-1", "its port"},
      {"host:+1", "its port"},
      {"host: 1", "its port"},
      {"host:1 ", "its port"},
      {"host:0x10", "its port"},
      {"host:http", "its port"},
      {":2222", "no host"},
      {"::1:2222", "brackets"},
      {"2001:db8::1:2222", "brackets"},
      {"[]:2222", "no IPv6 address"},
      {"[localhost]:2222", "no IPv6 address"},
      {"[127.0.0.1]:2222", "no IPv6 address"},
      {"[1::2::3]:2222", "no IPv6 address"},
      {"[fe80::1%]:2222", "no IPv6 address"},
      {"[fe80::1%a b]:2222", "no IPv6 address"},
      {std::string("[::1\0]:2222", 11), "no IPv6 address"},
      {"10.0.0.256:2222", "neither"},
      {"10.0.0:2222", "neither"},
      {"1.2.3.4.5:2222", "neither"},
      {"12345:2222", "neither"},
      {"a..b:2222", "neither"},
      {".a:2222", "neither"},
      {".:2222", "neither"},
      {"a..:2222", "neither"},
      {"-a:2222", "neither"},
      {"a-.b:2222", "neither"},
      {"a b:2222", "neither"},
      {"a/b:2222", "neither"},
      {"h\xc3\xb6st:2222", "neither"},
      {std::string("a\0b:2222", 8), "\\u0000"},
      {"http://host:2222", "scheme"},
      {"grpc://host:2222", "scheme"},
      {label + ":2222", "neither"},
      {name + ":2222", "neither"},
  };
  for (const auto& [address, word] : cases)
    EXPECT_THAT(([text = address] { one_worker(text); }), throws<InvalidArgument>(word)) << address;
}

TEST(ClusterSpec, RefusesEmptyAndUnnamedJobs) {
  EXPECT_THAT(
      [] {
        ClusterSpec({{"worker", std::vector<std::string>()}});
      },
      throws<InvalidArgument>("\"worker\"", "no addresses"));
  EXPECT_THAT([] { ClusterSpec({{"", {"a:1"}}}); }, throws<InvalidArgument>("named \"\""));
  EXPECT_THAT([] { ClusterSpec({{"a\nb", {"a:1"}}}); }, throws<InvalidArgument>("named \"a\\nb\""));
}

TEST(ClusterSpec, RefusesAnAddressOfTwoTasks) {
  EXPECT_THAT(
      [] {
        ClusterSpec({{"worker", {"a:1", "b:1", "a:1"}}});
      },
      throws<InvalidArgument>("worker 0 and worker 2", "\"a:1\""));
  EXPECT_THAT(
      [] {
        ClusterSpec({{"chief", {"a:1"}}, {"worker", {"a:1"}}});
      },
      throws<InvalidArgument>("chief 0 and worker 0", "\"a:1\""));
  EXPECT_NO_THROW(ClusterSpec({{"worker", {"a:1", "a:2"}}}));
}

TEST(ClusterSpec, ShowsNoMoreOfAnAddressThanCanBeRead) {
  const auto error = caught<InvalidArgument>([] { one_worker(std::string(100'000, 'x')); });
  ASSERT_TRUE(error);
  EXPECT_LT(error->message().size(), 300u);
  EXPECT_THAT(error->message(), HasSubstr("100000 bytes"));
}

}  // namespace
}  // namespace lockstep
