// SPDX-License-Identifier: Apache-2.0
// How what was put into streams is run.
#include <lockstep/base/check.h>

#include <algorithm>

#include "device/fake/queue.h"

namespace lockstep::fake {

// Called when something was put: now and then runs some of what could run.
void Runtime::run_some() {
  if (eager_)
    while (step()) {
    }
  else
    while (random_() % 3 == 0 && step()) {
    }
}

// Runs one operation of those that could, any of them; false if there is none.
bool Runtime::step() {
  std::vector<Queue*> candidates;
  for (const auto& queue : queues_)
    if (ready(*queue)) candidates.push_back(queue.get());
  if (candidates.empty()) return false;
  run(*candidates[random_() % candidates.size()]);
  return true;
}

bool Runtime::ready(const Queue& queue) const {
  if (queue.operations.empty()) return false;
  const Operation& next = queue.operations.front();
  if (next.awaits && !next.awaits->reached) return false;
  return !next.group || next.aborted() || all_have_come(*next.group);
}

bool Runtime::all_have_come(const Group& group) const {
  for (int rank = 0; rank < static_cast<int>(group.issued.size()); ++rank)
    if (!waiting_rank(group, rank)) return false;
  return true;
}

// The stream that has come to the rank's next collective; null: none has.
Queue* Runtime::waiting_rank(const Group& group, int rank) const {
  for (const auto& queue : queues_) {
    if (queue->operations.empty()) continue;
    const Operation& next = queue->operations.front();
    if (next.group.get() == &group && !next.aborted() && next.rank == rank &&
        next.issue == group.done[static_cast<std::size_t>(rank)])
      return queue.get();
  }
  return nullptr;
}

void Runtime::run(Queue& queue) {
  const Operation& operation = queue.operations.front();
  if (operation.group && !operation.aborted()) return run_together(operation.group);
  join(queue.clock, operation.seen_by_host);
  if (operation.awaits) join(queue.clock, operation.awaits->clock);
  if (!operation.aborted()) {
    note_accesses(queue, operation);
    call(operation, queue, operation.run);
  }
  finish(queue);
}

void Runtime::run_together(const std::shared_ptr<Group>& group) {
  std::vector<Queue*> streams;
  std::vector<Contribution> contributions;
  Clock all;
  for (int rank = 0; rank < static_cast<int>(group->issued.size()); ++rank) {
    Queue* const stream = waiting_rank(*group, rank);
    const Operation& operation = stream->operations.front();
    join(all, stream->clock);
    join(all, operation.seen_by_host);
    streams.push_back(stream);
    contributions.push_back(operation.contribution);
  }
  bool agree = true;
  for (std::size_t rank = 1; rank < streams.size(); ++rank) {
    if (contributions[rank].text == contributions[0].text) continue;
    agree = false;
    find("ranks disagree: rank 0 calls " + contributions[0].text + ", rank " +
         std::to_string(rank) + " calls " + contributions[rank].text);
  }
  for (Queue* const stream : streams) {
    stream->clock = all;
    note_accesses(*stream, stream->operations.front());
  }
  const Operation& first = streams[0]->operations.front();
  if (agree) {
    for (const auto& memory : memory_) memory->open(true);
    first.together(contributions);
    for (const auto& memory : memory_) memory->open(false);
  }
  for (auto& done : group->done) ++done;
  for (Queue* const stream : streams) finish(*stream);
}

void Runtime::note_accesses(const Queue& queue, const Operation& operation) {
  const std::string& name = *names_.insert(operation.name + " on " + queue.name).first;
  const Stamp stamp{queue.timeline, static_cast<std::uint64_t>(queue.done) + 1, &name};
  // What the stream did itself before comes before.
  Clock clock = queue.clock;
  if (clock.size() <= queue.timeline) clock.resize(queue.timeline + 1);
  clock[queue.timeline] = stamp.time;
  const auto note = [&](const MemoryRange& range, bool write) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.data);
    log_.note({begin, begin + range.bytes, write}, stamp, clock,
              [&](const Stamp& earlier, bool earlier_wrote) {
                find("race: " + name + (write ? " writes" : " reads") + " what " + *earlier.name +
                     (earlier_wrote ? " writes" : " reads") + ", and nothing orders them");
              });
  };
  for (const MemoryRange& range : operation.reads) note(range, false);
  for (const MemoryRange& range : operation.writes) note(range, true);
}

// Runs a kernel with the memory open that it says it touches, and no other device's.
void Runtime::call(const Operation& operation, Queue& queue,
                   const std::function<void()>& function) {
  if (!function) return;
  const auto open = [&](bool accessible) {
    for (const auto& memory : memory_) {
      const auto touched = [&](const MemoryRange& range) { return memory->contains(range.data); };
      if (std::ranges::any_of(operation.reads, touched) ||
          std::ranges::any_of(operation.writes, touched))
        memory->open(accessible);
    }
  };
  open(true);
  try {
    function();
  } catch (...) {
    if (!queue.failure) queue.failure = std::current_exception();
  }
  open(false);
}

// The first operation of the stream is done.
void Runtime::finish(Queue& queue) {
  ++queue.done;
  if (queue.clock.size() <= queue.timeline) queue.clock.resize(queue.timeline + 1);
  queue.clock[queue.timeline] = static_cast<std::uint64_t>(queue.done);
  if (const auto& point = queue.operations.front().reaches) {
    point->reached = true;
    point->clock = queue.clock;
  }
  queue.operations.pop_front();
}

void Runtime::synchronize(Queue* queue) {
  const Lock lock(mutex_);
  const std::int64_t target = queue->put;
  while (queue->done < target) {
    if (step()) continue;
    const std::string text = where_all_wait();
    find("deadlock: " + text);
    throw DeadlineExceeded(message("synchronize", queue->name, " will never be done: ", text),
                           SourceLocation{});
  }
  join(threads_[std::this_thread::get_id()], queue->clock);
  if (queue->failure) std::rethrow_exception(std::exchange(queue->failure, nullptr));
}

void Runtime::drain() {
  const Lock lock(mutex_);
  while (step()) {
  }
  const std::string text = where_all_wait();
  if (!text.empty()) find("deadlock: " + text);
}

// "FAKE:0 communication is at all_reduce ..., FAKE:1 compute is at wait"; empty if all is done.
std::string Runtime::where_all_wait() const {
  std::string text;
  for (const auto& queue : queues_) {
    if (queue->operations.empty()) continue;
    const Operation& next = queue->operations.front();
    text += (text.empty() ? "" : ", ") + queue->name + " is at " +
            (next.group ? next.contribution.text : next.name);
  }
  return text;
}

}  // namespace lockstep::fake
