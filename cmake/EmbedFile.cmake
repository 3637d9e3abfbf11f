# SPDX-License-Identifier: Apache-2.0
# lockstep_embed_file(<file> <variable>)
# Compiles the bytes of a file into the library as `lockstep::embedded::<variable>`, a span of
# unsigned char; whoever uses it declares `extern const std::span<const unsigned char> <variable>`.
# A data set inside the library is found wherever the library was moved to.
function(lockstep_embed_file file variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${variable}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"#include <span>

namespace lockstep::embedded {
namespace {
constexpr unsigned char kBytes[] = {
@bytes@
};
}  // namespace
extern const std::span<const unsigned char> @variable@;
constinit const std::span<const unsigned char> @variable@{kBytes};
}  // namespace lockstep::embedded
")
  target_sources(lockstep PRIVATE ${source})
endfunction()
