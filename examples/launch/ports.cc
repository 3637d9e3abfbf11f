// SPDX-License-Identifier: Apache-2.0
#include "ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system_call.h"

namespace launch {

ReservedPorts::ReservedPorts(int count) {
  for (int i = 0; i < count; ++i) add();
}

void ReservedPorts::add() {
  sockets_.push_back(checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  checked(bind(sockets_.back(), generic, size), "no free port on 127.0.0.1");
  // After bind, which thus finds a port that even others of this kind do not have.
  const int yes = 1;
  checked(setsockopt(sockets_.back(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), "setsockopt");
  checked(getsockname(sockets_.back(), generic, &size), "getsockname");
  addresses_.push_back("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
}

ReservedPorts::~ReservedPorts() {
  for (const int descriptor : sockets_) close(descriptor);
}

}  // namespace launch
