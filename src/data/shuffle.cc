// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include "data/node.h"
#include "data/random.h"

namespace lockstep::data {
namespace {

class ShuffleWalk final : public IteratorNode {
 public:
  ShuffleWalk(std::unique_ptr<IteratorNode> input, std::size_t buffer_size, EpochRandom random)
      : input_(std::move(input)), buffer_size_(buffer_size), random_(random) {}

  bool next(Item& item) override {
    Item read;
    while (buffer_.size() < buffer_size_ && input_->next(read)) buffer_.push_back(std::move(read));
    if (buffer_.empty()) return false;
    Item& drawn = buffer_[random_.below(buffer_.size())];
    item = std::move(drawn);
    drawn = std::move(buffer_.back());  // may be a move to itself, of what is popped next
    buffer_.pop_back();
    return true;
  }

 private:
  const std::unique_ptr<IteratorNode> input_;
  const std::size_t buffer_size_;
  EpochRandom random_;
  std::vector<Item> buffer_;
};

class ShuffleNode final : public PassNode {
 public:
  ShuffleNode(NodePtr input, const ShuffleOptions& options)
      : PassNode(std::move(input)), options_(options) {}

  std::string describe() const override {
    std::string text = "shuffle(seed " + std::to_string(options_.seed);
    if (options_.buffer_size) text += ", buffer " + std::to_string(options_.buffer_size);
    return text + (options_.reshuffle_each_iteration ? ")" : ", same each epoch)");
  }
  NodePtr over(NodePtr input) const override {
    return std::make_shared<ShuffleNode>(std::move(input), options_);
  }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    const std::size_t buffer_size = options_.buffer_size
                                        ? static_cast<std::size_t>(options_.buffer_size)
                                        : std::numeric_limits<std::size_t>::max();
    const std::uint64_t epoch = options_.reshuffle_each_iteration ? walk.epoch : 0;
    return std::make_unique<ShuffleWalk>(input_->walk(walk), buffer_size,
                                         EpochRandom(options_.seed, epoch));
  }

 private:
  const ShuffleOptions options_;
};

}  // namespace

NodePtr make_shuffle(NodePtr input, const ShuffleOptions& options) {
  return std::make_shared<ShuffleNode>(std::move(input), options);
}

}  // namespace lockstep::data
