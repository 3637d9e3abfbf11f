// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>

#include "device/xla/compile_options.h"
#include "ops/traced.h"
#include "support/errors.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What an environment variable is, put back at the end.
class WithoutEnvironment {
 public:
  explicit WithoutEnvironment(const char* name) : name_(name) {
    if (const char* value = std::getenv(name)) value_ = value;
    unsetenv(name);
  }
  ~WithoutEnvironment() {
    if (value_) setenv(name_, value_->c_str(), 1);
  }

 private:
  const char* name_;
  std::optional<std::string> value_;
};

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

// Written down from the messages' .proto files, field by field.
TEST(XlaCompileOptions, AreProtocolBuffers) {
  const int one[] = {0}, four[] = {0, 1, 2, 3}, large[] = {300};
  EXPECT_EQ(hex(xla::compile_options(one)),
            "1a0f200128014a0908011001"
            "1a030a0100");
  EXPECT_EQ(hex(xla::compile_options(four)),
            "1a12200428014a0c08041001"
            "1a060a0400010203");
  EXPECT_EQ(hex(xla::compile_options(large)),
            "1a10200128014a0a08011001"
            "1a040a02ac02");
  EXPECT_EQ(hex(xla::compile_options(one, true)),
            "1a0f200128014a0908011001"
            "1a030a0100"
            "3a210a1b"
            "786c615f6370755f656e61626c655f666173745f6d696e5f6d6178"
            "12021000")
      << "with xla_cpu_enable_fast_min_max off";
}

TEST(XlaPlugin, TellsWhereItWasSearched) {
  const WithoutEnvironment cpu("LOCKSTEP_PJRT_CPU_PLUGIN"), tpu("TPU_LIBRARY_PATH");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT([] { xla::find_plugin("", {}); },
              throws<Unavailable>("TPU", "$LOCKSTEP_PJRT_CPU_PLUGIN (not set)", "libtpu.so",
                                  ".plugin = path"));
  EXPECT_THAT([] { xla::find_plugin("/no/such.so", {}); },
              throws<Unavailable>("TPU", "/no/such.so", "does not exist"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(XlaPlugin, RefusesWhatIsNone) {
  const std::string source = LOCKSTEP_TEST_SOURCE_DIR "/README.md";
  EXPECT_THAT([&] { xla::Plugin::load(source); },
              throws<Unavailable>("[TPUStrategy]", source, "cannot be loaded"));
  EXPECT_THAT([&] { xla::Plugin::load("libz.so.1"); },
              throws<Unavailable>("[TPUStrategy]", "no PJRT plugin", "GetPjrtApi"));
}

TEST(XlaPlugin, IsLoadedOnceAndSaysWhatItIs) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const xla::Client& client = plugin_client();
  EXPECT_EQ(&xla::Client::of(client.plugin().path()), &client);
  EXPECT_THAT(client.plugin().describe(), HasSubstr("PJRT 0."));
  EXPECT_THAT(client.plugin().describe(), HasSubstr("StableHLO 1."));
  EXPECT_GE(client.num_devices(), 4);
  EXPECT_EQ(list_devices(DeviceKind::xla).size(),
            static_cast<std::size_t>(xla::num_known_devices()));
}

TEST(XlaClient, ReportsWhatTheCompilerSays) {
  LOCKSTEP_REQUIRE_PLUGIN();
  EXPECT_THAT([] { plugin_client().compile("module { nonsense }", 1); },
              throws<InternalError>("refused", "nonsense", "PJRT 0.", "StableHLO"));
}

TEST(XlaClient, CarriesEveryDtypeBothWays) {
  LOCKSTEP_REQUIRE_PLUGIN();
  Noise noise(1);
  const Tensor x = noise.tensor<float>({3, 4, 5}, 9);
  for (int i = 0; i < 2; ++i)
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32,
                              DType::i64, DType::u8, DType::boolean}) {
      const Tensor expected = cast(x, dtype);
      const Tensor there = copy_to(expected, xla::device_at(plugin_client(), i));
      EXPECT_EQ(there.device().to_string(), "TPU:" + std::to_string(there.device().index));
      expect_close(copy_to(there, Device{}), expected, 0, std::string(name_of(dtype)));
    }
  const Tensor empty(Shape{0, 3}, std::initializer_list<float>{});
  EXPECT_EQ(copy_to(copy_to(empty, xla::device_at(plugin_client(), 0)), Device{}).shape(),
            empty.shape());
}

// ---- programs

// One traced step of one replica.
struct Step {
  std::vector<std::unique_ptr<xla::Trace>> traces;
  explicit Step(int replicas = 1) {
    for (int i = 0; i < replicas; ++i)
      traces.push_back(std::make_unique<xla::Trace>(xla::device_at(plugin_client(), i).index));
  }
};

TEST(XlaPrograms, CompileOnceUnlessANumberChanges) {
  LOCKSTEP_REQUIRE_PLUGIN();
  xla::Programs programs(plugin_client(), 1);
  const Tensor x = copy_to(vec({1, 2}), xla::device_at(plugin_client(), 0));
  std::vector<std::int64_t> compilations;
  for (const double factor : {2.0, 2.0, 3.0, 4.0, 5.0}) {
    Step step;
    Tensor y;
    {
      const xla::TraceScope tracing(step.traces[0].get());
      y = x * factor + 1;
    }
    programs.execute(step.traces);
    EXPECT_THAT(copy_to(y, Device{}).to_vector<float>(), ElementsAre(factor + 1, 2 * factor + 1));
    compilations.push_back(programs.compilations());
  }
  EXPECT_THAT(compilations, ElementsAre(1, 1, 2, 2, 2));
}

TEST(XlaPrograms, CompileAnewForOtherShapes) {
  LOCKSTEP_REQUIRE_PLUGIN();
  xla::Programs programs(plugin_client(), 1);
  for (const std::int64_t rows : {2, 3, 2, 3}) {
    Step step;
    const Tensor x = copy_to(ones({rows}), xla::device_at(plugin_client(), 0));
    Tensor y;
    {
      const xla::TraceScope tracing(step.traces[0].get());
      y = x + x;
    }
    programs.execute(step.traces);
    EXPECT_EQ(y.num_elements(), rows);
  }
  EXPECT_EQ(programs.compilations(), 2);
}

// The only holder of a value that a step replaces hands its memory over; others keep it.
TEST(XlaPrograms, DonateWhatNobodyHolds) {
  LOCKSTEP_REQUIRE_PLUGIN();
  xla::Programs programs(plugin_client(), 1);
  Tensor x = copy_to(vec({1, 2}), xla::device_at(plugin_client(), 0));
  const auto step = [&] {
    Step step;
    {
      const xla::TraceScope tracing(step.traces[0].get());
      x = x + 1;
    }
    programs.execute(step.traces);
  };
  std::shared_ptr<xla::DeviceArray> before = xla::value_of(x.buffer()).array;
  step();
  EXPECT_TRUE(before->donated());
  EXPECT_EQ(programs.alias_bytes(), 8);
  const Tensor held = x;
  step();
  EXPECT_THAT(copy_to(held, Device{}).to_vector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(copy_to(x, Device{}).to_vector<float>(), ElementsAre(3, 4));
}

TEST(XlaPrograms, RefuseReplicasThatDiffer) {
  LOCKSTEP_REQUIRE_PLUGIN();
  xla::Programs programs(plugin_client(), 2);
  Step step(2);
  std::vector<Tensor> y(2);
  for (int i = 0; i < 2; ++i) {
    const Tensor x = copy_to(vec({1, 2}), xla::device_at(plugin_client(), i));
    const xla::TraceScope tracing(step.traces[static_cast<std::size_t>(i)].get());
    y[static_cast<std::size_t>(i)] = i == 0 ? x + x : x * x;
  }
  EXPECT_THAT([&] { programs.execute(step.traces); },
              throws<InvalidArgument>("replicas 0 and 1", "stablehlo.add", "stablehlo.multiply"));
  step.traces[0]->abandon("a test");
  EXPECT_THAT([&] { copy_to(y[0], Device{}); }, throws<FailedPrecondition>("no value", "a test"));
}

// Small hosts have fewer threads than a program has devices.
TEST(XlaPrograms, ReduceOverMoreReplicasThanCores) {
  LOCKSTEP_REQUIRE_PLUGIN();
  constexpr int kReplicas = 4;
  xla::Programs programs(plugin_client(), kReplicas);
  std::vector<Tensor> x;
  for (int i = 0; i < kReplicas; ++i)
    x.push_back(copy_to(Tensor(static_cast<float>(i)), xla::device_at(plugin_client(), i)));
  for (int round = 0; round < 200; ++round) {
    Step step(kReplicas);
    for (int i = 0; i < kReplicas; ++i) {
      const xla::TraceScope tracing(step.traces[static_cast<std::size_t>(i)].get());
      Tensor& own = x[static_cast<std::size_t>(i)];
      const Tensor sum = traced::all_reduce({&own, 1}, kReplicas, ReduceOp::sum)[0];
      const Tensor twice = sum * 2;
      own = own + (traced::all_reduce({&twice, 1}, kReplicas, ReduceOp::mean)[0] - sum * 2);
    }
    programs.execute(step.traces);
  }
  for (int i = 0; i < kReplicas; ++i)
    EXPECT_EQ(x[static_cast<std::size_t>(i)].item<float>(), static_cast<float>(i));
  EXPECT_EQ(programs.compilations(), 1);
}

}  // namespace
}  // namespace lockstep
