// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace launch {

// Ports of 127.0.0.1 that nobody else uses, kept while it lives: bound, so that the system gives
// them to no other process, but not listened on, so that a server that sets SO_REUSEADDR, as gRPC
// and nearly all do, can.
class ReservedPorts {
 public:
  // Throws std::system_error when there are not so many.
  explicit ReservedPorts(int count);
  ~ReservedPorts();
  ReservedPorts(const ReservedPorts&) = delete;
  ReservedPorts& operator=(const ReservedPorts&) = delete;

  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  void add();

  std::vector<int> sockets_;
  std::vector<std::string> addresses_;
};

}  // namespace launch
