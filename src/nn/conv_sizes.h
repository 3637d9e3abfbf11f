// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/shape.h>
#include <lockstep/base/source_location.h>
#include <lockstep/ops/window.h>

#include <cstdint>
#include <vector>

namespace lockstep::nn {

inline std::vector<std::int64_t> extents_of(std::int64_t size) { return {size}; }
inline std::vector<std::int64_t> extents_of(Size2d size) { return {size.height, size.width}; }
inline std::vector<std::int64_t> extents_of(Size3d size) {
  return {size.depth, size.height, size.width};
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
          extents_of(options.kernel_size),
          extents_of(options.strides),
          extents_of(options.dilations)};
}

// [kernel.., in / groups, out]. Throws InvalidArgument "[<layer>] ..." for sizes that cannot be.
Shape kernel_shape(const char* layer, const ConvSizes& sizes, SourceLocation at);

// Throws InvalidArgument "[<layer>] ..." unless each is at least 0 and below its stride.
void check_output_padding(const char* layer, const std::vector<std::int64_t>& output_padding,
                          const std::vector<std::int64_t>& strides, const Padding& padding,
                          SourceLocation at);

// The extent of a transposed convolution's result, as in Keras. Throws InvalidArgument where it is
// none.
std::int64_t padded_extent(std::int64_t in, std::int64_t stride, std::int64_t kernel,
                           std::int64_t dilation, std::int64_t output_padding,
                           const Padding& padding, SourceLocation at);

}  // namespace lockstep::nn
