// SPDX-License-Identifier: Apache-2.0
// A training step is compiled by Google's compiler for TPUs that are not there. It shows that the
// program is understood, is made of four replicas, updates weights in place and fits; not what it
// computes. In a process of its own, as libtpu and XLA's CPU plugin have settings in common.
#include <lockstep/lockstep.h>

#include <cstdlib>

#include "device/xla/compile_options.h"
#include "distribute/traced_replicas.h"
#include "support/errors.h"
#include "support/traced.h"

namespace lockstep::xla::abi {

// What only compiling ahead of time needs of the interface.
struct Topology;
struct TopologyCreate {
  static constexpr Slot kSlot = static_cast<Slot>(82);
  Head head;
  const char* name = nullptr;
  std::size_t name_size = 0;
  const NamedValue* create_options = nullptr;
  std::size_t num_options = 0;
  Topology* topology = nullptr;
};
struct TopologyGetDeviceDescriptions {
  static constexpr Slot kSlot = static_cast<Slot>(86);
  Head head;
  const Topology* topology = nullptr;
  DeviceDescription* const* descriptions = nullptr;
  std::size_t num_descriptions = 0;
};
struct Compile {
  static constexpr Slot kSlot = static_cast<Slot>(89);
  Head head;
  const Topology* topology = nullptr;
  const Program* program = nullptr;
  const char* compile_options = nullptr;
  std::size_t compile_options_size = 0;
  Client* client = nullptr;
  Executable* executable = nullptr;
};
struct ExecutableNumReplicas {
  static constexpr Slot kSlot = static_cast<Slot>(42);
  Head head;
  Executable* executable = nullptr;
  std::size_t num_replicas = 0;
};

}  // namespace lockstep::xla::abi

namespace lockstep {
namespace {

using namespace testing;  // NOLINT
using ::testing::HasSubstr;

struct Example {
  Tensor image, label;
};

// The program of one step of a convolutional network with dropout, on four replicas, once it ran on
// CPUs.
std::string training_step() {
  const TPUStrategy strategy({.replicas = 4});
  const auto scope = strategy.scope();
  const nn::Sequential model(nn::Conv2D(1, 8, {.padding = Padding::same, .activation = nn::relu}),
                             nn::MaxPool2D(), nn::Flatten(), nn::Dropout(0.5),
                             nn::Dense(8 * 4 * 4, 10));
  optim::Adam optimizer({.learning_rate = optim::cosine_decay(1e-3), .clip = {.global_norm = 1.0}});
  metrics::SparseCategoricalAccuracy accuracy;
  const auto train = strategy.distribute_dataset(
      data::digits<Example>("train").batch(32, {.drop_remainder = true}));
  const auto step = [&](const Example& batch) {
    GradientTape tape;
    const Tensor images = reshape(batch.image, {-1, 8, 8, 1});
    const Tensor logits = model(images, {.training = true});
    const Tensor loss =
        nn::compute_average_loss(nn::sparse_softmax_cross_entropy(batch.label, logits));
    optimizer.minimize(loss, model.trainable_variables(), tape);
    accuracy.update_state(batch.label, logits);
    return loss;
  };
  strategy.run(step, *train.iterator().next());
  return dynamic_cast<TracedReplicas&>(*strategy.implementation()).programs().text();
}

struct Compiled {
  std::string kind;
  std::size_t devices, replicas;
  std::int64_t alias_bytes;
};

Compiled compiled_for(const xla::Plugin& plugin, const std::string& topology,
                      const std::string& text) {
  xla::Call<xla::abi::TopologyCreate> create;
  create->name = topology.data();
  create->name_size = topology.size();
  plugin.call("PJRT_TopologyDescription_Create", create);
  xla::Call<xla::abi::TopologyGetDeviceDescriptions> devices;
  devices->topology = create->topology;
  plugin.call("PJRT_TopologyDescription_GetDeviceDescriptions", devices);
  std::vector<int> ids;
  Compiled result{};
  for (std::size_t i = 0; i < devices->num_descriptions; ++i) {
    xla::Call<xla::abi::DeviceDescriptionId> id;
    id->description = devices->descriptions[i];
    plugin.call("PJRT_DeviceDescription_Id", id);
    ids.push_back(id->id);
    xla::Call<xla::abi::DeviceDescriptionKind> kind;
    kind->description = devices->descriptions[i];
    plugin.call("PJRT_DeviceDescription_Kind", kind);
    result.kind.assign(kind->kind, kind->kind_size);
  }
  const std::string options = xla::compile_options(ids);
  xla::Call<xla::abi::Program> program;
  program->code = text.data();
  program->code_size = text.size();
  program->format = "mlir";
  program->format_size = 4;
  xla::Call<xla::abi::Compile> compile;
  compile->topology = create->topology;
  compile->program = program.get();
  compile->compile_options = options.data();
  compile->compile_options_size = options.size();
  plugin.call("PJRT_Compile", compile);
  xla::Call<xla::abi::ExecutableNumReplicas> replicas;
  replicas->executable = compile->executable;
  plugin.call("PJRT_Executable_NumReplicas", replicas);
  xla::Call<xla::abi::ExecutableGetCompiledMemoryStats> stats;
  stats->executable = compile->executable;
  plugin.call("PJRT_Executable_GetCompiledMemoryStats", stats);
  result.devices = ids.size();
  result.replicas = replicas->num_replicas;
  result.alias_bytes = stats->alias_size_in_bytes;
  return result;
}

TEST(TPUAheadOfTime, CompilesATrainingStepForTpus) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const char* const path = std::getenv("LOCKSTEP_LIBTPU");
  if (!path) GTEST_SKIP() << "needs libtpu: LOCKSTEP_LIBTPU is not set";
  setenv("TPU_SKIP_MDS_QUERY", "1", 1);  // there is no metadata server to ask
  const std::string text = training_step();
  EXPECT_THAT(text, HasSubstr("stablehlo.all_reduce"));
  const xla::Plugin& plugin = xla::Plugin::load(path);
  for (const auto& [topology, kind] :
       {std::pair("v5e:2x2", "TPU v5 lite"), std::pair("v6e:2x2", "TPU v6 lite")}) {
    const Compiled compiled = compiled_for(plugin, topology, text);
    EXPECT_EQ(compiled.kind, kind);
    EXPECT_EQ(compiled.devices, 4u);
    EXPECT_EQ(compiled.replicas, 4u);
    // Weights and two moments of each, at least.
    EXPECT_GE(compiled.alias_bytes, 3 * 4 * (9 * 8 + 8 + 128 * 10 + 10));
  }
  std::string wrong = text;
  wrong.replace(wrong.find("stablehlo.all_reduce"), 20, "stablehlo.no_such_op");
  EXPECT_ANY_THROW(compiled_for(plugin, "v5e:2x2", wrong));
}

}  // namespace
}  // namespace lockstep
