// SPDX-License-Identifier: Apache-2.0
// What is put into streams. How it is run: scheduler.cc.
#include "device/fake/runtime.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <cstring>

#include "device/fake/queue.h"

namespace lockstep::fake {

Runtime::Runtime(const Options& options) : eager_(options.eager), random_(options.seed) {
  require(options.devices >= 1, SourceLocation{}, "fake::Devices",
          "expected at least 1 device, got ", options.devices);
  for (int device = 0; device < options.devices; ++device) {
    memory_.push_back(std::make_unique<GuardedMemory>(options.guard_memory));
    for (const char* role : {" compute", " communication"})
      queues_.push_back(std::make_unique<Queue>(
          queues_.size(), device, Device{DeviceKind::fake, device}.to_string() + role));
  }
}

Runtime::~Runtime() = default;

Queue* Runtime::queue(int device, StreamRole role) {
  return queues_[2 * static_cast<std::size_t>(device) + (role == StreamRole::compute ? 0 : 1)]
      .get();
}

void Runtime::handed_out(int device, void* data, std::size_t bytes) {
  const Lock lock(mutex_);
  live_[reinterpret_cast<std::uintptr_t>(data)] = bytes;
  // What a block held before is gone: NaN in every floating dtype.
  put(*queue(device, StreamRole::compute),
      {.name = "allocation", .reads = {}, .writes = {{data, bytes}}, .run = [=] {
         std::memset(data, 0xFF, bytes);
       }});
}

void Runtime::returned(void* data) {
  const Lock lock(mutex_);
  live_.erase(reinterpret_cast<std::uintptr_t>(data));
}

void Runtime::launch(Queue* queue, const LaunchInfo& info, std::function<void()> kernel) {
  const Lock lock(mutex_);
  put(*queue, {.name = std::string(info.name),
               .reads = {info.reads.begin(), info.reads.end()},
               .writes = {info.writes.begin(), info.writes.end()},
               .run = std::move(kernel)});
}

std::shared_ptr<void> Runtime::record(Queue* queue) {
  const Lock lock(mutex_);
  auto point = std::make_shared<Point>();
  put(*queue, {.name = "event", .reads = {}, .writes = {}, .run = {}, .reaches = point});
  return point;
}

void Runtime::wait(Queue* queue, const std::shared_ptr<void>& point) {
  const Lock lock(mutex_);
  if (!point)
    return find("wait before record: " + queue->name +
                " was made to wait for an event that had not been recorded, which has no effect");
  put(*queue, {.name = "wait",
               .reads = {},
               .writes = {},
               .run = {},
               .awaits = std::static_pointer_cast<Point>(point)});
}

void Runtime::meet(Queue* queue, const std::shared_ptr<Group>& group, int rank,
                   Contribution contribution, const LaunchInfo& info, Together together) {
  const Lock lock(mutex_);
  put(*queue, {.name = std::string(info.name),
               .reads = {info.reads.begin(), info.reads.end()},
               .writes = {info.writes.begin(), info.writes.end()},
               .run = {},
               .group = group,
               .epoch = group->epoch,
               .rank = rank,
               .issue = group->issued[static_cast<std::size_t>(rank)]++,
               .contribution = std::move(contribution),
               .together = std::move(together)});
}

void Runtime::abort(Group& group) {
  const Lock lock(mutex_);
  ++group.epoch;
  std::fill(group.issued.begin(), group.issued.end(), 0);
  std::fill(group.done.begin(), group.done.end(), 0);
}

void Runtime::put(Queue& queue, Operation operation) {
  operation.seen_by_host = threads_[std::this_thread::get_id()];
  check_allocated(operation, queue);
  queue.operations.push_back(std::move(operation));
  ++queue.put;
  run_some();
}

void Runtime::check_allocated(const Operation& operation, const Queue& queue) {
  for (const auto* ranges : {&operation.reads, &operation.writes})
    for (const MemoryRange& range : *ranges) {
      if (range.bytes == 0) continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(range.data);
      auto block = live_.upper_bound(begin);
      const bool inside =
          block != live_.begin() && (--block, begin + range.bytes <= block->first + block->second);
      if (!inside)
        find("use after free: " + operation.name + " on " + queue.name +
             (ranges == &operation.reads ? " reads" : " writes") + " memory that is not allocated");
    }
}

std::vector<std::string> Runtime::findings() {
  const Lock lock(mutex_);
  return findings_;
}

void Runtime::find(std::string text) {
  constexpr std::size_t kMost = 100;
  if (findings_.size() < kMost && std::ranges::find(findings_, text) == findings_.end())
    findings_.push_back(std::move(text));
}

}  // namespace lockstep::fake
