// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep {
class Accelerator;
}

namespace lockstep::cuda {

// This build has CUDA's side of things.
inline constexpr bool kBuilt = LOCKSTEP_WITH_CUDA;

// How many GPUs there are, and in one line what they are or why there are none. Looked up once; never
// throws.
struct Status {
  int devices = 0;
  std::string
      text;  // "CUDA 13.0, driver 13.0, 2 GPUs: ..." or "no NVIDIA driver is installed; ..."
};
const Status& status();

// What the driver said, in words: `error` is cudaGetDeviceCount's; versions are as CUDA counts them
// (13000), `driver` 0 where there is none; `visible` the environment variable CUDA_VISIBLE_DEVICES or
// null.
std::string explain(int error, int driver, int runtime, const char* visible);

// The GPU's runtime; null where there is no such GPU.
Accelerator* device(int index);

}  // namespace lockstep::cuda
