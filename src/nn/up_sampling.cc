// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/up_sampling.h>
#include <lockstep/ops/shape_ops.h>

namespace lockstep::nn {
namespace {

std::string name_or(const std::string& name, std::size_t axes) {
  return name.empty() ? "up_sampling" + std::to_string(axes) + "d" : name;
}

}  // namespace

UpSampling::UpSampling(std::vector<std::int64_t> sizes, const UpSamplingOptions& options,
                       SourceLocation at)
    : Layer(name_or(options.name, sizes.size()), at), sizes_(std::move(sizes)) {
  for (const std::int64_t size : sizes_)
    require(size > 0, at, name(), "expected a size of 1 or more, got ", size);
}

// [batch, height, width, channels] as [batch, height, 1, width, 1, channels], broadcast.
Tensor UpSampling::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const int rank = static_cast<int>(sizes_.size()) + 2;
  check_input(x, {.min_rank = rank, .max_rank = rank}, at);
  std::vector<std::int64_t> apart{x.dim(0)}, repeated{x.dim(0)}, joined{x.dim(0)};
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const std::int64_t extent = x.dim(static_cast<int>(i) + 1);
    apart.insert(apart.end(), {extent, 1});
    repeated.insert(repeated.end(), {extent, sizes_[i]});
    joined.push_back(extent * sizes_[i]);
  }
  for (auto* const shape : {&apart, &repeated, &joined}) shape->push_back(x.dim(-1));
  return reshape(broadcast_to(reshape(x, Shape(apart), at), Shape(repeated), at), Shape(joined),
                 at);
}

}  // namespace lockstep::nn
