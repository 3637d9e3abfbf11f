// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::testing {

// "127.0.0.1:port" of ports that nobody listens on, all different.
std::vector<std::string> free_addresses(int count);

// Listens at a port of 127.0.0.1 as long as it lives.
class Listener {
 public:
  explicit Listener(int port = 0);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_ = -1;
  int port_ = 0;
};

}  // namespace lockstep::testing
