// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>
#include <lockstep/base/source_location.h>
#include <lockstep/ops/window.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::nn {

// The name of a layer along `axes` axes: the one given, or <before><axes>d<after>.
std::string name_or(const std::string& given, const char* before, int axes, const char* after = "");
// <before><axes>D<after>, for messages.
std::string class_name(const char* before, int axes, const char* after = "");

inline std::array<std::int64_t, 1> extents_of(std::int64_t size) { return {size}; }
inline std::array<std::int64_t, 2> extents_of(Size2d size) { return {size.height, size.width}; }
inline std::array<std::int64_t, 3> extents_of(Size3d size) {
  return {size.depth, size.height, size.width};
}
inline std::int64_t size_of(std::array<std::int64_t, 1> extents) { return extents[0]; }
inline Size2d size_of(std::array<std::int64_t, 2> extents) { return {extents[0], extents[1]}; }
inline Size3d size_of(std::array<std::int64_t, 3> extents) {
  return {extents[0], extents[1], extents[2]};
}

template <class Size>
std::vector<std::int64_t> listed(Size size) {
  const auto extents = extents_of(size);
  return {extents.begin(), extents.end()};
}

// What the layers of a convolution over any number of axes check before they make variables.
struct ConvSizes {
  std::int64_t in, out, groups;
  std::vector<std::int64_t> kernel, strides, dilations;
};

template <class Options>
ConvSizes conv_sizes(std::int64_t in, std::int64_t out, const Options& options) {
  return {in,
          out,
          options.groups,
          listed(options.kernel_size),
          listed(options.strides),
          listed(options.dilations)};
}

// [kernel.., in / groups, out]. Throws InvalidArgument "[<layer>] ..." for sizes that cannot be.
Shape kernel_shape(const std::string& layer, const ConvSizes& sizes, SourceLocation at);

// Throws InvalidArgument "[<layer>] ..." unless each is at least 0 and below its stride.
void check_output_padding(const std::string& layer, std::span<const std::int64_t> output_padding,
                          std::span<const std::int64_t> strides, const Padding& padding,
                          SourceLocation at);

// The extent of a transposed convolution's result, as in Keras. Throws InvalidArgument where it is
// none.
std::int64_t padded_extent(std::int64_t in, std::int64_t stride, std::int64_t kernel,
                           std::int64_t dilation, std::int64_t output_padding,
                           const Padding& padding, SourceLocation at);

}  // namespace lockstep::nn
