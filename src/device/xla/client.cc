// SPDX-License-Identifier: Apache-2.0
#include "device/xla/client.h"

#include <lockstep/telemetry/telemetry.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "device/xla/compile_options.h"
#include "device/xla/dump.h"

namespace lockstep::xla {
namespace {

constexpr char kFormat[] = "mlir";

void describe_program(const std::string& text, abi::Program& program) {
  program.code = text.data();
  program.code_size = text.size();
  program.format = kFormat;
  program.format_size = sizeof kFormat - 1;
}

abi::NamedValue int64_option(const char* name, std::int64_t value) {
  abi::NamedValue option;
  option.head.struct_size = sizeof option;
  option.name = name;
  option.name_size = std::char_traits<char>::length(name);
  option.type = abi::ValueType::int64;
  option.int64_value = value;
  option.value_size = 1;
  return option;
}

std::int64_t bytes_of(abi::ElementType type) {
  switch (type) {
    case abi::ElementType::f64:
    case abi::ElementType::s64:
    case abi::ElementType::u64:
      return 8;
    case abi::ElementType::f16:
    case abi::ElementType::bf16:
      return 2;
    case abi::ElementType::pred:
    case abi::ElementType::u8:
      return 1;
    default:
      return 4;
  }
}

// What a loaded executable says of itself, by way of a handle that must be destroyed.
class Description {
 public:
  Description(const Plugin& plugin, abi::LoadedExecutable* loaded) : plugin_(plugin) {
    Call<abi::LoadedExecutableGetExecutable> get;
    get->loaded_executable = loaded;
    plugin.call("PJRT_LoadedExecutable_GetExecutable", get);
    executable_ = get->executable;
  }
  ~Description() {
    Call<abi::ExecutableDestroy> destroy;
    destroy->executable = executable_;
    plugin_.call_noexcept("PJRT_Executable_Destroy", destroy);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  std::size_t num_outputs() const {
    Call<abi::ExecutableNumOutputs> outputs;
    outputs->executable = executable_;
    plugin_.call("PJRT_Executable_NumOutputs", outputs);
    return outputs->num_outputs;
  }
  std::int64_t alias_bytes() const {
    Call<abi::ExecutableGetCompiledMemoryStats> stats;
    stats->executable = executable_;
    try {
      plugin_.call("PJRT_Executable_GetCompiledMemoryStats", stats);
    } catch (const Unimplemented&) {
      return 0;
    }
    return stats->alias_size_in_bytes;
  }

 private:
  const Plugin& plugin_;
  abi::Executable* executable_ = nullptr;
};

}  // namespace

// ---- DeviceArray

DeviceArray::~DeviceArray() {
  Call<abi::BufferDestroy> destroy;
  destroy->buffer = buffer_;
  client_.plugin().call_noexcept("PJRT_Buffer_Destroy", destroy);
}

void DeviceArray::to_host(void* to, std::size_t bytes, int rank) const {
  // The device's own layout may be another, and would be taken if none were asked for.
  std::int64_t minor_to_major[Shape::kMaxRank];
  for (int i = 0; i < rank; ++i) minor_to_major[i] = rank - 1 - i;
  Call<abi::Layout> layout;
  layout->tiled.head.struct_size = sizeof(abi::Layout::Tiled);
  layout->tiled.minor_to_major = minor_to_major;
  layout->tiled.minor_to_major_size = static_cast<std::size_t>(rank);
  Call<abi::BufferToHostBuffer> copy;
  copy->source = buffer_;
  copy->host_layout = layout.get();
  copy->destination = to;
  copy->destination_size = bytes;
  client_.plugin().call("PJRT_Buffer_ToHostBuffer", copy);
  client_.plugin().await("PJRT_Buffer_ToHostBuffer", copy->event);
}

bool DeviceArray::donated() const {
  Call<abi::BufferIsDeleted> deleted;
  deleted->buffer = buffer_;
  client_.plugin().call("PJRT_Buffer_IsDeleted", deleted);
  return deleted->is_deleted;
}

// ---- Executable

Executable::Executable(const Client& client, abi::LoadedExecutable* executable,
                       std::span<abi::Device* const> devices)
    : client_(client), executable_(executable), num_replicas_(static_cast<int>(devices.size())) {
  // The order of arguments and outputs.
  Call<abi::LoadedExecutableAddressableDevices> placed;
  placed->executable = executable;
  client.plugin().call("PJRT_LoadedExecutable_AddressableDevices", placed);
  ensure(std::equal(devices.begin(), devices.end(), placed->devices,
                    placed->devices + placed->num_devices),
         "TPUStrategy", "the program is on ", placed->num_devices,
         " devices in another order than asked for");
  const Description description(client.plugin(), executable);
  num_outputs_ = description.num_outputs();
  alias_bytes_ = description.alias_bytes();
}

Executable::~Executable() {
  Call<abi::LoadedExecutableDestroy> destroy;
  destroy->executable = executable_;
  client_.plugin().call_noexcept("PJRT_LoadedExecutable_Destroy", destroy);
}

std::vector<std::vector<DeviceArrayPtr>> Executable::run(
    std::span<const std::vector<abi::Buffer*>> arguments) const {
  constexpr const char* kWhat = "PJRT_LoadedExecutable_Execute";
  const auto devices = static_cast<std::size_t>(num_replicas_);
  ensure(arguments.size() == devices, kWhat, "arguments of ", arguments.size(),
         " replicas for a program of ", devices);
  std::vector<abi::Buffer* const*> argument_lists;
  std::vector<std::vector<abi::Buffer*>> results(devices);
  std::vector<abi::Buffer**> output_lists;
  std::vector<abi::Event*> events(devices, nullptr);
  for (std::size_t i = 0; i < devices; ++i) {
    argument_lists.push_back(arguments[i].data());
    results[i].resize(num_outputs_);
    output_lists.push_back(results[i].data());
  }
  Call<abi::ExecuteOptions> options;
  const std::lock_guard launch(client_.launch_mutex_);
  options->launch_id = ++client_.launches_;
  Call<abi::LoadedExecutableExecute> execute;
  execute->executable = executable_;
  execute->options = options.get();
  execute->argument_lists = argument_lists.data();
  execute->num_devices = devices;
  execute->num_args = arguments[0].size();
  execute->output_lists = output_lists.data();
  execute->device_complete_events = events.data();
  client_.plugin().call(kWhat, execute);

  std::vector<std::vector<DeviceArrayPtr>> outputs(devices);
  for (std::size_t i = 0; i < devices; ++i)
    for (abi::Buffer* const buffer : results[i])
      outputs[i].push_back(std::make_shared<DeviceArray>(client_, static_cast<int>(i), buffer));
  std::exception_ptr failure;
  for (abi::Event* const event : events) {
    try {
      client_.plugin().await(kWhat, event);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  return outputs;
}

// ---- Client

const Client& Client::of(const std::string& path) {
  static std::mutex mutex;
  static auto& clients = *new std::map<std::string, const Client*>;
  const std::lock_guard lock(mutex);
  const Client*& client = clients[path];
  if (!client) client = new Client(Plugin::load(path));
  return *client;
}

Client::Client(const Plugin& plugin) : plugin_(plugin) {
  const abi::NamedValue count = int64_option("cpu_device_count", kStandInDevices);
  // Only XLA's CPU plugin knows the option; others refuse what they do not know, or ignore it.
  const bool cpu = plugin.path().find("cpu") != std::string::npos;
  Call<abi::ClientCreate> create;
  if (cpu) {
    create->create_options = &count;
    create->num_options = 1;
  }
  try {
    plugin_.call("PJRT_Client_Create", create);
  } catch (const InvalidArgument&) {
    if (!cpu) throw;
    create->num_options = 0;
    plugin_.call("PJRT_Client_Create", create);
  }
  client_ = create->client;
  Call<abi::ClientPlatformName> name;
  name->client = client_;
  plugin_.call("PJRT_Client_PlatformName", name);
  platform_.assign(name->platform_name, name->platform_name_size);
  list_devices();
}

void Client::list_devices() {
  Call<abi::ClientAddressableDevices> list;
  list->client = client_;
  plugin_.call("PJRT_Client_AddressableDevices", list);
  devices_.assign(list->devices, list->devices + list->num_devices);
  if (devices_.empty())
    throw Unavailable(
        message("TPUStrategy", "no TPU: the plugin ", plugin_.path(), " found no device"),
        SourceLocation{});
  for (abi::Device* const device : devices_) {
    Call<abi::DeviceGetDescription> get;
    get->device = device;
    plugin_.call("PJRT_Device_GetDescription", get);
    Call<abi::DeviceDescriptionId> id;
    id->description = get->description;
    plugin_.call("PJRT_DeviceDescription_Id", id);
    ids_.push_back(id->id);
    Call<abi::DeviceDescriptionKind> kind;
    kind->description = get->description;
    plugin_.call("PJRT_DeviceDescription_Kind", kind);
    kinds_.emplace_back(kind->kind, kind->kind_size);
  }
}

DeviceArrayPtr Client::upload(abi::ElementType type, const Shape& shape, const void* data,
                              int device) const {
  Call<abi::ClientBufferFromHostBuffer> copy;
  copy->client = client_;
  copy->data = data;
  copy->type = type;
  copy->dims = shape.dims().data();
  copy->num_dims = shape.dims().size();
  copy->device = devices_[static_cast<std::size_t>(device)];
  plugin_.call("PJRT_Client_BufferFromHostBuffer", copy);
  auto array = std::make_shared<DeviceArray>(*this, device, copy->buffer);
  static telemetry::Counter& bytes = telemetry::counter("lockstep_xla_upload_bytes_total");
  bytes.add(shape.num_elements() * bytes_of(type));
  plugin_.await("PJRT_Client_BufferFromHostBuffer", copy->done_with_host_buffer);
  return array;
}

std::unique_ptr<Executable> Client::compile(const std::string& text, int num_replicas) const {
  dump(text);
  const std::string options = compile_options(
      std::span(ids_).first(static_cast<std::size_t>(num_replicas)), platform_ == "cpu");
  Call<abi::Program> program;
  describe_program(text, *program.get());
  Call<abi::ClientCompile> compile;
  compile->client = client_;
  compile->program = program.get();
  compile->compile_options = options.data();
  compile->compile_options_size = options.size();
  try {
    plugin_.call("PJRT_Client_Compile", compile);
  } catch (const ResourceExhausted&) {
    throw;
  } catch (const Error& error) {
    throw InternalError(message("TPUStrategy", "the compiler (", plugin_.describe(),
                                ") refused a traced program: ", error.message()),
                        SourceLocation{});
  }
  return std::make_unique<Executable>(
      *this, compile->executable,
      std::span(devices_).first(static_cast<std::size_t>(num_replicas)));
}

}  // namespace lockstep::xla
