# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` lays down: headers, library, a CMake package, lockstep.pc and the sample
# data. Nothing in it names the prefix, so the tree may be moved afterwards.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(TARGETS lockstep EXPORT lockstepTargets)
install(DIRECTORY include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES examples/data/digits.csv.gz examples/data/NOTICE
        DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)
install(EXPORT lockstepTargets NAMESPACE lockstep:: DESTINATION ${package_dir})

configure_package_config_file(cmake/lockstepConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lockstepConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfigVersion.cmake
        DESTINATION ${package_dir})
if(NOT BUILD_SHARED_LIBS)
  install(FILES cmake/FindoneDNN.cmake cmake/FindgRPCpp.cmake DESTINATION ${package_dir})
endif()

# A static library leaves its private libraries to be linked by the user.
if(BUILD_SHARED_LIBS)
  set(pc_libs "")
else()
  set(pc_libs "-lspdlog -lfmt -lz -lgomp -pthread")
  if(LOCKSTEP_WITH_ONEDNN)
    string(PREPEND pc_libs "-ldnnl ")
  endif()
  if(LOCKSTEP_WITH_GRPC)
    string(PREPEND pc_libs "-lgrpc++ -lgrpc -lgpr ")
  endif()
endif()
if(LOCKSTEP_CUDA AND NOT BUILD_SHARED_LIBS)
  string(APPEND pc_libs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/lockstep.pc.in lockstep.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lockstep.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
