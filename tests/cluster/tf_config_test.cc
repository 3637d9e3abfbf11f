// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>
#include <lockstep/cluster/cluster_view.h>
#include <lockstep/cluster/tf_config.h>

#include <cstdlib>

#include "support/errors.h"
#include "support/quiet_log.h"

namespace lockstep {
namespace {

using lockstep::testing::caught;
using lockstep::testing::throws;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The environment's TF_CONFIG while it lives; none for nullptr.
class Environment {
 public:
  explicit Environment(const char* text) {
    if (text)
      setenv("TF_CONFIG", text, 1);
    else
      unsetenv("TF_CONFIG");
  }
  ~Environment() { unsetenv("TF_CONFIG"); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

constexpr const char* kWorker1Of2 =
    R"({"cluster":{"worker":["127.0.0.1:20000","127.0.0.1:20001"]},)"
    R"("task":{"type":"worker","index":1}})";

TEST(TFConfig, ReadsClusterAndTask) {
  const TFConfig config = parse_tf_config(kWorker1Of2);
  EXPECT_EQ(config.cluster, ClusterSpec({{"worker", {"127.0.0.1:20000", "127.0.0.1:20001"}}}));
  EXPECT_EQ(config.task, (Task{"worker", 1}));
  EXPECT_EQ(config.rpc_layer, "");
  EXPECT_EQ(config.session_master, "");
}

TEST(TFConfig, ReadsWhatLaunchersAdd) {
  const TFConfig config = parse_tf_config(R"({
    "cluster": {"chief": ["mnist-chief-0.ns.svc:2222"], "worker": ["mnist-worker-0.ns.svc:2222"],
                "evaluator": ["mnist-evaluator-0.ns.svc:2222"]},
    "task": {"type": "evaluator", "index": 0, "trial": "7"},
    "environment": "cloud", "rpc_layer": "grpc", "session_master": "grpc://here:1", "job": {"a": [1]}})");
  EXPECT_EQ(config.task, (Task{"evaluator", 0}));
  EXPECT_EQ(config.cluster.jobs().size(), 3u);
  EXPECT_EQ(config.rpc_layer, "grpc");
  EXPECT_EQ(config.session_master, "grpc://here:1");
}

TEST(TFConfig, AJobMayBeAnObject) {
  const TFConfig config =
      parse_tf_config(R"({"cluster": {"worker": {"1": "b:1", "0": "a:1", "10": "k:1"}}})");
  EXPECT_EQ(config.cluster,
            ClusterSpec::sparse({{"worker", {{0, "a:1"}, {1, "b:1"}, {10, "k:1"}}}}));
  EXPECT_FALSE(config.task);
}

TEST(TFConfig, BlankTextIsAnEmptyOne) {
  for (const char* text : {"", "  \n", "{}", R"({"cluster": {}})", R"({"task": {}})"}) {
    const TFConfig config = parse_tf_config(text);
    EXPECT_TRUE(config.cluster.empty()) << text;
    EXPECT_FALSE(config.task) << text;
  }
}

TEST(TFConfig, NamesThePositionWhereItIsNotJson) {
  const auto error = caught<InvalidArgument>(
      [] { parse_tf_config("{\"cluster\": {\"worker\": [\"a:1\",\n \"b:1\" \"c:1\"]}}"); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), StartsWith("[parse_tf_config] TF_CONFIG is not JSON: "));
  EXPECT_THAT(error->what(), HasSubstr("line 2, column 12"));
  EXPECT_THAT(error->what(), HasSubstr(R"(expected {"cluster": {"worker": ["host0:2222")"));
  EXPECT_THAT(error->location().file, HasSubstr("tf_config_test"));
  for (const char* text : {"{", "worker", "{'cluster': {}}", "{} {}", "{\"a\": 1e999}", "\"\xff\"",
                           "{\"cluster\": }", "[1,]", "nul", "{\"a\":\"\n\"}"})
    EXPECT_THAT([&] { parse_tf_config(text); }, throws<InvalidArgument>("not JSON")) << text;
}

TEST(TFConfig, NamesWhatHasTheWrongType) {
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {"[]", {"it is a list"}},
      {"3", {"it is 3"}},
      {"null", {"it is null"}},
      {R"({"cluster": ["a:1"]})", {"\"cluster\" is a list", "object"}},
      {R"({"cluster": null})", {"\"cluster\" is null"}},
      {R"({"cluster": "a:1"})", {"\"cluster\" is \"a:1\""}},
      {R"({"cluster": {"worker": "a:1"}})", {"job \"worker\" is \"a:1\"", "list of addresses"}},
      {R"({"cluster": {"worker": 2}})", {"job \"worker\" is 2"}},
      {R"({"cluster": {"worker": [1]}})", {"job \"worker\" has 1 for an address"}},
      {R"({"cluster": {"worker": [["a:1"]]}})", {"job \"worker\" has a list for an address"}},
      {R"({"cluster": {"worker": [null]}})", {"job \"worker\" has null"}},
      {R"({"cluster": {"worker": {"0": 1}}})", {"job \"worker\" has 1"}},
      {R"({"cluster": {"worker": {"first": "a:1"}}})", {"task \"first\"", "index"}},
      {R"({"cluster": {"worker": {"-1": "a:1"}}})", {"task \"-1\""}},
      {R"({"cluster": {"worker": {"": "a:1"}}})", {"task \"\""}},
      {R"({"cluster": {"worker": {"99999999999": "a:1"}}})", {"task \"99999999999\""}},
      {R"({"cluster": {"worker": {"1": "a:1", "01": "b:1"}}})", {"task 1 twice"}},
      {R"({"cluster": {"worker": []}})", {"\"worker\" lists no addresses"}},
      {R"({"cluster": {"worker": {}}})", {"\"worker\" lists no addresses"}},
      {R"({"cluster": {"worker": ["host"]}})", {"worker 0", "\"host\"", "no port"}},
      {R"({"cluster": {"worker": ["a:1", "a:1"]}})", {"worker 0 and worker 1", "\"a:1\""}},
      {R"({"task": []})", {"\"task\" is a list", "{\"type\": \"worker\", \"index\": 0}"}},
      {R"({"task": "worker"})", {"\"task\" is \"worker\""}},
      {R"({"task": {"type": "worker"}})", {"no index"}},
      {R"({"task": {"type": "worker", "index": null}})", {"no index"}},
      {R"({"task": {"index": 0}})", {"no type"}},
      {R"({"task": {"type": ["worker"], "index": 0}})", {"type is a list", "\"worker\""}},
      {R"({"task": {"type": true, "index": 0}})", {"type is true"}},
      {R"({"task": {"type": "", "index": 0}})", {"type is \"\""}},
      {R"({"task": {"type": "a\u0000b", "index": 0}})", {"type is \"a\\u0000b\""}},
      {R"({"task": {"type": "worker", "index": -1}})", {"index is -1", "from 0"}},
      {R"({"task": {"type": "worker", "index": "-1"}})", {"index is \"-1\""}},
      {R"({"task": {"type": "worker", "index": 1.5}})", {"index is 1.5"}},
      {R"({"task": {"type": "worker", "index": true}})", {"index is true"}},
      {R"({"task": {"type": "worker", "index": "one"}})", {"index is \"one\""}},
      {R"({"task": {"type": "worker", "index": "1 "}})", {"index is \"1 \""}},
      {R"({"task": {"type": "worker", "index": 2147483648}})", {"index is 2147483648"}},
      {R"({"task": {"type": "worker", "index": 18446744073709551615}})", {"18446744073709551615"}},
      {R"({"rpc_layer": 1})", {"\"rpc_layer\" is 1"}},
      {R"({"session_master": {}})", {"\"session_master\" is an object"}},
  };
  for (const auto& [text, words] : cases) {
    const auto error = caught<InvalidArgument>([&, text = text] { parse_tf_config(text); });
    ASSERT_TRUE(error) << text;
    for (const char* word : words) EXPECT_THAT(error->what(), HasSubstr(word));
  }
}

TEST(TFConfig, IsWrittenAsItIsRead) {
  const ClusterSpec dense({{"chief", {"[::1]:1"}}, {"worker", {"b:1", "c:1"}}});
  const auto sparse = ClusterSpec::sparse({{"worker", {{1, "b:1"}, {4, "e:1"}}}});
  for (const ClusterSpec& spec : {dense, sparse, ClusterSpec()}) {
    const TFConfig config = parse_tf_config(to_tf_config(spec, {"worker", 1}));
    EXPECT_EQ(config.cluster, spec);
    EXPECT_EQ(config.task, (Task{"worker", 1}));
  }
  EXPECT_EQ(to_tf_config(ClusterSpec({{"worker", {"a:1"}}}), {"worker", 0}),
            R"({"cluster":{"worker":["a:1"]},"task":{"index":0,"type":"worker"}})");
}

TEST(TFConfigClusterResolver, CLU04_NoClusterIsOneWorker) {
  for (const char* text : {static_cast<const char*>(nullptr), "", "{}"}) {
    const Environment environment(text);
    const TFConfigClusterResolver resolver;
    EXPECT_TRUE(resolver.cluster_spec().empty());
    EXPECT_FALSE(resolver.task());
    EXPECT_EQ(resolver.master(), "");
    EXPECT_EQ(ClusterView(resolver.cluster_spec(), resolver.task()).num_workers(), 1);
  }
  const Environment environment(
      R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":0}})");
  EXPECT_EQ(TFConfigClusterResolver().master(), "");
}

TEST(TFConfigClusterResolver, CLU05_CastsTypeAndIndexAsTensorFlowDoes) {
  const Environment environment(R"({"cluster": {"123": ["a:1", "b:2"]},
                                    "task": {"type": 123, "index": "1"}, "rpc_layer": "grpc"})");
  const TFConfigClusterResolver resolver;
  EXPECT_EQ(resolver.task(), (Task{"123", 1}));
  EXPECT_EQ(resolver.rpc_layer(), "grpc");
  EXPECT_EQ(resolver.master(), "grpc://b:2");
}

TEST(TFConfigClusterResolver, CodeBeatsTheEnvironment) {
  const Environment environment(kWorker1Of2);
  const TFConfigClusterResolver resolver({.task = Task{"worker", 0}, .rpc_layer = "grpc"});
  EXPECT_EQ(resolver.task(), (Task{"worker", 0}));
  EXPECT_EQ(resolver.master(), "grpc://127.0.0.1:20000");
  EXPECT_EQ(TFConfigClusterResolver().master(), "127.0.0.1:20001");
}

TEST(TFConfigClusterResolver, ASessionMasterIsTheMaster) {
  const Environment environment(R"({"session_master": "grpc://elsewhere:1"})");
  EXPECT_EQ(TFConfigClusterResolver().master(), "grpc://elsewhere:1");
}

TEST(TFConfigClusterResolver, ReadsTheEnvironmentOnceWhenItIsMade) {
  const Environment environment(kWorker1Of2);
  const TFConfigClusterResolver resolver;
  const Environment later("{}");
  EXPECT_EQ(resolver.task(), (Task{"worker", 1}));
  EXPECT_EQ(resolver.cluster_spec().num_tasks("worker"), 2u);
}

TEST(TFConfigClusterResolver, SaysWhatItRead) {
  std::vector<std::pair<logging::Level, std::string>> lines;
  const auto level = logging::level();
  logging::set_level(logging::Level::info);
  logging::set_sink([&](auto at, std::string_view text) { lines.emplace_back(at, text); });
  {
    const Environment environment(kWorker1Of2);
    const TFConfigClusterResolver resolver;
  }
  {
    const Environment environment(R"({"task": {"type": "worker", "index": 3}})");
    const TFConfigClusterResolver resolver;
  }
  logging::set_sink({});
  logging::set_level(level);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].first, logging::Level::info);
  EXPECT_EQ(lines[0].second,
            "TF_CONFIG: this process is worker 1; worker: 127.0.0.1:20000, 127.0.0.1:20001");
  EXPECT_EQ(lines[1].first, logging::Level::warning);
  EXPECT_THAT(lines[1].second, HasSubstr("worker 3, but there is no cluster"));
}

TEST(TFConfigClusterResolver, NamesTheCallersLine) {
  const Environment environment("{");
  const auto error = caught<InvalidArgument>([] { TFConfigClusterResolver(); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->location().file, HasSubstr("tf_config_test"));
}

TEST(SimpleClusterResolver, SaysWhatTheProgramSays) {
  const ClusterSpec spec({{"worker", {"a:1", "b:1"}}});
  const SimpleClusterResolver resolver(spec, Task{"worker", 1}, "grpc");
  EXPECT_EQ(resolver.cluster_spec(), spec);
  EXPECT_EQ(resolver.task(), (Task{"worker", 1}));
  EXPECT_EQ(resolver.master(), "grpc://b:1");
  EXPECT_EQ(SimpleClusterResolver(spec).task(), std::nullopt);
  EXPECT_EQ(SimpleClusterResolver(spec).master(), "");
  EXPECT_THAT(
      [&] {
        SimpleClusterResolver(spec, Task{"worker", 2}).master();
      },
      throws<InvalidArgument>("no worker 2"));
}

}  // namespace
}  // namespace lockstep
