// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/error.h>

#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::nn {

// Things of Keras's by their names: "glorot_uniform", also as the class is called, "GlorotUniform".
template <class T>
using ByName = std::vector<std::pair<const char*, T>>;

inline std::string without_case(std::string_view name) {
  std::string key;
  for (const char c : name)
    if (c != '_') key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

template <class T>
std::vector<std::string> names_in(const ByName<T>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) names.emplace_back(name);
  return names;
}

// Throws InvalidArgument "[<call>] ..." with all names for one that is not known.
template <class T>
const T& by_name(const char* call, const ByName<T>& known, std::string_view name,
                 SourceLocation at) {
  const std::string key = without_case(name);
  std::string names;
  for (const auto& [candidate, value] : known) {
    if (without_case(candidate) == key) return value;
    names += (names.empty() ? "" : ", ") + std::string(candidate);
  }
  throw InvalidArgument(message(call, "expected one of ", names, "; got '", std::string(name), "'"),
                        at);
}

}  // namespace lockstep::nn
