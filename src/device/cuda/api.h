// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <lockstep/device/stream.h>

#include <mutex>
#include <string>

namespace lockstep::cuda {

// Throws unless ok: ResourceExhausted for memory, else InternalError; `what` says what was tried.
// After some errors, which the text names, CUDA answers nothing else until the process ends.
void check(cudaError_t error, const char* what);

// Makes the GPU the calling thread's current one, which launches and library calls need, and gives
// the stream's handle.
cudaStream_t enter(const Stream& stream);
// The same for the compute stream of a GPU.
cudaStream_t enter_compute(Device device);

// A shared library that is opened when first needed, and stays.
class Library {
 public:
  // Tries the names in order. `what` is for messages: "cublasLt".
  Library(const char* what, std::initializer_list<const char*> names);
  // Empty when it is there.
  const std::string& missing() const { return missing_; }
  // Its function; throws Unavailable when the library or the function is missing.
  template <class F>
  F function(const char* name) const {
    return reinterpret_cast<F>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;
  const char* const what_;
  void* handle_ = nullptr;
  std::string missing_;
};

}  // namespace lockstep::cuda
