// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/source_location.h>

#include <string>

namespace lockstep {

// What a collective is called: ranks whose calls meet must be at one place of the program, so that
// values of two calls in another order are never mixed. Files by their last part, as workers may have
// been built in different folders.
inline std::string with_place(std::string name, SourceLocation at) {
  if (at.line <= 0) return name;
  const std::string file = at.file;
  name += " at ";
  name.append(file, file.rfind('/') + 1);
  name += ':';
  name += std::to_string(at.line);
  return name;
}

}  // namespace lockstep
