// SPDX-License-Identifier: Apache-2.0
#include "support/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace lockstep::testing {

Listener::Listener(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (socket_ < 0 || ::bind(socket_, any, size) != 0 || ::listen(socket_, 1) != 0 ||
      ::getsockname(socket_, any, &size) != 0)
    throw std::runtime_error("cannot listen at a port of 127.0.0.1");
  port_ = ntohs(address.sin_port);
}

Listener::~Listener() { ::close(socket_); }

// Below the ports that the system gives to outgoing connections, so that none of those takes one
// between this look and its use; where another process looks elsewhere.
std::vector<std::string> free_addresses(int count) {
  static std::atomic<int> next{::getpid() * 97};
  std::vector<std::string> addresses;
  while (static_cast<int>(addresses.size()) < count) {
    try {
      addresses.push_back(Listener(20'000 + static_cast<int>(next++ % 12'000U)).address());
    } catch (const std::runtime_error&) {  // taken: the next one
    }
  }
  return addresses;
}

}  // namespace lockstep::testing
