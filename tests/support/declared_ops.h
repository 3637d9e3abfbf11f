// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace lockstep::testing {

// A function of tensors as a header of ops declares it.
struct DeclaredOp {
  std::string name;
  std::string parameters;  // the text between the parentheses, on one line
};

// The functions that the ops' headers declare to give tensors, overloads one by one.
inline std::vector<DeclaredOp> declared_ops() {
  std::vector<DeclaredOp> ops;
  const std::regex declaration(
      "LOCKSTEP_EXPORT (?:Tensor|TopK|BatchNormResult|std::vector<Tensor>) (\\w+)\\(([^;]*)\\);");
  for (const auto& file :
       std::filesystem::directory_iterator(LOCKSTEP_TEST_SOURCE_DIR "/include/lockstep/ops")) {
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end;
         ++found)
      ops.push_back({(*found)[1], std::regex_replace((*found)[2].str(), std::regex("\\s+"), " ")});
  }
  return ops;
}

}  // namespace lockstep::testing
