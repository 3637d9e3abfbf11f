// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/device/device.h>

#include "device/accelerator.h"
#include "device/cuda/status.h"
#include "support/errors.h"

namespace lockstep {
namespace {

using lockstep::testing::throws;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The numbers are cudaError_t's.
TEST(CudaStatus, SaysWhyThereIsNoGpuAndWhatToDo) {
  EXPECT_THAT(cuda::explain(35, 0, 13000, nullptr),
              AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("install one")));
  EXPECT_THAT(cuda::explain(35, 12040, 13000, nullptr),
              AllOf(HasSubstr("supports CUDA 12.4"), HasSubstr("needs CUDA 13.0"),
                    HasSubstr("update the driver")));
  EXPECT_THAT(cuda::explain(34, 0, 13000, nullptr), HasSubstr("LD_LIBRARY_PATH"));
  EXPECT_THAT(cuda::explain(100, 13000, 13000, nullptr),
              AllOf(HasSubstr("sees no GPU"), Not(HasSubstr("CUDA_VISIBLE_DEVICES"))));
  EXPECT_THAT(cuda::explain(100, 13000, 13000, "7"), HasSubstr("CUDA_VISIBLE_DEVICES is \"7\""));
  EXPECT_THAT(cuda::explain(803, 13000, 13000, nullptr), HasSubstr("restart the machine"));
  EXPECT_THAT(cuda::explain(999, 13000, 13000, nullptr), HasSubstr("nvidia-smi"));
  EXPECT_THAT(cuda::explain(719, 13000, 13000, nullptr), HasSubstr("719"));
}

TEST(CudaStatus, IsTheSameForAllWhoAsk) {
  const cuda::Status& status = cuda::status();
  EXPECT_FALSE(status.text.empty());
  EXPECT_EQ(list_devices(DeviceKind::cuda).size(), static_cast<std::size_t>(status.devices));
  EXPECT_EQ(cuda::device(status.devices), nullptr);
  EXPECT_EQ(cuda::device(-1), nullptr);
  if (!cuda::kBuilt) {
    EXPECT_EQ(status.devices, 0);
    EXPECT_THAT(status.text, HasSubstr("LOCKSTEP_WITH_CUDA"));
  }
}

TEST(CudaStatus, AGpuThatIsNotThereIsUnavailableWithTheReason) {
  const std::string name = "GPU:" + std::to_string(cuda::status().devices);
  EXPECT_THAT([&] { parse_device(name); },
              throws<Unavailable>("[parse_device]", name, cuda::status().text, "CPU:i"));
  const Device missing{DeviceKind::cuda, cuda::status().devices};
  EXPECT_THAT([&] { Buffer::allocate(missing, 64); }, throws<Unavailable>(name));
}

}  // namespace
}  // namespace lockstep
