// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/reshape.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>

namespace lockstep::nn {
namespace {

std::string text_of(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

}  // namespace

Reshape::Reshape(std::vector<std::int64_t> target_shape, const ReshapeOptions& options,
                 SourceLocation at)
    : Layer(options.name, at), target_shape_(std::move(target_shape)) {
  const auto open = std::count(target_shape_.begin(), target_shape_.end(), -1);
  const auto positive =
      std::count_if(target_shape_.begin(), target_shape_.end(), [](auto n) { return n > 0; });
  require(open <= 1 && open + positive == std::ssize(target_shape_), at, "Reshape",
          "expected extents of 1 or more, one of them -1 or none, got ", text_of(target_shape_));
}

// An empty batch has its examples' shape, too.
Tensor Reshape::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  check_input(x, {}, at);
  std::int64_t elements = 1, known = 1;
  for (int axis = 1; axis < x.rank(); ++axis) elements *= x.dim(axis);
  for (const std::int64_t extent : target_shape_) known *= extent == -1 ? 1 : extent;
  std::vector<std::int64_t> extents{x.dim(0)};
  for (const std::int64_t extent : target_shape_)
    extents.push_back(extent == -1 ? elements / known : extent);
  const bool open =
      std::find(target_shape_.begin(), target_shape_.end(), -1) != target_shape_.end();
  require(open ? elements % known == 0 : elements == known, at, name(),
          "expected examples of as many elements as ", text_of(target_shape_), " has, got ",
          x.shape());
  return reshape(x, Shape(extents, at, "Reshape"), at);
}

std::int64_t Reshape::output_size(std::int64_t) const {
  return target_shape_.empty() || target_shape_.back() == -1 ? kAnySize : target_shape_.back();
}

}  // namespace lockstep::nn
