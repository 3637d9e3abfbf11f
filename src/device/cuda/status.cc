// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/status.h"

#include <lockstep/base/error.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "device/cuda/cuda_device.h"

namespace lockstep::cuda {
namespace {

std::string version(int number) {
  return std::to_string(number / 1000) + '.' + std::to_string(number % 1000 / 10);
}

std::string describe(int count, int driver, int runtime) {
  std::string text = "CUDA " + version(runtime) + ", driver for " + version(driver) + ", " +
                     std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) == cudaSuccess)
      text += (i ? ", " : ": ") + std::string(properties.name);
  }
  cudaGetLastError();
  return text;
}

Status probe() {
  int driver = 0, runtime = 0, count = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaSuccess && count > 0) return {count, describe(count, driver, runtime)};
  return {0, explain(error, driver, runtime, std::getenv("CUDA_VISIBLE_DEVICES"))};
}

}  // namespace

const Status& status() {
  static const auto* const found = new Status(probe());
  return *found;
}

Accelerator* device(int index) {
  if (index < 0 || index >= status().devices) return nullptr;
  static auto* const mutex = new std::mutex;
  static auto* const made = new std::vector<CudaDevice*>(
      static_cast<std::size_t>(status().devices));  // never destroyed: pools outlive tensors
  const std::lock_guard lock(*mutex);
  CudaDevice*& device = (*made)[static_cast<std::size_t>(index)];
  if (!device) device = new CudaDevice(index);
  return device;
}

}  // namespace lockstep::cuda
