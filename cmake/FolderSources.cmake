# SPDX-License-Identifier: Apache-2.0
# lockstep_folder_sources([EXCLUDE <regex>])
# Adds every .cc below the calling folder to the library. Files named *_isa.cc are left to
# lockstep_isa_sources().
function(lockstep_folder_sources)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "EXCLUDE" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_isa\\.cc$")
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  if(sources)
    target_sources(lockstep PRIVATE ${sources})
  endif()
endfunction()
