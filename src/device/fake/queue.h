// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/fake/runtime.h"

namespace lockstep::fake {

// Where a stream was when an event was recorded.
struct Runtime::Point {
  bool reached = false;
  Clock clock;  // once reached
};

struct Runtime::Operation {
  std::string name;
  std::vector<MemoryRange> reads, writes;
  std::function<void()> run;
  std::shared_ptr<Point> reaches = {}, awaits = {};
  // Of a collective:
  std::shared_ptr<Group> group = {};
  std::uint64_t epoch = 0;
  int rank = 0;
  std::int64_t issue = 0;  // the rank's n-th
  Contribution contribution = {};
  Together together = {};

  Clock seen_by_host = {};  // what the thread that put it had waited for
  bool aborted() const { return group && epoch != group->epoch; }
};

// A stream.
struct Queue {
  Queue(std::size_t timeline_, int device_, std::string name_)
      : timeline(timeline_), device(device_), name(std::move(name_)) {}
  const std::size_t timeline;
  const int device;
  const std::string name;
  std::deque<Runtime::Operation> operations;
  std::int64_t put = 0, done = 0;  // operations
  Clock clock;                     // what the next operation comes after
  std::exception_ptr failure;      // the first since the last synchronize
};

}  // namespace lockstep::fake
