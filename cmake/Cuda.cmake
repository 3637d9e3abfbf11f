# SPDX-License-Identifier: Apache-2.0
# CUDA: whether it is built, and lockstep_cuda_sources().
#
# LOCKSTEP_WITH_CUDA is AUTO (where a toolkit is found), ON (fails without one) or OFF. The toolkit's
# runtime is linked statically; cublasLt and NCCL are opened when first used, the driver by the
# runtime. So a program built with CUDA starts on any machine, and says there why it sees no GPU.

set(LOCKSTEP_WITH_CUDA AUTO CACHE STRING "NVIDIA GPUs: AUTO, ON or OFF")
set_property(CACHE LOCKSTEP_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT LOCKSTEP_WITH_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "LOCKSTEP_WITH_CUDA is AUTO, ON or OFF; got ${LOCKSTEP_WITH_CUDA}")
endif()
set(LOCKSTEP_CUDA_VERSION 12.2)  # the oldest toolkit

# Sets LOCKSTEP_CUDA to TRUE, or LOCKSTEP_CUDA_MISSING to what is missing; LOCKSTEP_NCCL where NCCL's
# header is there, too.
macro(lockstep_find_cuda)
  set(LOCKSTEP_CUDA FALSE)
  set(LOCKSTEP_NCCL FALSE)
  # Afterwards CMake has chosen one for the machine it knows best.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    # Ampere and Ada, Hopper; newer ones translate Hopper's code when a program starts.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "GPUs to compile for")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(LOCKSTEP_CUDA_MISSING "no nvcc; install the CUDA toolkit and put nvcc into PATH")
  else()
    find_package(CUDAToolkit ${LOCKSTEP_CUDA_VERSION} QUIET)
    find_path(LOCKSTEP_CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    mark_as_advanced(LOCKSTEP_CUBLASLT_INCLUDE_DIR)
    if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cudart_static)
      set(LOCKSTEP_CUDA_MISSING
          "no CUDA toolkit ${LOCKSTEP_CUDA_VERSION} or newer with libcudart_static.a")
    elseif(NOT LOCKSTEP_CUBLASLT_INCLUDE_DIR)
      set(LOCKSTEP_CUDA_MISSING "no cublasLt.h in the CUDA toolkit; install libcublas-dev")
    else()
      set(LOCKSTEP_CUDA TRUE)
      find_path(LOCKSTEP_NCCL_INCLUDE_DIR nccl.h
                HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_ROOT PATH_SUFFIXES include)
      mark_as_advanced(LOCKSTEP_NCCL_INCLUDE_DIR)
      if(LOCKSTEP_NCCL_INCLUDE_DIR)
        set(LOCKSTEP_NCCL TRUE)
      endif()
    endif()
  endif()
endmacro()

if(LOCKSTEP_WITH_CUDA STREQUAL "OFF")
  set(LOCKSTEP_CUDA FALSE)
else()
  lockstep_find_cuda()
  if(NOT LOCKSTEP_CUDA AND LOCKSTEP_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_WITH_CUDA is ON, but there is ${LOCKSTEP_CUDA_MISSING}")
  endif()
endif()

if(LOCKSTEP_CUDA)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake 3.25 does not know that nvcc has C++20.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  list(APPEND LOCKSTEP_LIBRARIES CUDA::cudart_static)
  message(STATUS "CUDA ${CUDAToolkit_VERSION} for architectures ${CMAKE_CUDA_ARCHITECTURES}, "
                 "NCCL: ${LOCKSTEP_NCCL}")
elseif(LOCKSTEP_WITH_CUDA STREQUAL "AUTO")
  message(STATUS "Without CUDA: ${LOCKSTEP_CUDA_MISSING}")
endif()

# lockstep_cuda_sources()
# Adds the .cu files below the calling folder to the library. They hold kernels and their launches
# only; nothing of Eigen, which nvcc takes long for.
function(lockstep_cuda_sources)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
  if(NOT LOCKSTEP_CUDA OR NOT sources)
    return()
  endif()
  add_library(lockstep_cuda_kernels OBJECT ${sources})
  set_target_properties(lockstep_cuda_kernels PROPERTIES
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON
    CUDA_VISIBILITY_PRESET hidden)
  target_include_directories(lockstep_cuda_kernels PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(lockstep_cuda_kernels PRIVATE LOCKSTEP_WITH_CUDA=1)
  target_compile_options(lockstep_cuda_kernels PRIVATE
    -Xcompiler=-Wall,-Wextra,-ffile-prefix-map=${PROJECT_SOURCE_DIR}/= --expt-relaxed-constexpr)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(lockstep_cuda_kernels PRIVATE -Werror=all-warnings)
  endif()
  target_sources(lockstep PRIVATE $<TARGET_OBJECTS:lockstep_cuda_kernels>)
endfunction()
