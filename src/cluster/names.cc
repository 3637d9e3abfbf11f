// SPDX-License-Identifier: Apache-2.0
#include "cluster/names.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "cluster/in_quotes.h"

namespace lockstep::cluster {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}
bool is_dotted_name_character(char c) { return is_name_character(c) || c == '.'; }

bool parses_as(int family, std::string_view host) {
  unsigned char bytes[sizeof(in6_addr)];
  return host.find('\0') == host.npos && inet_pton(family, std::string(host).c_str(), bytes) == 1;
}

// RFC 4291, with an optional zone (RFC 4007): fe80::1%eth0.
bool is_ipv6(std::string_view host) {
  const std::size_t percent = host.find('%');
  if (percent != host.npos) {
    const std::string_view zone = host.substr(percent + 1);
    if (zone.empty() || !std::all_of(zone.begin(), zone.end(), is_dotted_name_character))
      return false;
    host = host.substr(0, percent);
  }
  return parses_as(AF_INET6, host);
}

// RFC 1123, and underscores, which container networks use.
bool is_label(std::string_view label) {
  constexpr std::size_t kLongest = 63;
  return !label.empty() && label.size() <= kLongest && label.front() != '-' &&
         label.back() != '-' && std::all_of(label.begin(), label.end(), is_name_character);
}

// A name whose last label is a number is an IPv4 address or nothing.
bool is_name_or_ipv4(std::string_view host) {
  constexpr std::size_t kLongest = 253;
  if (host.size() > kLongest) return false;
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string_view label;
  for (std::size_t begin = 0; begin <= host.size(); begin += label.size() + 1) {
    label = host.substr(begin, host.find('.', begin) - begin);
    if (!is_label(label)) return false;
  }
  return !std::all_of(label.begin(), label.end(), is_digit) || parses_as(AF_INET, host);
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

}  // namespace

bool is_job_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_dotted_name_character);
}

std::string fault_of_address(std::string_view address) {
  if (address.empty()) return "it is empty";
  if (address.find("://") != address.npos) return "it has a scheme before the host";
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos || address.ends_with(']')) return "it has no port";
  const std::string_view host = address.substr(0, colon), port = address.substr(colon + 1);
  if (!is_port(port)) return "its port is " + in_quotes(port) + ", not a number from 1 to 65535";
  if (host.empty()) return "it has no host";
  if (host.starts_with('[') && host.ends_with(']'))
    return is_ipv6(host.substr(1, host.size() - 2)) ? "" : in_quotes(host) + " is no IPv6 address";
  if (host.find(':') != host.npos)
    return "an IPv6 address stands in brackets before its port, as in [fe80::1]:2222";
  return is_name_or_ipv4(host) ? ""
                               : in_quotes(host) + " is neither a host name nor an IPv4 address";
}

}  // namespace lockstep::cluster
