# SPDX-License-Identifier: Apache-2.0
# Tests are one binary and one ctest entry per folder of tests/: few links, few processes.
#
#   add_unit_tests_of_folder([EXCLUDE <regex>])
#                                         all *_test.cc of the calling folder, as <folder>_tests
#   add_unit_test(<file> [LABEL <label>]) a binary of its own, for a test that needs a fresh process
#
# Tests may include src/ and use GoogleMock. tests/support/*.cc is linked into all of them.

set(LOCKSTEP_TEST_TIMEOUT 300)
if(LOCKSTEP_SANITIZE)
  set(LOCKSTEP_TEST_TIMEOUT 1200)
endif()

# The tests' own view of the library: hidden symbols included, whichever way it is built.
if(BUILD_SHARED_LIBS)
  get_property(isa_targets GLOBAL PROPERTY LOCKSTEP_ISA_TARGETS)
  if(TARGET lockstep_cuda_kernels)
    list(APPEND isa_targets lockstep_cuda_kernels)
  endif()
  add_library(lockstep_internal STATIC $<TARGET_OBJECTS:lockstep>)
  foreach(target IN LISTS isa_targets)
    target_sources(lockstep_internal PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
  set_target_properties(lockstep_internal PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(lockstep_internal INTERFACE lockstep_private)
else()
  add_library(lockstep_internal INTERFACE)
  target_link_libraries(lockstep_internal INTERFACE lockstep lockstep_private)
endif()

file(GLOB support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
add_library(lockstep_test_support INTERFACE)
target_include_directories(lockstep_test_support INTERFACE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(lockstep_test_support INTERFACE lockstep_private GTest::gmock GTest::gtest)
target_compile_definitions(lockstep_test_support INTERFACE
  LOCKSTEP_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
# Tests compile quickly rather than run fast; the library under them is built as released.
target_compile_options(lockstep_test_support INTERFACE -O1)

# One precompiled header for all test binaries, held by a program that does nothing.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/pch_holder.cc CONTENT "int main() {}\n")
add_executable(lockstep_test_pch ${CMAKE_CURRENT_BINARY_DIR}/pch_holder.cc)
target_link_libraries(lockstep_test_pch PRIVATE lockstep_test_support)
target_precompile_headers(lockstep_test_pch PRIVATE
  <gmock/gmock.h> <gtest/gtest.h>
  <algorithm> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <functional> <map> <memory>
  <mutex> <numeric> <optional> <random> <span> <sstream> <string> <string_view> <thread> <tuple>
  <type_traits> <utility> <vector>)

# The helpers themselves, once.
if(support_sources)
  add_library(lockstep_test_helpers OBJECT ${support_sources})
  target_link_libraries(lockstep_test_helpers PRIVATE lockstep_test_support)
endif()

function(lockstep_add_test_binary target label)
  add_executable(${target} ${ARGN})
  if(TARGET lockstep_test_helpers)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:lockstep_test_helpers>)
  endif()
  # What users see is tested against what users link.
  if(label STREQUAL "acceptance")
    set(library lockstep)
  else()
    set(library lockstep_internal)
  endif()
  target_link_libraries(${target} PRIVATE lockstep_test_support ${library} GTest::gmock_main)
  target_precompile_headers(${target} REUSE_FROM lockstep_test_pch)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_TEST_BINARIES ${target})
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES LABELS ${label} TIMEOUT ${LOCKSTEP_TEST_TIMEOUT})
  if(LOCKSTEP_SANITIZE MATCHES "thread")
    set_tests_properties(${target} PROPERTIES ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp halt_on_error=1 second_deadlock_stack=1")
  elseif(LOCKSTEP_SANITIZE MATCHES "address")
    set_tests_properties(${target} PROPERTIES ENVIRONMENT
      "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0")
  endif()
endfunction()

function(add_unit_tests_of_folder)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  list(FILTER sources EXCLUDE REGEX "_process_test\\.cc$")
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "EXCLUDE" "")
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  if(sources)
    lockstep_add_test_binary(${folder}_tests ${folder} ${sources})
  endif()
endfunction()

function(add_unit_test file)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL" "")
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  cmake_path(GET file STEM name)
  if(NOT arg_LABEL)
    cmake_path(GET file PARENT_PATH parent)
    cmake_path(GET parent FILENAME arg_LABEL)
  endif()
  lockstep_add_test_binary(${name} ${arg_LABEL} ${file})
endfunction()
