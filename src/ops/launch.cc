// SPDX-License-Identifier: Apache-2.0
#include "ops/launch.h"

#include <lockstep/ops/recorder.h>
#include <lockstep/telemetry/telemetry.h>
#include <lockstep/tensor/factory.h>

#include <vector>

#include "device/accelerator.h"

namespace lockstep::detail {
namespace {

std::vector<MemoryRange> ranges_of(std::initializer_list<const Tensor*> tensors) {
  std::vector<MemoryRange> ranges;
  for (const Tensor* const x : tensors)
    if (x->defined()) ranges.push_back({x->raw_data(), x->bytes()});
  return ranges;
}

}  // namespace

Tensor on_accelerator(const Tensor& x, Device device) {
  static telemetry::Counter& copied = telemetry::counter("lockstep_host_to_device_bytes_total");
  if (!x.defined() || x.device() == device) return x;
  copied.add(static_cast<std::int64_t>(x.bytes()));
  return copy_to(x, device);
}

Tensor borrowed(const Tensor& x) {
  if (!x.defined()) return x;
  return Tensor(Buffer::wrap(Device{}, x.buffer().data(), x.bytes(), {}), x.dtype(), x.shape());
}

void launch_fake(const char* op, Device device, std::initializer_list<const Tensor*> written,
                 std::initializer_list<const Tensor*> read, std::function<void()> kernel) {
  const std::vector<MemoryRange> writes = ranges_of(written), reads = ranges_of(read);
  Accelerator& accelerator = accelerator_of(device);
  accelerator.launch(accelerator.stream(StreamRole::compute),
                     {.name = op, .reads = reads, .writes = writes}, [kernel = std::move(kernel)] {
                       const DeviceScope host(Device{});
                       const RecorderScope unrecorded(nullptr);
                       kernel();
                     });
}

void no_cuda_kernel(const char* op, Device device) {
  throw Unimplemented(message(op, "has no CUDA kernel, so it cannot run on ", device,
                              "; copy its arguments to the host with to_host() first"),
                      SourceLocation{});
}

}  // namespace lockstep::detail
