// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <lockstep/base/check.h>
#include <lockstep/base/thread.h>

namespace lockstep::cuda {

void* CudaMemory::allocate(std::size_t bytes) {
  void* data = nullptr;
  if (cudaSetDevice(index_) == cudaSuccess && cudaMalloc(&data, bytes) == cudaSuccess) return data;
  cudaGetLastError();
  return nullptr;
}

void CudaMemory::free(void* data, std::size_t) noexcept {
  cudaSetDevice(index_);
  cudaFree(data);  // waits for the device, so for all that may still use it
  cudaGetLastError();
}

CudaDevice::CudaDevice(int index)
    : device_{DeviceKind::cuda, index}, memory_(index), pool_(device_, memory_) {
  check(cudaSetDevice(index), "cudaSetDevice");
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&compute_, cudaStreamNonBlocking, least),
        "cudaStreamCreateWithPriority");
  // Collectives first: others wait for them.
  check(cudaStreamCreateWithPriority(&communication_, cudaStreamNonBlocking, greatest),
        "cudaStreamCreateWithPriority");
}

Stream CudaDevice::stream(StreamRole role) {
  return {device_, role == StreamRole::compute ? compute_ : communication_};
}

void CudaDevice::launch(const Stream&, const LaunchInfo& info, std::function<void()>) {
  throw InternalError(message(info.name, "a host function cannot run on ", device_));
}

void CudaDevice::copy_from_host(const Stream& stream, void* to, const void* from,
                                std::size_t bytes) {
  // From pageable memory the call returns when `from` has been read.
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, enter(stream)), "cudaMemcpyAsync");
}

void CudaDevice::copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  synchronize(stream, Deadline::after(kStreamTimeout));  // bounded, which the copy is not
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, enter(stream)), "cudaMemcpyAsync");
  synchronize(stream, Deadline::after(kStreamTimeout));
}

void CudaDevice::copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, enter(stream)), "cudaMemcpyAsync");
}

void CudaDevice::zero(const Stream& stream, void* to, std::size_t bytes) {
  check(cudaMemsetAsync(to, 0, bytes, enter(stream)), "cudaMemsetAsync");
}

std::shared_ptr<void> CudaDevice::record(const Stream& stream) {
  const cudaStream_t native = enter(stream);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  std::shared_ptr<void> point(event,
                              [](void* e) { cudaEventDestroy(static_cast<cudaEvent_t>(e)); });
  check(cudaEventRecord(event, native), "cudaEventRecord");
  return point;
}

void CudaDevice::wait(const Stream& stream, const std::shared_ptr<void>& point) {
  ensure(point != nullptr, "Event::hold", "the event was not recorded");
  check(cudaStreamWaitEvent(enter(stream), static_cast<cudaEvent_t>(point.get()), 0),
        "cudaStreamWaitEvent");
}

void CudaDevice::synchronize(const Stream& stream, Deadline deadline) {
  const cudaStream_t native = enter(stream);
  for (Backoff backoff;;) {
    const cudaError_t state = cudaStreamQuery(native);
    if (state != cudaErrorNotReady) return check(state, "synchronize");
    if (backoff.pause() && deadline.passed())
      throw DeadlineExceeded(message("synchronize", device_,
                                     " has not done its work in time; a "
                                     "collective may wait for a replica that does not come"),
                             SourceLocation{});
  }
}

}  // namespace lockstep::cuda
