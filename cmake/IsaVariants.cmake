# SPDX-License-Identifier: Apache-2.0
# lockstep_isa_sources()
# Compiles every *_isa.cc below the calling folder once per instruction set, with LOCKSTEP_ISA set to
# v2, v3 or v4 (base off x86-64), and puts the objects into the library. A file keeps all it defines
# in namespace lockstep::isa_<isa>. Files named *_eigen_isa.cc may use Eigen, whose namespace is
# renamed per variant, so that the linker never picks a template instantiated for a CPU that may not
# be there. tests/hygiene/isa_symbols.py checks both with nm.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(LOCKSTEP_ISAS v2 v3 v4)
else()
  set(LOCKSTEP_ISAS base)
endif()
set(LOCKSTEP_ISA_FLAGS_v2 -march=x86-64-v2)
set(LOCKSTEP_ISA_FLAGS_v3 -march=x86-64-v3)
set(LOCKSTEP_ISA_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512)
set(LOCKSTEP_ISA_FLAGS_base)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the undefined operands of its own AVX-512 intrinsics for mistakes.
  list(APPEND LOCKSTEP_ISA_FLAGS_v4 -Wno-maybe-uninitialized -Wno-uninitialized)
endif()

function(lockstep_isa_sources)
  file(GLOB_RECURSE plain_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_isa.cc)
  set(eigen_sources ${plain_sources})
  list(FILTER plain_sources EXCLUDE REGEX "_eigen_isa\\.cc$")
  list(FILTER eigen_sources INCLUDE REGEX "_eigen_isa\\.cc$")
  foreach(isa IN LISTS LOCKSTEP_ISAS)
    lockstep_isa_objects(lockstep_isa_${isa} ${isa} ${plain_sources})
    lockstep_isa_objects(lockstep_eigen_isa_${isa} ${isa} ${eigen_sources})
    if(TARGET lockstep_eigen_isa_${isa})
      target_compile_definitions(lockstep_eigen_isa_${isa} PRIVATE Eigen=lockstep_eigen_${isa})
    endif()
  endforeach()
endfunction()

# lockstep_isa_objects(<target> <isa> <source>...)
function(lockstep_isa_objects target isa)
  if(NOT ARGN)
    return()
  endif()
  add_library(${target} OBJECT ${ARGN})
  target_link_libraries(${target} PRIVATE lockstep_private)
  target_compile_definitions(${target} PRIVATE LOCKSTEP_ISA=${isa})
  target_compile_options(${target} PRIVATE
    -O3 -fno-math-errno -fno-trapping-math ${LOCKSTEP_ISA_FLAGS_${isa}})
  target_sources(lockstep PRIVATE $<TARGET_OBJECTS:${target}>)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_ISA_TARGETS ${target})
endfunction()
