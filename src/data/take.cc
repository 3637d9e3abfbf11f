// SPDX-License-Identifier: Apache-2.0
// Some of the elements by their position: take, skip, shard.
#include <algorithm>

#include "data/node.h"

namespace lockstep::data {
namespace {

class TakeWalk final : public IteratorNode {
 public:
  TakeWalk(std::unique_ptr<IteratorNode> input, std::int64_t count)
      : input_(std::move(input)), left_(count) {}
  bool next(Item& item) override {
    if (left_ == 0 || !input_->next(item)) return false;
    --left_;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t done = input_->skip(std::min(count, left_));
    left_ -= done;
    return done;
  }

 private:
  const std::unique_ptr<IteratorNode> input_;
  std::int64_t left_;
};

class TakeNode final : public PassNode {
 public:
  TakeNode(NodePtr input, std::int64_t count) : PassNode(std::move(input)), count_(count) {}

  std::string describe() const override { return "take(" + std::to_string(count_) + ")"; }
  NodePtr over(NodePtr input) const override {
    return std::make_shared<TakeNode>(std::move(input), count_);
  }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    return std::make_unique<TakeWalk>(input_->walk(walk), count_);
  }
  std::int64_t cardinality() const override {
    const std::int64_t elements = input_->cardinality();
    if (elements == kInfinite || count_ == 0) return count_;
    return elements < 0 ? elements : std::min(elements, count_);
  }

 private:
  const std::int64_t count_;
};

class SkipWalk final : public IteratorNode {
 public:
  SkipWalk(std::unique_ptr<IteratorNode> input, std::int64_t count)
      : input_(std::move(input)), lead_(count) {}
  bool next(Item& item) override { return reach_first() && input_->next(item); }
  std::int64_t skip(std::int64_t count) override { return reach_first() ? input_->skip(count) : 0; }

 private:
  bool reach_first() {
    if (lead_ > 0) lead_ -= input_->skip(lead_);
    return lead_ == 0;
  }

  const std::unique_ptr<IteratorNode> input_;
  std::int64_t lead_;
};

class SkipNode final : public PassNode {
 public:
  SkipNode(NodePtr input, std::int64_t count) : PassNode(std::move(input)), count_(count) {}

  std::string describe() const override { return "skip(" + std::to_string(count_) + ")"; }
  NodePtr over(NodePtr input) const override {
    return std::make_shared<SkipNode>(std::move(input), count_);
  }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    return std::make_unique<SkipWalk>(input_->walk(walk), count_);
  }
  std::int64_t cardinality() const override {
    const std::int64_t elements = input_->cardinality();
    return elements < 0 ? elements : std::max<std::int64_t>(0, elements - count_);
  }

 private:
  const std::int64_t count_;
};

class ShardWalk final : public IteratorNode {
 public:
  ShardWalk(std::unique_ptr<IteratorNode> input, std::int64_t num_shards, std::int64_t index)
      : input_(std::move(input)), num_shards_(num_shards), gap_(index) {}
  bool next(Item& item) override {
    if (gap_ > 0 && input_->skip(gap_) < gap_) return false;
    gap_ = num_shards_ - 1;
    return input_->next(item);
  }
  std::int64_t skip(std::int64_t count) override {
    if (count <= 0) return 0;
    const std::int64_t stride = saturating_product(count - 1, num_shards_);
    const std::int64_t passed = input_->skip(stride + std::min(gap_ + 1, kMost - stride));
    const std::int64_t done = passed > gap_ ? (passed - gap_ - 1) / num_shards_ + 1 : 0;
    gap_ = num_shards_ - 1;
    return done;
  }

 private:
  static constexpr std::int64_t kMost = INT64_MAX;

  const std::unique_ptr<IteratorNode> input_;
  const std::int64_t num_shards_;
  std::int64_t gap_;  // elements of others before the next of ours
};

class ShardNode final : public PassNode {
 public:
  ShardNode(NodePtr input, std::int64_t num_shards, std::int64_t index)
      : PassNode(std::move(input)), num_shards_(num_shards), index_(index) {}

  std::string describe() const override {
    return "shard(" + std::to_string(index_) + " of " + std::to_string(num_shards_) + ")";
  }
  NodePtr over(NodePtr input) const override {
    return std::make_shared<ShardNode>(std::move(input), num_shards_, index_);
  }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    return std::make_unique<ShardWalk>(input_->walk(walk), num_shards_, index_);
  }
  std::int64_t cardinality() const override {
    const std::int64_t elements = input_->cardinality();
    return elements < 0 ? elements : (elements + num_shards_ - 1 - index_) / num_shards_;
  }

 private:
  const std::int64_t num_shards_, index_;
};

}  // namespace

NodePtr make_take(NodePtr input, std::int64_t count) {
  return std::make_shared<TakeNode>(std::move(input), count);
}
NodePtr make_skip(NodePtr input, std::int64_t count) {
  return std::make_shared<SkipNode>(std::move(input), count);
}
NodePtr make_shard(NodePtr input, std::int64_t num_shards, std::int64_t index) {
  return std::make_shared<ShardNode>(std::move(input), num_shards, index);
}

}  // namespace lockstep::data
