# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers, and `lockstep_private`: what the library's own sources, its
# ISA variants and its tests are compiled with, and no user ever is.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ${PROJECT_IS_TOP_LEVEL})

find_program(LOCKSTEP_CCACHE ccache)
mark_as_advanced(LOCKSTEP_CCACHE)
if(LOCKSTEP_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers carry time stamps, which ccache would otherwise take for a change.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${LOCKSTEP_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

if(LOCKSTEP_SANITIZE)
  string(REPLACE "," ";" sanitizers "${LOCKSTEP_SANITIZE}")
  foreach(sanitizer IN LISTS sanitizers)
    if(NOT sanitizer MATCHES "^(address|undefined|thread)$")
      message(FATAL_ERROR "LOCKSTEP_SANITIZE is empty, address,undefined or thread; "
                          "got ${LOCKSTEP_SANITIZE}")
    endif()
  endforeach()
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
  if("undefined" IN_LIST sanitizers)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

add_library(lockstep_private INTERFACE)
target_include_directories(lockstep_private INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
# No path of the building machine in messages or files.
target_compile_options(lockstep_private INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
# One order of rounding on every machine: no a*b+c is ever fused behind the source's back.
target_compile_options(lockstep_private INTERFACE -ffp-contract=off)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(lockstep_private INTERFACE -Wall -Wextra -Wpedantic)
  # Between a sanitizer's checks g++ 12 warns of what is none: std::function and std::vector within
  # its own headers (its bugs 105562 and 105329).
  if(NOT LOCKSTEP_SANITIZE)
    target_compile_options(lockstep_private INTERFACE -Werror)
  endif()
endif()
target_compile_definitions(lockstep_private INTERFACE
  LOCKSTEP_WITH_CUDA=$<BOOL:${LOCKSTEP_CUDA}>
  LOCKSTEP_WITH_NCCL=$<BOOL:${LOCKSTEP_NCCL}>
  LOCKSTEP_WITH_ONEDNN=$<BOOL:${LOCKSTEP_WITH_ONEDNN}>)

# OpenMP pragmas are g++'s business; clang skips them, as its own runtime next to the libgomp under
# oneDNN would double the threads. Both link libgomp, whose omp_set_num_threads oneDNN obeys.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(lockstep_private INTERFACE -fopenmp)
  # g++ 12 misreads "text" + std::string as an overlapping copy (its bug 105651).
  target_compile_options(lockstep_private INTERFACE -Wno-restrict)
else()
  target_compile_options(lockstep_private INTERFACE -Wno-source-uses-openmp)
endif()

# Header-only packages are for our sources; libraries are for whoever links.
target_link_libraries(lockstep_private INTERFACE
  Eigen3::Eigen nlohmann_json::nlohmann_json ${LOCKSTEP_LIBRARIES})
