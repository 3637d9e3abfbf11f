// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The binary interface of OpenXLA's PJRT C API, as far as it is used here: a plugin exports
// GetPjrtApi(), which returns a table of functions; each takes one struct and returns an error or
// null. Struct layouts, slots and numbers are facts of that interface (stable since its version
// 0.57; new fields and slots are appended); tests/device/xla_abi_test.cc compares all of them with
// the official header where it is at hand.
//
// Every argument struct begins with its size. A plugin refuses a struct smaller than its own
// version's and ignores what is beyond, so calls pass the struct with a tail of zeros (see Call in
// plugin.h), which newer plugins take for absent fields.
namespace lockstep::xla::abi {

// Owned by the plugin and known by address only.
struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Executable;
struct LoadedExecutable;
struct Buffer;

struct Head {
  std::size_t struct_size = 0;
  void* extensions = nullptr;
};

inline constexpr int kMajorVersion = 0;
inline constexpr int kOldestMinorVersion = 57;
inline constexpr int kNewestTestedMinorVersion = 116;

struct Version {
  Head head;
  int major_version = 0;
  int minor_version = 0;
};

// Pointers to functions follow, up to head.struct_size bytes in all.
struct Api {
  Head head;
  Version version;
};
using Function = void (*)();

// The places of the functions behind Api.
enum class Slot : int {
  error_destroy = 0,
  error_message = 1,
  error_get_code = 2,
  plugin_initialize = 3,
  plugin_attributes = 4,
  event_destroy = 5,
  event_await = 8,
  client_create = 10,
  client_platform_name = 12,
  client_addressable_devices = 16,
  client_compile = 20,
  client_buffer_from_host_buffer = 22,
  device_description_id = 23,
  device_description_kind = 26,
  device_get_description = 29,
  executable_destroy = 40,
  executable_num_outputs = 44,
  loaded_executable_destroy = 50,
  loaded_executable_get_executable = 51,
  loaded_executable_addressable_devices = 52,
  loaded_executable_execute = 55,
  buffer_destroy = 58,
  buffer_is_deleted = 68,
  buffer_to_host_buffer = 70,
  executable_get_compiled_memory_stats = 96,
};

// absl's status codes.
enum class Code : int {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

enum class ElementType : int {
  pred = 1,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  u32 = 8,
  u64 = 9,
  f16 = 10,
  f32 = 11,
  f64 = 12,
  bf16 = 13,
};

enum class ValueType : int { string = 0, int64 = 1, int64_list = 2, float32 = 3, boolean = 4 };
enum class HostBufferSemantics : int { immutable_only_during_call = 0 };
enum class LayoutType : int { tiled = 0 };

// ---- errors, events

struct ErrorDestroy {
  static constexpr Slot kSlot = Slot::error_destroy;
  Head head;
  Error* error = nullptr;
};
struct ErrorMessage {
  static constexpr Slot kSlot = Slot::error_message;
  Head head;
  const Error* error = nullptr;
  const char* message = nullptr;
  std::size_t message_size = 0;
};
struct ErrorGetCode {
  static constexpr Slot kSlot = Slot::error_get_code;
  Head head;
  const Error* error = nullptr;
  Code code = Code::ok;
};
struct EventDestroy {
  static constexpr Slot kSlot = Slot::event_destroy;
  Head head;
  Event* event = nullptr;
};
struct EventAwait {
  static constexpr Slot kSlot = Slot::event_await;
  Head head;
  Event* event = nullptr;
};

// ---- plugin

struct NamedValue {
  Head head;
  const char* name = nullptr;
  std::size_t name_size = 0;
  ValueType type = ValueType::string;
  union {
    const char* string_value = nullptr;
    std::int64_t int64_value;
    const std::int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  std::size_t value_size = 1;
};
struct PluginInitialize {
  static constexpr Slot kSlot = Slot::plugin_initialize;
  Head head;
};
struct PluginAttributes {
  static constexpr Slot kSlot = Slot::plugin_attributes;
  Head head;
  const NamedValue* attributes = nullptr;
  std::size_t num_attributes = 0;
};

// ---- client, devices

struct ClientCreate {
  static constexpr Slot kSlot = Slot::client_create;
  Head head;
  const NamedValue* create_options = nullptr;
  std::size_t num_options = 0;
  void* kv_get_callback = nullptr;
  void* kv_get_user_arg = nullptr;
  void* kv_put_callback = nullptr;
  void* kv_put_user_arg = nullptr;
  Client* client = nullptr;
  void* kv_try_get_callback = nullptr;
  void* kv_try_get_user_arg = nullptr;
};
struct ClientPlatformName {
  static constexpr Slot kSlot = Slot::client_platform_name;
  Head head;
  Client* client = nullptr;
  const char* platform_name = nullptr;
  std::size_t platform_name_size = 0;
};
struct ClientAddressableDevices {
  static constexpr Slot kSlot = Slot::client_addressable_devices;
  Head head;
  Client* client = nullptr;
  Device* const* devices = nullptr;
  std::size_t num_devices = 0;
};
struct DeviceGetDescription {
  static constexpr Slot kSlot = Slot::device_get_description;
  Head head;
  Device* device = nullptr;
  DeviceDescription* description = nullptr;
};
struct DeviceDescriptionId {
  static constexpr Slot kSlot = Slot::device_description_id;
  Head head;
  DeviceDescription* description = nullptr;
  int id = 0;
};
struct DeviceDescriptionKind {
  static constexpr Slot kSlot = Slot::device_description_kind;
  Head head;
  DeviceDescription* description = nullptr;
  const char* kind = nullptr;
  std::size_t kind_size = 0;
};

// ---- programs

struct Program {
  Head head;
  const char* code = nullptr;
  std::size_t code_size = 0;
  const char* format = nullptr;
  std::size_t format_size = 0;
};
struct ClientCompile {
  static constexpr Slot kSlot = Slot::client_compile;
  Head head;
  Client* client = nullptr;
  const Program* program = nullptr;
  const char* compile_options = nullptr;
  std::size_t compile_options_size = 0;
  LoadedExecutable* executable = nullptr;
};
struct ExecutableDestroy {
  static constexpr Slot kSlot = Slot::executable_destroy;
  Head head;
  Executable* executable = nullptr;
};
struct ExecutableNumOutputs {
  static constexpr Slot kSlot = Slot::executable_num_outputs;
  Head head;
  Executable* executable = nullptr;
  std::size_t num_outputs = 0;
};
struct ExecutableGetCompiledMemoryStats {
  static constexpr Slot kSlot = Slot::executable_get_compiled_memory_stats;
  Head head;
  Executable* executable = nullptr;
  std::int64_t generated_code_size_in_bytes = 0;
  std::int64_t argument_size_in_bytes = 0;
  std::int64_t output_size_in_bytes = 0;
  std::int64_t alias_size_in_bytes = 0;
  std::int64_t temp_size_in_bytes = 0;
  std::int64_t host_sizes_in_bytes[5] = {};
};
struct LoadedExecutableDestroy {
  static constexpr Slot kSlot = Slot::loaded_executable_destroy;
  Head head;
  LoadedExecutable* executable = nullptr;
};
struct LoadedExecutableGetExecutable {
  static constexpr Slot kSlot = Slot::loaded_executable_get_executable;
  Head head;
  LoadedExecutable* loaded_executable = nullptr;
  Executable* executable = nullptr;
};
struct LoadedExecutableAddressableDevices {
  static constexpr Slot kSlot = Slot::loaded_executable_addressable_devices;
  Head head;
  LoadedExecutable* executable = nullptr;
  Device* const* devices = nullptr;
  std::size_t num_devices = 0;
};
struct ExecuteOptions {
  Head head;
  void* send_callbacks = nullptr;
  void* recv_callbacks = nullptr;
  std::size_t num_send_ops = 0;
  std::size_t num_recv_ops = 0;
  int launch_id = 0;
  const std::int64_t* non_donatable_input_indices = nullptr;
  std::size_t num_non_donatable_input_indices = 0;
};
struct LoadedExecutableExecute {
  static constexpr Slot kSlot = Slot::loaded_executable_execute;
  Head head;
  LoadedExecutable* executable = nullptr;
  ExecuteOptions* options = nullptr;
  Buffer* const* const* argument_lists = nullptr;
  std::size_t num_devices = 0;
  std::size_t num_args = 0;
  Buffer** const* output_lists = nullptr;
  Event** device_complete_events = nullptr;
  Device* execute_device = nullptr;
};

// ---- buffers

struct Layout {
  Head head;
  struct Tiled {
    Head head;
    const std::int64_t* minor_to_major = nullptr;
    std::size_t minor_to_major_size = 0;
    const std::int64_t* tile_dims = nullptr;
    const std::size_t* tile_dim_sizes = nullptr;
    std::size_t num_tiles = 0;
  } tiled;
  LayoutType type = LayoutType::tiled;
};
struct ClientBufferFromHostBuffer {
  static constexpr Slot kSlot = Slot::client_buffer_from_host_buffer;
  Head head;
  Client* client = nullptr;
  const void* data = nullptr;
  ElementType type = ElementType::f32;
  const std::int64_t* dims = nullptr;
  std::size_t num_dims = 0;
  const std::int64_t* byte_strides = nullptr;
  std::size_t num_byte_strides = 0;
  HostBufferSemantics semantics = HostBufferSemantics::immutable_only_during_call;
  Device* device = nullptr;
  Memory* memory = nullptr;
  Layout* device_layout = nullptr;
  Event* done_with_host_buffer = nullptr;
  Buffer* buffer = nullptr;
};
struct BufferToHostBuffer {
  static constexpr Slot kSlot = Slot::buffer_to_host_buffer;
  Head head;
  Buffer* source = nullptr;
  Layout* host_layout = nullptr;
  void* destination = nullptr;
  std::size_t destination_size = 0;
  Event* event = nullptr;
};
struct BufferDestroy {
  static constexpr Slot kSlot = Slot::buffer_destroy;
  Head head;
  Buffer* buffer = nullptr;
};
struct BufferIsDeleted {
  static constexpr Slot kSlot = Slot::buffer_is_deleted;
  Head head;
  Buffer* buffer = nullptr;
  bool is_deleted = false;
};

}  // namespace lockstep::xla::abi
