// SPDX-License-Identifier: Apache-2.0
#include "device/accelerator.h"

#include <lockstep/base/check.h>
#include <lockstep/device/event.h>

#include <cstring>

#include "device/cuda/status.h"
#include "device/fake/devices.h"

namespace lockstep {

Accelerator& accelerator_of(Device device) {
  ensure(!device.is_host(), "accelerator_of", device, " has no runtime of its own");
  if (device.kind == DeviceKind::fake)
    if (Accelerator* const fake = fake::device(device.index)) return *fake;
  if (device.kind == DeviceKind::cuda) {
    if (Accelerator* const gpu = cuda::device(device.index)) return *gpu;
    throw Unavailable(message("Device", device, " is not present: ", cuda::status().text),
                      SourceLocation{});
  }
  throw Unavailable(message("Device", device, " is not present"), SourceLocation{});
}

Stream compute_stream(Device device) {
  return device.is_host() ? Stream{device} : accelerator_of(device).stream(StreamRole::compute);
}

Stream communication_stream(Device device) {
  return device.is_host() ? Stream{device}
                          : accelerator_of(device).stream(StreamRole::communication);
}

void synchronize(const Stream& stream, Deadline deadline) {
  if (!stream.device.is_host()) accelerator_of(stream.device).synchronize(stream, deadline);
}
void synchronize(const Stream& stream) { synchronize(stream, Deadline::after(kStreamTimeout)); }

void Event::record(const Stream& stream) {
  if (!stream.device.is_host()) point_ = accelerator_of(stream.device).record(stream);
}

void Event::hold(const Stream& stream) const {
  if (!stream.device.is_host()) accelerator_of(stream.device).wait(stream, point_);
}

namespace {

// In the target's stream, between what the source's stream holds so far and what it will hold: the
// source is neither read too early nor overwritten too early.
void copy_between(Device to_device, void* to, Device from_device, const void* from,
                  std::size_t bytes) {
  ensure(to_device.kind == from_device.kind, "copy_bytes", "no way from ", from_device, " to ",
         to_device);
  const Stream source = compute_stream(from_device), target = compute_stream(to_device);
  const bool apart = source != target;
  Event written, copied;
  if (apart) {
    written.record(source);
    written.hold(target);
  }
  accelerator_of(to_device).copy(target, to, from, bytes);
  if (apart) {
    copied.record(target);
    copied.hold(source);
  }
}

}  // namespace

void copy_bytes(Device to_device, void* to, Device from_device, const void* from,
                std::size_t bytes) {
  if (bytes == 0) return;
  if (!to_device.is_host() && !from_device.is_host())
    copy_between(to_device, to, from_device, from, bytes);
  else if (!to_device.is_host())
    accelerator_of(to_device).copy_from_host(compute_stream(to_device), to, from, bytes);
  else if (!from_device.is_host())
    accelerator_of(from_device).copy_to_host(compute_stream(from_device), to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

void zero_bytes(Device device, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (device.is_host())
    std::memset(to, 0, bytes);
  else
    accelerator_of(device).zero(compute_stream(device), to, bytes);
}

}  // namespace lockstep
