// SPDX-License-Identifier: Apache-2.0
#include "data/node.h"

namespace lockstep::data {
namespace {

// Round r of epoch e is epoch e * count + r of the input, so that repeat(3) walks through what
// three walks would; endless rounds leave each epoch 2^32 of them.
class RepeatWalk final : public IteratorNode {
 public:
  RepeatWalk(NodePtr input, std::int64_t count, const Walk& walk)
      : input_(std::move(input)), count_(count), walk_(walk), size_(input_->cardinality()) {}

  bool next(Item& item) override {
    while (rounds_left()) {
      start_round();
      if (current_->next(item)) {
        ++position_;
        return true;
      }
      end_round();
    }
    return false;
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t done = 0;
    while (done < count && rounds_left()) {
      if (size_ > 0 && position_ == 0 && count - done >= size_) {
        const std::int64_t whole = (count - done) / size_;
        const std::int64_t rounds = count_ == kInfinite ? whole : std::min(whole, count_ - round_);
        round_ += rounds;
        done += rounds * size_;
        current_.reset();
        continue;
      }
      start_round();
      const std::int64_t skipped = current_->skip(count - done);
      position_ += skipped;
      done += skipped;
      if (done < count) end_round();
    }
    return done;
  }

 private:
  bool rounds_left() const { return !empty_ && (count_ == kInfinite || round_ < count_); }
  void start_round() {
    if (current_) return;
    const std::uint64_t stride =
        count_ == kInfinite ? std::uint64_t{1} << 32 : static_cast<std::uint64_t>(count_);
    current_ = input_->walk(
        {.epoch = walk_.epoch * stride + static_cast<std::uint64_t>(round_), .stop = walk_.stop});
  }
  void end_round() {
    empty_ = position_ == 0;  // so will be all later rounds
    current_.reset();
    position_ = 0;
    ++round_;
  }

  const NodePtr input_;
  const std::int64_t count_;
  const Walk walk_;
  const std::int64_t size_;
  std::unique_ptr<IteratorNode> current_;
  std::int64_t round_ = 0;
  std::int64_t position_ = 0;  // in this round
  bool empty_ = false;
};

class RepeatNode final : public PassNode {
 public:
  RepeatNode(NodePtr input, std::int64_t count) : PassNode(std::move(input)), count_(count) {}

  std::string describe() const override {
    return count_ == kInfinite ? "repeat()" : "repeat(" + std::to_string(count_) + ")";
  }
  NodePtr over(NodePtr input) const override {
    return std::make_shared<RepeatNode>(std::move(input), count_);
  }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    return std::make_unique<RepeatWalk>(input_, count_, walk);
  }
  std::int64_t cardinality() const override {
    const std::int64_t elements = input_->cardinality();
    if (elements == 0 || count_ == 0) return 0;
    if (count_ == kInfinite) return kInfinite;
    return elements < 0 ? elements : saturating_product(elements, count_);
  }

 private:
  const std::int64_t count_;
};

}  // namespace

NodePtr make_repeat(NodePtr input, std::int64_t count) {
  return std::make_shared<RepeatNode>(std::move(input), count);
}

}  // namespace lockstep::data
