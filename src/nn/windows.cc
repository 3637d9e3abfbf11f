// SPDX-License-Identifier: Apache-2.0
#include "nn/windows.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <string>

namespace lockstep::nn {
namespace {

void require_positive(const std::string& layer, const char* what,
                      const std::vector<std::int64_t>& sizes, SourceLocation at) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  require(*std::min_element(sizes.begin(), sizes.end()) > 0, at, layer, "expected ", what,
          " of 1 or more, got [", text, "]");
}

}  // namespace

std::string name_or(const std::string& given, const char* before, int axes, const char* after) {
  return given.empty() ? before + std::to_string(axes) + "d" + after : given;
}

std::string class_name(const char* before, int axes, const char* after) {
  return before + std::to_string(axes) + "D" + after;
}

Shape kernel_shape(const std::string& layer, const ConvSizes& sizes, SourceLocation at) {
  const auto& [in, out, groups, kernel, strides, dilations] = sizes;
  require(in > 0 && out > 0, at, layer, "expected channel counts of 1 or more, got ", in, " and ",
          out);
  require_positive(layer, "a kernel size", kernel, at);
  require_positive(layer, "strides", strides, at);
  require_positive(layer, "dilations", dilations, at);
  require(groups > 0 && in % groups == 0 && out % groups == 0, at, layer,
          "expected groups that divide both channel counts, got ", groups, " groups of ", in,
          " and ", out, " channels");
  std::vector<std::int64_t> extents = kernel;
  extents.push_back(in / groups);
  extents.push_back(out);
  return Shape(extents, at, layer.c_str());
}

void check_output_padding(const std::string& layer, std::span<const std::int64_t> output_padding,
                          std::span<const std::int64_t> strides, const Padding& padding,
                          SourceLocation at) {
  require(padding.kind() != Padding::Kind::given, at, layer,
          "expected padding `valid` or `same` beside an output padding");
  for (std::size_t i = 0; i < strides.size(); ++i)
    require(output_padding[i] >= 0 && output_padding[i] < strides[i], at, layer,
            "expected an output padding of 0 or more and below the stride of ", strides[i],
            ", got ", output_padding[i]);
}

std::int64_t padded_extent(std::int64_t in, std::int64_t stride, std::int64_t kernel,
                           std::int64_t dilation, std::int64_t output_padding,
                           const Padding& padding, SourceLocation at) {
  const std::int64_t span = (kernel - 1) * dilation + 1;
  const std::int64_t cut = padding.kind() == Padding::Kind::same ? span / 2 : 0;
  const std::int64_t out = (in - 1) * stride + span - 2 * cut + output_padding;
  require(out > 0, at, "conv_transpose", "an extent of ", in, " with a kernel that spans ", span,
          ", a stride of ", stride, " and an output padding of ", output_padding,
          " gives no result; leave output_padding unset");
  return out;
}

}  // namespace lockstep::nn
