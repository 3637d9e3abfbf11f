// SPDX-License-Identifier: Apache-2.0
#include "comm/grpc/listen.h"

#include <lockstep/base/check.h>
#include <lockstep/base/deadline.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace lockstep {
namespace {

[[noreturn]] void refuse(const std::string& address, const std::string& why) {
  throw Unavailable(message("GrpcGroup", "cannot listen at ", address, ": ", why));
}

// 0, or errno of the bind.
int try_bind(const addrinfo& where) {
  const int socket = ::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  const int yes = 1;  // connections of a process that has ended do not keep the port
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  int error = ::bind(socket, where.ai_addr, where.ai_addrlen) == 0 ? 0 : errno;
  if (error == 0 && ::listen(socket, 1) != 0) error = errno;
  ::close(socket);
  return error;
}

}  // namespace

void check_free(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
      error != 0)
    refuse(address, std::string(::gai_strerror(error)) +
                        "; set listen_address to an address of this machine");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  const Deadline deadline = Deadline::after(std::chrono::seconds(2));
  int error = 0;
  while ((error = try_bind(*addresses)) == EADDRINUSE && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (error == 0) return;
  std::string why = std::strerror(error);
  if (error == EADDRINUSE)
    why =
        "the address is already in use; another process (an old run of this worker?) listens there";
  if (error == EADDRNOTAVAIL)
    why += "; it is not an address of this machine: set listen_address, to \"0.0.0.0" +
           address.substr(colon) + "\" for example";
  refuse(address, why);
}

void throw_not_bound(const WireOptions& options) {
  check_free(options.listen_address);
  if (options.tls)
    throw InvalidArgument(message("GrpcGroup",
                                  "these TLS files cannot be used: ", options.tls_files,
                                  "; expected PEM: the authority's certificate, this worker's "
                                  "certificate (chain), and its private key"));
  refuse(options.listen_address, "another process took it a moment ago; it is in use");
}

}  // namespace lockstep
