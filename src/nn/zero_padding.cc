// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/zero_padding.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>

namespace lockstep::nn {

ZeroPadding::ZeroPadding(const Padding& padding, const ZeroPaddingOptions& options,
                         SourceLocation at)
    : Layer(options.name, at), padding_(padding) {
  require(padding.kind() == Padding::Kind::given, at, "ZeroPadding",
          "expected numbers, as in ZeroPadding({1, 1}), got padding `valid` or `same`");
  require(std::min({padding.front(), padding.back(), padding.top(), padding.bottom(),
                    padding.left(), padding.right()}) >= 0,
          at, "ZeroPadding", "expected padding of 0 or more");
}

Tensor ZeroPadding::operator()(const Tensor& x, CallOptions, SourceLocation at) const {
  const int axes = padding_.axes();
  check_input(x, {.min_rank = axes + 2, .max_rank = axes + 2}, at);
  std::vector<std::int64_t> before{padding_.front(), padding_.top(), padding_.left(), 0};
  std::vector<std::int64_t> after{padding_.back(), padding_.bottom(), padding_.right(), 0};
  before.erase(before.begin(), before.begin() + 3 - axes);
  after.erase(after.begin(), after.begin() + 3 - axes);
  before.insert(before.begin(), 0);
  after.insert(after.begin(), 0);
  return pad(x, before, after, {}, at);
}

}  // namespace lockstep::nn
