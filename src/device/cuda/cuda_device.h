// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "device/accelerator.h"
#include "device/cuda/api.h"

namespace lockstep::cuda {

// A GPU's memory. Blocks come from cudaMalloc and are kept by the pool, so that the second step of a
// loop asks CUDA for nothing.
class CudaMemory final : public MemorySource {
 public:
  explicit CudaMemory(int index) : index_(index) {}
  void* allocate(std::size_t bytes) override;
  void free(void* data, std::size_t bytes) noexcept override;
  void handed_out(void*, std::size_t) noexcept override {}
  void returned(void*, std::size_t) noexcept override {}

 private:
  const int index_;
};

// One GPU: two streams of its primary context. Never destroyed.
class CudaDevice final : public Accelerator {
 public:
  explicit CudaDevice(int index);

  MemoryPool& pool() override { return pool_; }
  Stream stream(StreamRole role) override;
  // A GPU runs kernels of its own: always throws InternalError.
  void launch(const Stream& stream, const LaunchInfo& info, std::function<void()> kernel) override;
  void copy_from_host(const Stream& stream, void* to, const void* from, std::size_t bytes) override;
  void copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes) override;
  void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) override;
  void zero(const Stream& stream, void* to, std::size_t bytes) override;
  std::shared_ptr<void> record(const Stream& stream) override;
  void wait(const Stream& stream, const std::shared_ptr<void>& point) override;
  void synchronize(const Stream& stream, Deadline deadline) override;

 private:
  const Device device_;
  CudaMemory memory_;
  MemoryPool pool_;
  cudaStream_t compute_ = nullptr, communication_ = nullptr;
};

}  // namespace lockstep::cuda
