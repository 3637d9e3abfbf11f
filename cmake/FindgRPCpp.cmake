# SPDX-License-Identifier: Apache-2.0
# Defines gRPC::grpc++ from headers and libraries as they are installed. gRPC's own config package
# insists on protobuf, which lockstep does not use.
find_path(gRPCpp_INCLUDE_DIR grpcpp/grpcpp.h)
find_library(gRPCpp_LIBRARY grpc++)
find_library(gRPCpp_CORE_LIBRARY grpc)
find_library(gRPCpp_GPR_LIBRARY gpr)
mark_as_advanced(gRPCpp_INCLUDE_DIR gRPCpp_LIBRARY gRPCpp_CORE_LIBRARY gRPCpp_GPR_LIBRARY)

if(gRPCpp_INCLUDE_DIR AND EXISTS ${gRPCpp_INCLUDE_DIR}/grpcpp/version_info.h)
  file(STRINGS ${gRPCpp_INCLUDE_DIR}/grpcpp/version_info.h grpcpp_version_lines
       REGEX "define GRPC_CPP_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]+" "" grpcpp_version_numbers "${grpcpp_version_lines}")
  list(JOIN grpcpp_version_numbers "." gRPCpp_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(gRPCpp
  REQUIRED_VARS gRPCpp_LIBRARY gRPCpp_CORE_LIBRARY gRPCpp_GPR_LIBRARY gRPCpp_INCLUDE_DIR
  VERSION_VAR gRPCpp_VERSION)

if(gRPCpp_FOUND AND NOT TARGET gRPC::grpc++)
  add_library(gRPC::grpc++ UNKNOWN IMPORTED)
  set_target_properties(gRPC::grpc++ PROPERTIES
    IMPORTED_LOCATION ${gRPCpp_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${gRPCpp_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES "${gRPCpp_CORE_LIBRARY};${gRPCpp_GPR_LIBRARY}")
endif()
