// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cluster/cluster_view.h>
#include <lockstep/cluster/tf_config.h>

#include <array>
#include <random>

#include "support/errors.h"
#include "support/quiet_log.h"
#include "support/sanitizers.h"

namespace lockstep {
namespace {

using lockstep::testing::throws;

const std::array<std::string, 5> kSeeds = {
    R"({"cluster":{"worker":["127.0.0.1:20000","127.0.0.1:20001"]},"task":{"type":"worker","index":1}})",
    R"({"cluster":{"chief":["[::1]:1"],"worker":{"0":"a:1","1":"b:65535"}},"task":{"type":"chief","index":"0"}})",
    R"({"cluster":{"evaluator":["e:1"],"ps":["p:1"],"worker":["w:1"]},"task":{"type":"evaluator","index":0}})",
    R"({"task":{"index":0,"type":7},"rpc_layer":"grpc","session_master":"x","environment":"cloud"})",
    R"({"cluster":{"worker":["h\u00f6st:1","fe80::1%eth0:2"]},"task":{"type":"master","index":-0}})",
};
// What a blind change of bytes would rarely come upon.
const std::array<std::string, 24> kTokens = {"null",
                                             "true",
                                             "-1",
                                             "1e999",
                                             "18446744073709551616",
                                             "[",
                                             "]",
                                             "{",
                                             "}",
                                             ",",
                                             ":",
                                             "\"",
                                             "\\u0000",
                                             "\\",
                                             "\\ud800",
                                             "\xff",
                                             "\xc3",
                                             "[[[",
                                             "0.5",
                                             "-",
                                             "\"cluster\":",
                                             "\"\"",
                                             "\"task\":",
                                             "2147483648"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string operator()() {
    std::string text = kSeeds[below(kSeeds.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1), length = below(9);
    switch (below(6)) {
      case 0:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, kTokens[below(kTokens.size())]);
        break;
      case 3:
        text.replace(at, length, kTokens[below(kTokens.size())]);
        break;
      case 4: {
        const std::string& other = kSeeds[below(kSeeds.size())];
        text.replace(at, length, other, below(other.size()), below(40));
        break;
      }
      default:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
    }
  }

  std::mt19937 random_;
};

// Reads the text as a worker's start does, and whatever was read once more. Any exception but
// InvalidArgument fails the test by ending it.
bool is_accepted(const std::string& text) {
  try {
    const TFConfig config = parse_tf_config(text);
    const ClusterView view(config.cluster, config.task);
    EXPECT_GE(view.num_workers(), 1);
    EXPECT_LT(view.rank(), view.num_workers());
    if (config.task) {
      const TFConfig again = parse_tf_config(to_tf_config(config.cluster, *config.task));
      EXPECT_EQ(again.cluster, config.cluster) << text;
      EXPECT_EQ(again.task, config.task) << text;
    }
    return true;
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.message()[0], '[') << text;
    EXPECT_EQ(error.message().find('\0'), std::string::npos) << text;
    EXPECT_LT(error.message().size(), 1000u) << text;
    return false;
  }
}

TEST(HostileTFConfig, IsReadOrRefusedButNeverAnythingElse) {
  const testing::QuietLog quiet;
  const int count = testing::kSanitized ? 20'000 : 100'000;
  Mutator mutated(7);
  int accepted = 0;
  for (int i = 0; i < count; ++i) accepted += is_accepted(mutated());
  // Both ends were reached, or the mutations are of no use.
  EXPECT_GT(accepted, count / 100);
  EXPECT_LT(accepted, count / 2);
}

TEST(HostileTFConfig, EveryBeginningIsReadOrRefused) {
  const testing::QuietLog quiet;
  for (const std::string& seed : kSeeds)
    for (std::size_t size = 1; size < seed.size(); ++size)
      EXPECT_THAT([&] { parse_tf_config(seed.substr(0, size)); },
                  throws<InvalidArgument>("not JSON"));
}

TEST(HostileTFConfig, DepthDoesNotExhaustTheStack) {
  constexpr std::size_t kDepth = 1'000'000;
  const std::string open(kDepth, '['), close(kDepth, ']');
  const auto in = [&](const std::string& before, const std::string& after) {
    return before + open + close + after;
  };
  EXPECT_FALSE(is_accepted(open));
  EXPECT_FALSE(is_accepted(in("", "")));
  EXPECT_FALSE(is_accepted(in(R"({"cluster":)", "}")));
  EXPECT_FALSE(is_accepted(in(R"({"cluster":{"worker":)", "}}")));
  EXPECT_FALSE(is_accepted(in(R"({"task":{"type":)", R"(,"index":0}})")));
  EXPECT_FALSE(is_accepted(in(R"({"task":{"type":"worker","index":)", "}}")));
  EXPECT_TRUE(is_accepted(in(R"({"more":)", "}")));
}

TEST(HostileTFConfig, ManyTasksAreReadInTime) {
  std::string text = R"({"cluster":{"worker":[)";
  constexpr int kTasks = 20'000;
  for (int i = 0; i < kTasks; ++i) text += (i ? ",\"h" : "\"h") + std::to_string(i) + ":1\"";
  text += R"(]},"task":{"type":"worker","index":19999}})";
  const TFConfig config = parse_tf_config(text);
  EXPECT_EQ(ClusterView(config.cluster, config.task).rank(), kTasks - 1);
}

}  // namespace
}  // namespace lockstep
