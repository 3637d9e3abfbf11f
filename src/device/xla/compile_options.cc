// SPDX-License-Identifier: Apache-2.0
#include "device/xla/compile_options.h"

#include <cstdint>

namespace lockstep::xla {
namespace {

// Fields of a protocol buffer message, appended.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

// The numbers of fields are those of xla/pjrt/proto/compile_options.proto and xla_data.proto.
std::string compile_options(std::span<const int> device_ids, bool on_cpu) {
  Message ids;
  for (const int id : device_ids) ids.varint(static_cast<std::uint64_t>(id));
  Message computation;
  computation.bytes(1, ids.text());  // replica_device_ids, packed
  Message assignment;
  assignment
      .number(1, device_ids.size())   // replica_count
      .number(2, 1)                   // computation_count
      .bytes(3, computation.text());  // computation_devices
  Message build;
  build
      .number(4, device_ids.size())  // num_replicas
      .number(5, 1)                  // num_partitions
      .bytes(9, assignment.text());  // device_assignment
  Message options;
  options.bytes(3, build.text());  // executable_build_options
  if (on_cpu) {
    Message off, fast_min_max;
    off.number(2, 0);                                                           // bool_field
    fast_min_max.bytes(1, "xla_cpu_enable_fast_min_max").bytes(2, off.text());  // key, value
    options.bytes(7, fast_min_max.text());  // env_option_overrides
  }
  return options.text();
}

}  // namespace lockstep::xla
