// SPDX-License-Identifier: Apache-2.0
// Words about GPUs, for all builds; and all there is of CUDA in a build without it.
#include "device/cuda/status.h"

namespace lockstep::cuda {
namespace {

// Numbers of cudaError_t, fixed since CUDA 10.
constexpr int kSuccess = 0, kInitialization = 3, kStubLibrary = 34, kInsufficientDriver = 35,
              kNoDevice = 100, kUnknown = 999, kSystemDriverMismatch = 803,
              kCompatNotSupported = 804;

// 12040: "12.4".
std::string version(int number) {
  return std::to_string(number / 1000) + '.' + std::to_string(number % 1000 / 10);
}

}  // namespace

std::string explain(int error, int driver, int runtime, const char* visible) {
  switch (error) {
    case kInsufficientDriver:
      if (driver == 0)
        return "no NVIDIA driver is installed; install one and see that nvidia-smi lists the GPU";
      return "the NVIDIA driver supports CUDA " + version(driver) + ", this build needs CUDA " +
             version(runtime) + "; update the driver, or build with an older toolkit";
    case kStubLibrary:
      return "the toolkit's stub stands in for the driver; take its directory out of "
             "LD_LIBRARY_PATH";
    case kNoDevice:
    case kSuccess:
      if (visible)
        return "the driver shows no GPU, as CUDA_VISIBLE_DEVICES is \"" + std::string(visible) +
               '"';
      return "the driver sees no GPU";
    case kSystemDriverMismatch:
      return "driver and its library have different versions; restart the machine";
    case kCompatNotSupported:
      return "the forward compatibility package is not for this GPU; remove it from "
             "LD_LIBRARY_PATH";
    case kInitialization:
    case kUnknown:
      return "the driver could not be initialised (CUDA error " + std::to_string(error) +
             "); see whether nvidia-smi works";
    default:
      return "the driver reports CUDA error " + std::to_string(error);
  }
}

#if !LOCKSTEP_WITH_CUDA
const Status& status() {
  static const auto* const none = new Status{
      0,
      "this build of lockstep has no CUDA support; configure with -DLOCKSTEP_WITH_CUDA=ON where "
      "the CUDA toolkit is installed"};
  return *none;
}

Accelerator* device(int) { return nullptr; }
#endif

}  // namespace lockstep::cuda
