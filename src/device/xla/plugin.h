// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "device/xla/pjrt_abi.h"

namespace lockstep::xla {

// The arguments of one call, with the tail of zeros that abi.h speaks of.
template <class Arguments>
struct Call {
  Arguments arguments{};
  std::byte tail[256]{};

  Call() { arguments.head.struct_size = sizeof(Call); }
  Arguments* operator->() { return &arguments; }
  Arguments* get() { return &arguments; }
};

// A PJRT plugin, loaded. It stays so until the process ends: XLA's libraries cannot be unloaded.
class Plugin {
 public:
  // The plugin at `path`, loaded and initialised by the first call with it. Throws Unavailable when
  // it cannot be loaded or speaks another version of the interface. Thread-safe.
  static const Plugin& load(const std::string& path);

  const std::string& path() const { return path_; }
  int minor_version() const { return api_->version.minor_version; }
  // "PJRT 0.81, StableHLO 1.13.0": for messages.
  std::string describe() const;

  // Calls the function that the arguments belong to. Throws what the plugin reports as the error
  // type that fits, its text beginning with "[what] ".
  template <class Arguments>
  void call(const char* what, Call<Arguments>& call) const {
    using Typed = abi::Error* (*)(Arguments*);
    if (abi::Error* error = reinterpret_cast<Typed>(function(Arguments::kSlot, what))(call.get()))
      raise(what, error);
  }
  // For destructors: errors are logged.
  template <class Arguments>
  void call_noexcept(const char* what, Call<Arguments>& arguments) const noexcept {
    try {
      call(what, arguments);
    } catch (const Error& error) {
      log(error);
    }
  }
  // Waits for an event, which may be null, and destroys it.
  void await(const char* what, abi::Event* event) const;

 private:
  Plugin(std::string path, const abi::Api* api);
  abi::Function function(abi::Slot slot, const char* what) const;
  [[noreturn]] void raise(const char* what, abi::Error* error) const;
  static void log(const Error& error) noexcept;

  std::string path_;
  const abi::Api* api_;
  std::string stablehlo_;
};

// Where the plugin is looked for when `option` is empty: $LOCKSTEP_PJRT_CPU_PLUGIN,
// $TPU_LIBRARY_PATH, libtpu.so on the library path, libtpu of Python's site-packages. Throws
// Unavailable that names all these places when it is in none, and for libtpu without a TPU chip.
std::string find_plugin(const std::string& option, SourceLocation at);

}  // namespace lockstep::xla
