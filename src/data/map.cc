// SPDX-License-Identifier: Apache-2.0
#include "data/node.h"

namespace lockstep::data {
namespace {

// The function is applied when an element is read, so its walk is the input's.
class MapNode final : public DatasetNode {
 public:
  MapNode(NodePtr input, LeafFunction function, SourceLocation at)
      : input_(std::move(input)), function_(std::move(function)), at_(at) {}

  std::string describe() const override { return "map"; }
  NodePtr input() const override { return input_; }
  std::unique_ptr<IteratorNode> walk(const Walk& walk) const override { return input_->walk(walk); }
  Leaves read(Item item) const override {
    Leaves leaves = function_(input_->read(std::move(item)));
    require_host_leaves(leaves, "Dataset::map", at_);
    return leaves;
  }
  std::int64_t cardinality() const override { return input_->cardinality(); }

 private:
  const NodePtr input_;
  const LeafFunction function_;
  const SourceLocation at_;
};

}  // namespace

NodePtr make_map(NodePtr input, LeafFunction function, SourceLocation at) {
  return std::make_shared<MapNode>(std::move(input), std::move(function), at);
}

}  // namespace lockstep::data
