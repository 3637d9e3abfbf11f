// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/from_generator.h>

#include "data/node.h"

namespace lockstep::data {
namespace {

class GeneratorWalk final : public IteratorNode {
 public:
  GeneratorWalk(LeafGenerator generator, std::stop_token stop, SourceLocation at)
      : generator_(std::move(generator)), stop_(std::move(stop)), at_(at) {}
  bool next(Item& item) override {
    if (!generator_) return false;
    if (stop_.stop_requested()) throw Cancelled();
    std::optional<Leaves> leaves = generator_();
    if (!leaves) {
      generator_ = nullptr;
      return false;
    }
    require_host_leaves(*leaves, "from_generator", at_);
    item.leaves = std::move(*leaves);
    return true;
  }

 private:
  LeafGenerator generator_;  // empty after its end
  const std::stop_token stop_;
  const SourceLocation at_;
};

class GeneratorNode final : public DatasetNode {
 public:
  GeneratorNode(std::function<LeafGenerator(std::stop_token)> make, SourceLocation at)
      : make_(std::move(make)), at_(at) {}
  std::string describe() const override { return "from_generator"; }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override {
    return std::make_unique<GeneratorWalk>(make_(walk.stop), walk.stop, at_);
  }
  std::int64_t cardinality() const override { return kUnknown; }

 private:
  const std::function<LeafGenerator(std::stop_token)> make_;
  const SourceLocation at_;
};

}  // namespace

NodePtr make_generator(std::function<LeafGenerator(std::stop_token)> make, SourceLocation at) {
  return std::make_shared<GeneratorNode>(std::move(make), at);
}

}  // namespace lockstep::data
