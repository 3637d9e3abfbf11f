// SPDX-License-Identifier: Apache-2.0
#include "device/xla/plugin.h"

#include <lockstep/base/log.h>

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

namespace lockstep::xla {
namespace {

// XLA's CPU plugin takes its number of threads from here, and two of them per device keep its
// collectives from waiting for each other.
void set_default(const char* name, const char* value) { setenv(name, value, 0); }

const abi::Api* open(const std::string& path) {
  set_default("NPROC", "16");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* const why = dlerror();
    throw Unavailable(message("TPUStrategy", "the PJRT plugin ", path,
                              " cannot be loaded: ", why ? why : "no reason given"),
                      SourceLocation{});
  }
  using GetApi = const abi::Api* (*)();
  const auto get_api = reinterpret_cast<GetApi>(dlsym(library, "GetPjrtApi"));
  const abi::Api* const api = get_api ? get_api() : nullptr;
  if (!api)
    throw Unavailable(message("TPUStrategy", path, " is no PJRT plugin: it has no GetPjrtApi"),
                      SourceLocation{});
  const abi::Version& version = api->version;
  if (version.major_version != abi::kMajorVersion ||
      version.minor_version < abi::kOldestMinorVersion)
    throw Unavailable(
        message("TPUStrategy", "the PJRT plugin ", path, " speaks version ", version.major_version,
                ".", version.minor_version, " of the interface; expected ", abi::kMajorVersion, ".",
                abi::kOldestMinorVersion, " or a later ", abi::kMajorVersion, ".x"),
        SourceLocation{});
  if (version.minor_version > abi::kNewestTestedMinorVersion)
    logging::info(message("TPUStrategy", path, " speaks version 0.", version.minor_version,
                          ", newer than the newest tested, 0.", abi::kNewestTestedMinorVersion));
  return api;
}

std::string version_text(const abi::NamedValue& value) {
  std::string text;
  for (std::size_t i = 0; i < value.value_size; ++i)
    text += (i ? "." : "") + std::to_string(value.int64_array_value[i]);
  return text;
}

}  // namespace

const Plugin& Plugin::load(const std::string& path) {
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<const Plugin>>;
  const std::lock_guard lock(mutex);
  auto& plugin = loaded[path];
  if (!plugin) plugin.reset(new Plugin(path, open(path)));
  return *plugin;
}

Plugin::Plugin(std::string path, const abi::Api* api) : path_(std::move(path)), api_(api) {
  Call<abi::PluginInitialize> initialize;
  call("PJRT_Plugin_Initialize", initialize);
  Call<abi::PluginAttributes> attributes;
  call("PJRT_Plugin_Attributes", attributes);
  // A plugin's own struct may be longer than ours.
  const std::size_t stride =
      attributes->num_attributes ? attributes->attributes->head.struct_size : 0;
  for (std::size_t i = 0; i < attributes->num_attributes; ++i) {
    const auto* const each = reinterpret_cast<const abi::NamedValue*>(
        reinterpret_cast<const std::byte*>(attributes->attributes) + i * stride);
    if (std::string_view(each->name, each->name_size) == "stablehlo_current_version" &&
        each->type == abi::ValueType::int64_list)
      stablehlo_ = version_text(*each);
  }
}

std::string Plugin::describe() const {
  return "PJRT 0." + std::to_string(minor_version()) +
         (stablehlo_.empty() ? "" : ", StableHLO " + stablehlo_);
}

abi::Function Plugin::function(abi::Slot slot, const char* what) const {
  const auto index = static_cast<std::size_t>(slot);
  const std::size_t end = sizeof(abi::Api) + (index + 1) * sizeof(abi::Function);
  const auto* const functions = reinterpret_cast<const abi::Function*>(api_ + 1);
  const abi::Function function = end <= api_->head.struct_size ? functions[index] : nullptr;
  if (!function)
    throw Unimplemented(
        message(what, "the plugin ", path_, " (", describe(), ") does not offer this function"),
        SourceLocation{});
  return function;
}

void Plugin::await(const char* what, abi::Event* event) const {
  if (!event) return;
  struct Destroyed {
    const Plugin& plugin;
    abi::Event* event;
    ~Destroyed() {
      Call<abi::EventDestroy> destroy;
      destroy->event = event;
      plugin.call_noexcept("PJRT_Event_Destroy", destroy);
    }
  } destroyed{*this, event};
  Call<abi::EventAwait> wait;
  wait->event = event;
  call(what, wait);
}

void Plugin::raise(const char* what, abi::Error* error) const {
  Call<abi::ErrorMessage> text;
  text->error = error;
  reinterpret_cast<void (*)(abi::ErrorMessage*)>(function(abi::Slot::error_message, what))(
      text.get());
  const std::string full = message(what, std::string_view(text->message, text->message_size));
  Call<abi::ErrorGetCode> code;
  code->error = error;
  abi::Error* const second = reinterpret_cast<abi::Error* (*)(abi::ErrorGetCode*)>(
      function(abi::Slot::error_get_code, what))(code.get());
  for (abi::Error* each : {error, second}) {
    if (!each) continue;
    Call<abi::ErrorDestroy> destroy;
    destroy->error = each;
    reinterpret_cast<void (*)(abi::ErrorDestroy*)>(function(abi::Slot::error_destroy, what))(
        destroy.get());
  }
  switch (code->code) {
    case abi::Code::invalid_argument:
    case abi::Code::not_found:
    case abi::Code::already_exists:
    case abi::Code::out_of_range:
      throw InvalidArgument(full, SourceLocation{});
    case abi::Code::failed_precondition:
      throw FailedPrecondition(full, SourceLocation{});
    case abi::Code::unimplemented:
      throw Unimplemented(full, SourceLocation{});
    case abi::Code::permission_denied:
    case abi::Code::unauthenticated:
    case abi::Code::unavailable:
      throw Unavailable(full, SourceLocation{});
    case abi::Code::deadline_exceeded:
      throw DeadlineExceeded(full, SourceLocation{});
    case abi::Code::resource_exhausted:
      throw ResourceExhausted(full, SourceLocation{});
    case abi::Code::data_loss:
      throw DataLoss(full, SourceLocation{});
    default:
      throw InternalError(full, SourceLocation{});
  }
}

void Plugin::log(const Error& error) noexcept { logging::error(error.what()); }

}  // namespace lockstep::xla
