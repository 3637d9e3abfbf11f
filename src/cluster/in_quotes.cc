// SPDX-License-Identifier: Apache-2.0
#include "cluster/in_quotes.h"

#include <cstddef>
#include <nlohmann/json.hpp>

namespace lockstep::cluster {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  using Json = nlohmann::json;
  const std::string shown(text.substr(0, kLongest));
  std::string result = Json(shown).dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) result += "... (" + std::to_string(text.size()) + " bytes)";
  return result;
}

}  // namespace lockstep::cluster
