// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/api.h"

#include <dlfcn.h>
#include <lockstep/base/check.h>

namespace lockstep::cuda {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  const std::string text =
      message(what, "CUDA error ", static_cast<int>(error), ": ", cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation)
    throw ResourceExhausted(text + "; use a smaller batch", SourceLocation{});
  const bool poisoned = error >= cudaErrorIllegalAddress && error <= cudaErrorLaunchFailure;
  throw InternalError(poisoned ? text + "; the GPU cannot be used by this process any more" : text);
}

cudaStream_t enter(const Stream& stream) {
  check(cudaSetDevice(stream.device.index), "cudaSetDevice");
  return static_cast<cudaStream_t>(stream.native);
}

cudaStream_t enter_compute(Device device) { return enter(compute_stream(device)); }

Library::Library(const char* what, std::initializer_list<const char*> names) : what_(what) {
  for (const char* const name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      missing_.clear();
      return;
    }
    if (missing_.empty()) missing_ = dlerror();
  }
}

void* Library::symbol(const char* name) const {
  if (!handle_)
    throw Unavailable(message(what_, missing_,
                              "; install it or add its directory to "
                              "LD_LIBRARY_PATH"),
                      SourceLocation{});
  void* const found = dlsym(handle_, name);
  if (!found)
    throw Unavailable(message(what_, "the library has no ", name, "; install a newer one"),
                      SourceLocation{});
  return found;
}

}  // namespace lockstep::cuda
