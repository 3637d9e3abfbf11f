// SPDX-License-Identifier: Apache-2.0
// Our declarations of the PJRT interface against the official header, where it is at hand (it comes
// with the plugin that tests/support/pjrt_plugin.sh gets). What differs does not compile.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "device/xla/pjrt_abi.h"

#if __has_include("pjrt_c_api.h")
#include "pjrt_c_api.h"

namespace lockstep::xla::abi {
namespace {

template <class Ours, class Theirs>
constexpr bool same(std::size_t ours, std::size_t theirs) {
  return ours == theirs && sizeof(Ours) == sizeof(Theirs);
}

#define SAME_FIELD(Ours, field, Theirs, their_field)                        \
  static_assert(same<decltype(Ours::field), decltype(Theirs::their_field)>( \
                    offsetof(Ours, field), offsetof(Theirs, their_field)),  \
                #Ours "::" #field)
// Their sizes end with the last field; ours may be padded up to alignment.
#define SAME_SIZE(Ours, Theirs)                                                                   \
  static_assert(                                                                                  \
      sizeof(Ours) == (Theirs##_STRUCT_SIZE + alignof(Ours) - 1) / alignof(Ours) * alignof(Ours), \
      #Ours);                                                                                     \
  static_assert(std::is_standard_layout_v<Ours>)
#define SAME_SLOT(slot, name)                                                                 \
  static_assert(sizeof(Api) + static_cast<std::size_t>(Slot::slot) * sizeof(abi::Function) == \
                    offsetof(PJRT_Api, PJRT_##name),                                          \
                #slot)

static_assert(offsetof(Api, version) == offsetof(PJRT_Api, pjrt_api_version));
SAME_FIELD(Version, major_version, PJRT_Api_Version, major_version);
SAME_FIELD(Version, minor_version, PJRT_Api_Version, minor_version);
static_assert(PJRT_API_MAJOR == kMajorVersion);

SAME_SLOT(error_destroy, Error_Destroy);
SAME_SLOT(error_message, Error_Message);
SAME_SLOT(error_get_code, Error_GetCode);
SAME_SLOT(plugin_initialize, Plugin_Initialize);
SAME_SLOT(plugin_attributes, Plugin_Attributes);
SAME_SLOT(event_destroy, Event_Destroy);
SAME_SLOT(event_await, Event_Await);
SAME_SLOT(client_create, Client_Create);
SAME_SLOT(client_platform_name, Client_PlatformName);
SAME_SLOT(client_addressable_devices, Client_AddressableDevices);
SAME_SLOT(client_compile, Client_Compile);
SAME_SLOT(client_buffer_from_host_buffer, Client_BufferFromHostBuffer);
SAME_SLOT(device_description_id, DeviceDescription_Id);
SAME_SLOT(device_description_kind, DeviceDescription_Kind);
SAME_SLOT(device_get_description, Device_GetDescription);
SAME_SLOT(executable_destroy, Executable_Destroy);
SAME_SLOT(executable_num_outputs, Executable_NumOutputs);
SAME_SLOT(loaded_executable_destroy, LoadedExecutable_Destroy);
SAME_SLOT(loaded_executable_get_executable, LoadedExecutable_GetExecutable);
SAME_SLOT(loaded_executable_addressable_devices, LoadedExecutable_AddressableDevices);
SAME_SLOT(loaded_executable_execute, LoadedExecutable_Execute);
SAME_SLOT(buffer_destroy, Buffer_Destroy);
SAME_SLOT(buffer_is_deleted, Buffer_IsDeleted);
SAME_SLOT(buffer_to_host_buffer, Buffer_ToHostBuffer);
SAME_SLOT(executable_get_compiled_memory_stats, Executable_GetCompiledMemoryStats);

SAME_SIZE(ErrorDestroy, PJRT_Error_Destroy_Args);
SAME_FIELD(ErrorDestroy, error, PJRT_Error_Destroy_Args, error);
SAME_SIZE(ErrorMessage, PJRT_Error_Message_Args);
SAME_FIELD(ErrorMessage, error, PJRT_Error_Message_Args, error);
SAME_FIELD(ErrorMessage, message, PJRT_Error_Message_Args, message);
SAME_FIELD(ErrorMessage, message_size, PJRT_Error_Message_Args, message_size);
SAME_SIZE(ErrorGetCode, PJRT_Error_GetCode_Args);
SAME_FIELD(ErrorGetCode, error, PJRT_Error_GetCode_Args, error);
SAME_FIELD(ErrorGetCode, code, PJRT_Error_GetCode_Args, code);
SAME_SIZE(EventDestroy, PJRT_Event_Destroy_Args);
SAME_FIELD(EventDestroy, event, PJRT_Event_Destroy_Args, event);
SAME_SIZE(EventAwait, PJRT_Event_Await_Args);
SAME_FIELD(EventAwait, event, PJRT_Event_Await_Args, event);

SAME_SIZE(NamedValue, PJRT_NamedValue);
SAME_FIELD(NamedValue, name, PJRT_NamedValue, name);
SAME_FIELD(NamedValue, name_size, PJRT_NamedValue, name_size);
SAME_FIELD(NamedValue, type, PJRT_NamedValue, type);
SAME_FIELD(NamedValue, int64_value, PJRT_NamedValue, int64_value);
SAME_FIELD(NamedValue, int64_array_value, PJRT_NamedValue, int64_array_value);
SAME_FIELD(NamedValue, value_size, PJRT_NamedValue, value_size);
SAME_SIZE(PluginInitialize, PJRT_Plugin_Initialize_Args);
SAME_SIZE(PluginAttributes, PJRT_Plugin_Attributes_Args);
SAME_FIELD(PluginAttributes, attributes, PJRT_Plugin_Attributes_Args, attributes);
SAME_FIELD(PluginAttributes, num_attributes, PJRT_Plugin_Attributes_Args, num_attributes);

SAME_SIZE(ClientCreate, PJRT_Client_Create_Args);
SAME_FIELD(ClientCreate, create_options, PJRT_Client_Create_Args, create_options);
SAME_FIELD(ClientCreate, num_options, PJRT_Client_Create_Args, num_options);
SAME_FIELD(ClientCreate, kv_get_callback, PJRT_Client_Create_Args, kv_get_callback);
SAME_FIELD(ClientCreate, kv_put_callback, PJRT_Client_Create_Args, kv_put_callback);
SAME_FIELD(ClientCreate, client, PJRT_Client_Create_Args, client);
SAME_FIELD(ClientCreate, kv_try_get_callback, PJRT_Client_Create_Args, kv_try_get_callback);
SAME_SIZE(ClientPlatformName, PJRT_Client_PlatformName_Args);
SAME_FIELD(ClientPlatformName, platform_name, PJRT_Client_PlatformName_Args, platform_name);
SAME_FIELD(ClientPlatformName, platform_name_size, PJRT_Client_PlatformName_Args,
           platform_name_size);
SAME_SIZE(ClientAddressableDevices, PJRT_Client_AddressableDevices_Args);
SAME_FIELD(ClientAddressableDevices, devices, PJRT_Client_AddressableDevices_Args,
           addressable_devices);
SAME_FIELD(ClientAddressableDevices, num_devices, PJRT_Client_AddressableDevices_Args,
           num_addressable_devices);
SAME_SIZE(DeviceGetDescription, PJRT_Device_GetDescription_Args);
SAME_FIELD(DeviceGetDescription, description, PJRT_Device_GetDescription_Args, device_description);
SAME_SIZE(DeviceDescriptionId, PJRT_DeviceDescription_Id_Args);
SAME_FIELD(DeviceDescriptionId, id, PJRT_DeviceDescription_Id_Args, id);
SAME_SIZE(DeviceDescriptionKind, PJRT_DeviceDescription_Kind_Args);
SAME_FIELD(DeviceDescriptionKind, kind, PJRT_DeviceDescription_Kind_Args, device_kind);
SAME_FIELD(DeviceDescriptionKind, kind_size, PJRT_DeviceDescription_Kind_Args, device_kind_size);

SAME_SIZE(Program, PJRT_Program);
SAME_FIELD(Program, code, PJRT_Program, code);
SAME_FIELD(Program, code_size, PJRT_Program, code_size);
SAME_FIELD(Program, format, PJRT_Program, format);
SAME_FIELD(Program, format_size, PJRT_Program, format_size);
SAME_SIZE(ClientCompile, PJRT_Client_Compile_Args);
SAME_FIELD(ClientCompile, client, PJRT_Client_Compile_Args, client);
SAME_FIELD(ClientCompile, program, PJRT_Client_Compile_Args, program);
SAME_FIELD(ClientCompile, compile_options, PJRT_Client_Compile_Args, compile_options);
SAME_FIELD(ClientCompile, compile_options_size, PJRT_Client_Compile_Args, compile_options_size);
SAME_FIELD(ClientCompile, executable, PJRT_Client_Compile_Args, executable);
SAME_SIZE(ExecutableDestroy, PJRT_Executable_Destroy_Args);
SAME_SIZE(ExecutableNumOutputs, PJRT_Executable_NumOutputs_Args);
SAME_FIELD(ExecutableNumOutputs, num_outputs, PJRT_Executable_NumOutputs_Args, num_outputs);
// This one has grown at its end; we declare what all versions have.
SAME_FIELD(ExecutableGetCompiledMemoryStats, executable,
           PJRT_Executable_GetCompiledMemoryStats_Args, executable);
SAME_FIELD(ExecutableGetCompiledMemoryStats, alias_size_in_bytes,
           PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes);
SAME_FIELD(ExecutableGetCompiledMemoryStats, temp_size_in_bytes,
           PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
SAME_SIZE(LoadedExecutableDestroy, PJRT_LoadedExecutable_Destroy_Args);
SAME_SIZE(LoadedExecutableGetExecutable, PJRT_LoadedExecutable_GetExecutable_Args);
SAME_FIELD(LoadedExecutableGetExecutable, executable, PJRT_LoadedExecutable_GetExecutable_Args,
           executable);
SAME_SIZE(LoadedExecutableAddressableDevices, PJRT_LoadedExecutable_AddressableDevices_Args);
SAME_FIELD(LoadedExecutableAddressableDevices, devices,
           PJRT_LoadedExecutable_AddressableDevices_Args, addressable_devices);
// So has this one.
SAME_FIELD(ExecuteOptions, send_callbacks, PJRT_ExecuteOptions, send_callbacks);
SAME_FIELD(ExecuteOptions, num_recv_ops, PJRT_ExecuteOptions, num_recv_ops);
SAME_FIELD(ExecuteOptions, launch_id, PJRT_ExecuteOptions, launch_id);
SAME_FIELD(ExecuteOptions, non_donatable_input_indices, PJRT_ExecuteOptions,
           non_donatable_input_indices);
SAME_FIELD(ExecuteOptions, num_non_donatable_input_indices, PJRT_ExecuteOptions,
           num_non_donatable_input_indices);
SAME_SIZE(LoadedExecutableExecute, PJRT_LoadedExecutable_Execute_Args);
SAME_FIELD(LoadedExecutableExecute, options, PJRT_LoadedExecutable_Execute_Args, options);
SAME_FIELD(LoadedExecutableExecute, argument_lists, PJRT_LoadedExecutable_Execute_Args,
           argument_lists);
SAME_FIELD(LoadedExecutableExecute, num_devices, PJRT_LoadedExecutable_Execute_Args, num_devices);
SAME_FIELD(LoadedExecutableExecute, num_args, PJRT_LoadedExecutable_Execute_Args, num_args);
SAME_FIELD(LoadedExecutableExecute, output_lists, PJRT_LoadedExecutable_Execute_Args, output_lists);
SAME_FIELD(LoadedExecutableExecute, device_complete_events, PJRT_LoadedExecutable_Execute_Args,
           device_complete_events);
SAME_FIELD(LoadedExecutableExecute, execute_device, PJRT_LoadedExecutable_Execute_Args,
           execute_device);

SAME_SIZE(Layout::Tiled, PJRT_Buffer_MemoryLayout_Tiled);
SAME_FIELD(Layout::Tiled, minor_to_major, PJRT_Buffer_MemoryLayout_Tiled, minor_to_major);
SAME_FIELD(Layout::Tiled, minor_to_major_size, PJRT_Buffer_MemoryLayout_Tiled, minor_to_major_size);
SAME_FIELD(Layout::Tiled, num_tiles, PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
SAME_SIZE(Layout, PJRT_Buffer_MemoryLayout);
SAME_FIELD(Layout, tiled, PJRT_Buffer_MemoryLayout, tiled);
SAME_FIELD(Layout, type, PJRT_Buffer_MemoryLayout, type);
SAME_SIZE(ClientBufferFromHostBuffer, PJRT_Client_BufferFromHostBuffer_Args);
SAME_FIELD(ClientBufferFromHostBuffer, data, PJRT_Client_BufferFromHostBuffer_Args, data);
SAME_FIELD(ClientBufferFromHostBuffer, type, PJRT_Client_BufferFromHostBuffer_Args, type);
SAME_FIELD(ClientBufferFromHostBuffer, dims, PJRT_Client_BufferFromHostBuffer_Args, dims);
SAME_FIELD(ClientBufferFromHostBuffer, num_dims, PJRT_Client_BufferFromHostBuffer_Args, num_dims);
SAME_FIELD(ClientBufferFromHostBuffer, semantics, PJRT_Client_BufferFromHostBuffer_Args,
           host_buffer_semantics);
SAME_FIELD(ClientBufferFromHostBuffer, device, PJRT_Client_BufferFromHostBuffer_Args, device);
SAME_FIELD(ClientBufferFromHostBuffer, memory, PJRT_Client_BufferFromHostBuffer_Args, memory);
SAME_FIELD(ClientBufferFromHostBuffer, done_with_host_buffer, PJRT_Client_BufferFromHostBuffer_Args,
           done_with_host_buffer);
SAME_FIELD(ClientBufferFromHostBuffer, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
SAME_SIZE(BufferToHostBuffer, PJRT_Buffer_ToHostBuffer_Args);
SAME_FIELD(BufferToHostBuffer, source, PJRT_Buffer_ToHostBuffer_Args, src);
SAME_FIELD(BufferToHostBuffer, host_layout, PJRT_Buffer_ToHostBuffer_Args, host_layout);
SAME_FIELD(BufferToHostBuffer, destination, PJRT_Buffer_ToHostBuffer_Args, dst);
SAME_FIELD(BufferToHostBuffer, destination_size, PJRT_Buffer_ToHostBuffer_Args, dst_size);
SAME_FIELD(BufferToHostBuffer, event, PJRT_Buffer_ToHostBuffer_Args, event);
SAME_SIZE(BufferDestroy, PJRT_Buffer_Destroy_Args);
SAME_SIZE(BufferIsDeleted, PJRT_Buffer_IsDeleted_Args);
SAME_FIELD(BufferIsDeleted, is_deleted, PJRT_Buffer_IsDeleted_Args, is_deleted);

constexpr bool same(ElementType ours, PJRT_Buffer_Type theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(same(ElementType::pred, PJRT_Buffer_Type_PRED));
static_assert(same(ElementType::s32, PJRT_Buffer_Type_S32));
static_assert(same(ElementType::s64, PJRT_Buffer_Type_S64));
static_assert(same(ElementType::u8, PJRT_Buffer_Type_U8));
static_assert(same(ElementType::u32, PJRT_Buffer_Type_U32));
static_assert(same(ElementType::u64, PJRT_Buffer_Type_U64));
static_assert(same(ElementType::f16, PJRT_Buffer_Type_F16));
static_assert(same(ElementType::f32, PJRT_Buffer_Type_F32));
static_assert(same(ElementType::f64, PJRT_Buffer_Type_F64));
static_assert(same(ElementType::bf16, PJRT_Buffer_Type_BF16));

constexpr bool same(Code ours, PJRT_Error_Code theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(same(Code::invalid_argument, PJRT_Error_Code_INVALID_ARGUMENT));
static_assert(same(Code::deadline_exceeded, PJRT_Error_Code_DEADLINE_EXCEEDED));
static_assert(same(Code::not_found, PJRT_Error_Code_NOT_FOUND));
static_assert(same(Code::resource_exhausted, PJRT_Error_Code_RESOURCE_EXHAUSTED));
static_assert(same(Code::failed_precondition, PJRT_Error_Code_FAILED_PRECONDITION));
static_assert(same(Code::out_of_range, PJRT_Error_Code_OUT_OF_RANGE));
static_assert(same(Code::unimplemented, PJRT_Error_Code_UNIMPLEMENTED));
static_assert(same(Code::internal, PJRT_Error_Code_INTERNAL));
static_assert(same(Code::unavailable, PJRT_Error_Code_UNAVAILABLE));
static_assert(same(Code::data_loss, PJRT_Error_Code_DATA_LOSS));
static_assert(static_cast<int>(ValueType::int64) == PJRT_NamedValue_kInt64);
static_assert(static_cast<int>(ValueType::int64_list) == PJRT_NamedValue_kInt64List);
static_assert(static_cast<int>(HostBufferSemantics::immutable_only_during_call) ==
              PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
static_assert(static_cast<int>(LayoutType::tiled) == PJRT_Buffer_MemoryLayout_Type_Tiled);

TEST(XlaAbi, IsThatOfTheOfficialHeader) { EXPECT_GE(PJRT_API_MINOR, kOldestMinorVersion); }

}  // namespace
}  // namespace lockstep::xla::abi

#else

TEST(XlaAbi, IsThatOfTheOfficialHeader) {
  GTEST_SKIP() << "needs pjrt_c_api.h, which comes with the plugin that tests/run.sh gets";
}

#endif
