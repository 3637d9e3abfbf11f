# SPDX-License-Identifier: Apache-2.0
# Every third-party package, looked up in one place. All are private to the library.

# lockstep_require(<apt package> <find_package arguments...>)
macro(lockstep_require apt_package)
  find_package(${ARGN} QUIET)
  if(NOT ${ARGV1}_FOUND)
    message(FATAL_ERROR "${ARGV1} was not found. On Debian: apt install ${apt_package}")
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
lockstep_require(libc6-dev Threads)
lockstep_require(libeigen3-dev Eigen3 3.4 NO_MODULE)
lockstep_require(libfmt-dev fmt)
lockstep_require(libspdlog-dev spdlog)
lockstep_require(nlohmann-json3-dev nlohmann_json)
lockstep_require(zlib1g-dev ZLIB)
if(LOCKSTEP_WITH_ONEDNN)
  lockstep_require(libdnnl-dev oneDNN 2.6)
endif()
# What the library links: all that a static library's users link in turn.
set(LOCKSTEP_LIBRARIES spdlog::spdlog fmt::fmt ZLIB::ZLIB Threads::Threads gomp)
if(LOCKSTEP_WITH_ONEDNN)
  list(APPEND LOCKSTEP_LIBRARIES oneDNN::oneDNN)
endif()

if(LOCKSTEP_BUILD_TESTS)
  lockstep_require(libgmock-dev GTest CONFIG)
  lockstep_require(python3 Python3 COMPONENTS Interpreter)
endif()
if(LOCKSTEP_BUILD_BENCHMARKS)
  lockstep_require(libbenchmark-dev benchmark)
endif()
