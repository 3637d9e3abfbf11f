// SPDX-License-Identifier: Apache-2.0
#include "device/fake/devices.h"

#include <lockstep/base/check.h>

#include <atomic>
#include <cstring>

namespace lockstep::fake {
namespace {

class FakeMemory final : public MemorySource {
 public:
  FakeMemory(Runtime& runtime, int device) : runtime_(runtime), device_(device) {}
  void* allocate(std::size_t bytes) override { return runtime_.memory(device_).allocate(bytes); }
  void free(void*, std::size_t) noexcept override {}  // goes with the device
  void handed_out(void* data, std::size_t bytes) noexcept override {
    runtime_.handed_out(device_, data, bytes);
  }
  void returned(void* data, std::size_t) noexcept override { runtime_.returned(data); }

 private:
  Runtime& runtime_;
  const int device_;
};

class FakeDevice final : public Accelerator {
 public:
  FakeDevice(Runtime& runtime, int index)
      : runtime_(runtime),
        device_{DeviceKind::fake, index},
        memory_(runtime, index),
        pool_(device_, memory_) {}

  MemoryPool& pool() override { return pool_; }
  Stream stream(StreamRole role) override { return {device_, runtime_.queue(device_.index, role)}; }
  void launch(const Stream& stream, const LaunchInfo& info, std::function<void()> kernel) override {
    runtime_.launch(queue_of(stream), info, std::move(kernel));
  }
  void copy_from_host(const Stream& stream, void* to, const void* from,
                      std::size_t bytes) override {
    const auto* const first = static_cast<const std::byte*>(from);
    const MemoryRange target{to, bytes};
    launch(stream, {.name = "copy from host", .reads = {}, .writes = {&target, 1}},
           [to, staged = std::vector<std::byte>(first, first + bytes)] {
             std::memcpy(to, staged.data(), staged.size());
           });
  }
  void copy_to_host(const Stream& stream, void* to, const void* from, std::size_t bytes) override {
    // Staged: after a deadlock nobody may write to `to` any more.
    const auto staged = std::make_shared<std::vector<std::byte>>(bytes);
    const MemoryRange source{from, bytes};
    launch(stream, {.name = "copy to host", .reads = {&source, 1}, .writes = {}},
           [=] { std::memcpy(staged->data(), from, bytes); });
    runtime_.synchronize(queue_of(stream));
    std::memcpy(to, staged->data(), bytes);
  }
  void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) override {
    const MemoryRange source{from, bytes}, target{to, bytes};
    launch(stream, {.name = "copy", .reads = {&source, 1}, .writes = {&target, 1}},
           [=] { std::memmove(to, from, bytes); });
  }
  void zero(const Stream& stream, void* to, std::size_t bytes) override {
    const MemoryRange target{to, bytes};
    launch(stream, {.name = "zero", .reads = {}, .writes = {&target, 1}},
           [=] { std::memset(to, 0, bytes); });
  }
  std::shared_ptr<void> record(const Stream& stream) override {
    return runtime_.record(queue_of(stream));
  }
  void wait(const Stream& stream, const std::shared_ptr<void>& point) override {
    runtime_.wait(queue_of(stream), point);
  }
  // Nothing takes time here: what can run runs at once, and what cannot never will.
  void synchronize(const Stream& stream, Deadline) override {
    runtime_.synchronize(queue_of(stream));
  }

 private:
  Runtime& runtime_;
  const Device device_;
  FakeMemory memory_;
  MemoryPool pool_;
};

}  // namespace

struct Devices::State {
  explicit State(const Options& options) : runtime(options) {
    for (int i = 0; i < options.devices; ++i)
      devices.push_back(std::make_unique<FakeDevice>(runtime, i));
  }
  static std::atomic<State*> installed;
  Runtime runtime;
  std::vector<std::unique_ptr<FakeDevice>> devices;
};

std::atomic<Devices::State*> Devices::State::installed{nullptr};

Devices::Devices(const Options& options) : state_(std::make_unique<State>(options)) {
  State* none = nullptr;
  ensure(State::installed.compare_exchange_strong(none, state_.get()), "fake::Devices",
         "there are some already");
}

Devices::~Devices() {
  state_->runtime.drain();
  State::installed.store(nullptr);
  for (const auto& device : state_->devices)
    if (device->pool().stats().in_use > 0) {  // some tensor outlives them: so does their memory
      static_cast<void>(state_.release());
      return;
    }
}

std::vector<std::string> Devices::names() const {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(state_->runtime.devices()));
  for (int i = 0; i < state_->runtime.devices(); ++i)
    names.push_back(Device{DeviceKind::fake, i}.to_string());
  return names;
}

std::vector<std::string> Devices::findings() {
  state_->runtime.drain();
  return state_->runtime.findings();
}

int device_count() {
  const Devices::State* const state = Devices::State::installed.load();
  return state ? state->runtime.devices() : 0;
}

Accelerator* device(int index) {
  Devices::State* const state = Devices::State::installed.load();
  return state && index < state->runtime.devices()
             ? state->devices[static_cast<std::size_t>(index)].get()
             : nullptr;
}

Runtime& runtime() {
  Devices::State* const state = Devices::State::installed.load();
  if (!state) throw Unavailable("[fake::runtime] there are no fake devices", SourceLocation{});
  return state->runtime;
}

Queue* queue_of(const Stream& stream) { return static_cast<Queue*>(stream.native); }

}  // namespace lockstep::fake
