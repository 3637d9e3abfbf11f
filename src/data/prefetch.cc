// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/log.h>
#include <lockstep/base/thread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "data/node.h"

namespace lockstep::data {
namespace {

constexpr std::chrono::seconds kPatience{
    10};  // with a source that does not notice its cancellation

// What a consumer and its background thread share. The thread owns it too, so that it may be left
// behind.
struct Queue {
  Queue(NodePtr source, std::uint64_t epoch, std::size_t size)
      : node(std::move(source)),
        depth(size),
        input(node->walk({.epoch = epoch, .stop = cancel.get_token()})) {}

  void run();
  void push(Leaves leaves);

  const NodePtr node;
  const std::size_t depth;
  std::stop_source cancel;
  const std::unique_ptr<IteratorNode> input;  // the thread's alone, once there is one

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<Leaves> ready;
  std::exception_ptr error;
  bool ended = false;  // nothing will be added to `ready`
};

// Reads only when there is room, so that no more than `depth` elements are ever ahead.
void Queue::run() {
  set_thread_name("ls-prefetch");
  std::exception_ptr failure;
  try {
    for (;;) {
      {
        std::unique_lock lock(mutex);
        if (!changed.wait(lock, cancel.get_token(), [this] { return ready.size() < depth; })) break;
      }
      if (cancel.stop_requested()) break;
      Item item;
      if (!input->next(item)) break;
      push(node->read(std::move(item)));
    }
  } catch (const Cancelled&) {
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex);
  error = std::move(failure);
  ended = true;
  changed.notify_all();
}

void Queue::push(Leaves leaves) {
  const std::lock_guard lock(mutex);
  ready.push_back(std::move(leaves));
  changed.notify_all();
}

class PrefetchWalk final : public IteratorNode {
 public:
  PrefetchWalk(NodePtr input, std::int64_t depth, const Walk& walk)
      : queue_(
            std::make_shared<Queue>(std::move(input), walk.epoch, static_cast<std::size_t>(depth))),
        stop_(walk.stop) {}

  ~PrefetchWalk() override {
    queue_->cancel.request_stop();
    if (!thread_.joinable()) return;
    std::unique_lock lock(queue_->mutex);
    const bool ended = queue_->changed.wait_for(lock, kPatience, [this] { return queue_->ended; });
    lock.unlock();
    if (ended) {
      thread_.join();
    } else {
      logging::error(
          "[Dataset::prefetch] the source did not return within 10 s of its cancellation; "
          "its thread is left behind");
      thread_.detach();
    }
  }

  bool next(Item& item) override {
    if (!thread_.joinable()) thread_ = std::thread([queue = queue_] { queue->run(); });
    Queue& queue = *queue_;
    std::unique_lock lock(queue.mutex);
    const auto done = [&queue] { return !queue.ready.empty() || queue.ended; };
    if (!queue.changed.wait(lock, stop_, done)) throw Cancelled();
    if (!queue.ready.empty()) {
      item.leaves = std::move(queue.ready.front());
      queue.ready.pop_front();
      queue.changed.notify_all();
      return true;
    }
    if (queue.error) std::rethrow_exception(queue.error);
    return false;
  }

  // Before the thread starts nothing has been read, and the input passes over elements unread.
  std::int64_t skip(std::int64_t count) override {
    return thread_.joinable() ? IteratorNode::skip(count) : queue_->input->skip(count);
  }

 private:
  const std::shared_ptr<Queue> queue_;
  const std::stop_token stop_;
  std::thread thread_;  // started by the first next()
};

class PrefetchNode final : public PassNode {
 public:
  PrefetchNode(NodePtr input, std::int64_t depth) : PassNode(std::move(input)), depth_(depth) {}

  std::string describe() const override { return "prefetch(" + std::to_string(depth_) + ")"; }
  NodePtr over(NodePtr input) const override {
    return std::make_shared<PrefetchNode>(std::move(input), depth_);
  }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    return std::make_unique<PrefetchWalk>(input_, depth_, walk);
  }
  Leaves read(Item item) const override { return std::move(item.leaves); }
  const RowSource* row_source() const override { return nullptr; }

 private:
  const std::int64_t depth_;
};

}  // namespace

NodePtr make_prefetch(NodePtr input, std::int64_t depth) {
  return std::make_shared<PrefetchNode>(std::move(input), depth);
}

NodePtr below_prefetch(const NodePtr& node, const std::function<NodePtr(NodePtr)>& wrap) {
  const auto* prefetch = dynamic_cast<const PrefetchNode*>(node.get());
  return prefetch ? prefetch->over(below_prefetch(prefetch->input(), wrap)) : wrap(node);
}

}  // namespace lockstep::data
