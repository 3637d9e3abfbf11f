// SPDX-License-Identifier: Apache-2.0
#include "ops/onednn.h"

#if LOCKSTEP_WITH_ONEDNN

#include <lockstep/base/shape.h>
#include <lockstep/ops/threads.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <initializer_list>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "ops/intra_op_scope.h"
#include "ops/onednn_primitive.h"

namespace lockstep::onednn {
namespace {

struct Descriptions {
  memory::desc x, w, plain_w, bias, y;
  Dims strides, dilations, pad_begin, pad_end;
};

// What is along depth, height and width, or without a depth along the latter two. oneDNN has an axis of
// width alone, too, but no better kernels for it.
Dims spatial(const Convolution& c, std::int64_t depth, std::int64_t height, std::int64_t width) {
  return c.axes == 3 ? Dims{depth, height, width} : Dims{height, width};
}
Dims with_spatial(const Convolution& c, Dims first, std::int64_t depth, std::int64_t height,
                  std::int64_t width) {
  for (const std::int64_t extent : spatial(c, depth, height, width)) first.push_back(extent);
  return first;
}

// `w` leaves the format to oneDNN, `plain_w` is [D]HWIO.
Descriptions descriptions(const Convolution& c, DType dtype) {
  const auto type = type_of(dtype);
  const std::int64_t in = c.in_c / c.groups;
  const std::int64_t out = c.out_c / c.groups;
  const std::int64_t tap = in * c.out_c;
  Dims w = with_spatial(c, {out, in}, c.kernel_d, c.kernel_h, c.kernel_w);
  Dims w_strides =
      with_spatial(c, {1, c.out_c}, c.kernel_h * c.kernel_w * tap, c.kernel_w * tap, tap);
  const auto channels_last = c.axes == 3 ? memory::format_tag::ndhwc : memory::format_tag::nhwc;
  if (c.groups > 1) {
    w.insert(w.begin(), c.groups);
    w_strides.insert(w_strides.begin(), out);
  }
  return {
      .x = {with_spatial(c, {c.batch, c.in_c}, c.in_d, c.in_h, c.in_w), type, channels_last},
      .w = {w, type, memory::format_tag::any},
      .plain_w = {w, type, w_strides},
      .bias = {{c.out_c}, type, memory::format_tag::x},
      .y = {with_spatial(c, {c.batch, c.out_c}, c.out_d, c.out_h, c.out_w), type, channels_last},
      .strides = spatial(c, c.stride_d, c.stride_h, c.stride_w),
      .dilations = spatial(c, c.dilation_d - 1, c.dilation_h - 1, c.dilation_w - 1),
      .pad_begin = spatial(c, c.pad_front, c.pad_top, c.pad_left),
      .pad_end = spatial(c, c.pad_back, c.pad_bottom, c.pad_right)};
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

auto describe_forward(const Descriptions& d, bool bias, bool relu) {
  constexpr auto kTraining = dnnl::prop_kind::forward_training;
  if (bias)
    return describe<dnnl::convolution_forward>(attributes(relu), kTraining, kDirect, d.x, d.w,
                                               d.bias, d.y, d.strides, d.dilations, d.pad_begin,
                                               d.pad_end);
  return describe<dnnl::convolution_forward>(attributes(relu), kTraining, kDirect, d.x, d.w, d.y,
                                             d.strides, d.dilations, d.pad_begin, d.pad_end);
}

Entry with_reorder(Prepared primitive, const memory::desc& from, const memory::desc& to,
                   const memory::desc& chosen) {
  Entry entry{std::move(primitive), {}, chosen.get_size()};
  if (from == to) return entry;
  const dnnl::reorder::primitive_desc description(engine(), from, engine(), to, attributes(false));
  entry.reorder =
      Prepared(dnnl::reorder(description), description, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  return entry;
}

Entry make_forward(const Convolution& conv, DType dtype, bool bias, bool relu) {
  const Descriptions d = descriptions(conv, dtype);
  const auto description = describe_forward(d, bias, relu);
  require_fast(description);
  const auto chosen = description.weights_desc();
  const dnnl::convolution_forward primitive(description);
  if (!bias)
    return with_reorder({primitive,
                         description,
                         {{DNNL_ARG_SRC, d.x}, {DNNL_ARG_WEIGHTS, chosen}, {DNNL_ARG_DST, d.y}}},
                        d.plain_w, chosen, chosen);
  return with_reorder({primitive,
                       description,
                       {{DNNL_ARG_SRC, d.x},
                        {DNNL_ARG_WEIGHTS, chosen},
                        {DNNL_ARG_BIAS, d.bias},
                        {DNNL_ARG_DST, d.y}}},
                      d.plain_w, chosen, chosen);
}

Entry make_input_gradient(const Convolution& conv, DType dtype) {
  const Descriptions d = descriptions(conv, dtype);
  const auto description = describe_gradient<dnnl::convolution_backward_data>(
      describe_forward(d, false, false), kDirect, d.x, d.w, d.y, d.strides, d.dilations,
      d.pad_begin, d.pad_end);
  require_fast(description);
  const auto chosen = description.weights_desc();
  return with_reorder(
      {dnnl::convolution_backward_data(description),
       description,
       {{DNNL_ARG_DIFF_DST, d.y}, {DNNL_ARG_WEIGHTS, chosen}, {DNNL_ARG_DIFF_SRC, d.x}}},
      d.plain_w, chosen, chosen);
}

Entry make_weight_gradient(const Convolution& conv, DType dtype) {
  const Descriptions d = descriptions(conv, dtype);
  const auto description = describe_gradient<dnnl::convolution_backward_weights>(
      describe_forward(d, false, false), kDirect, d.x, d.w, d.y, d.strides, d.dilations,
      d.pad_begin, d.pad_end);
  require_fast(description);
  const auto chosen = description.diff_weights_desc();
  return with_reorder(
      {dnnl::convolution_backward_weights(description),
       description,
       {{DNNL_ARG_SRC, d.x}, {DNNL_ARG_DIFF_DST, d.y}, {DNNL_ARG_DIFF_WEIGHTS, chosen}}},
      chosen, d.plain_w, chosen);
}

static_assert(sizeof(Convolution) <= 28 * sizeof(std::int64_t));

Key key_of(Kind kind, const Convolution& conv, DType dtype, bool bias, bool relu) {
  using Words = std::array<std::int64_t, sizeof(Convolution) / sizeof(std::int64_t)>;
  Key key{static_cast<std::int64_t>(kind), static_cast<std::int64_t>(dtype), bias + 2 * relu,
          intra_op_threads()};
  const Words words = std::bit_cast<Words>(conv);
  std::copy(words.begin(), words.end(), key.begin() + 4);
  return key;
}

std::string text_of(const Convolution& c, DType dtype) {
  const auto shape = [](Dims dims, std::initializer_list<std::int64_t> last) {
    dims.insert(dims.end(), last);
    return Shape(std::span<const std::int64_t>(dims)).to_string();
  };
  const auto list = [](const Dims& dims) {
    std::string text;
    for (const std::int64_t each : dims) text += (text.empty() ? "" : "x") + std::to_string(each);
    return text;
  };
  std::ostringstream out;
  out << name_of(dtype) << " images "
      << shape(with_spatial(c, {c.batch}, c.in_d, c.in_h, c.in_w), {c.in_c}) << ", kernels "
      << shape(spatial(c, c.kernel_d, c.kernel_h, c.kernel_w), {c.in_c / c.groups, c.out_c})
      << ", result " << shape(with_spatial(c, {c.batch}, c.out_d, c.out_h, c.out_w), {c.out_c})
      << ", strides " << list(spatial(c, c.stride_d, c.stride_h, c.stride_w)) << ", dilations "
      << list(spatial(c, c.dilation_d, c.dilation_h, c.dilation_w)) << ", padding "
      << list(spatial(c, c.pad_front, c.pad_top, c.pad_left)) << " and "
      << list(spatial(c, c.pad_back, c.pad_bottom, c.pad_right)) << ", groups " << c.groups;
  return std::move(out).str();
}

// oneDNN walks over padding and over the gaps between taps, however far beyond the image they reach.
bool reaches_far(const Convolution& c) {
  constexpr std::int64_t kFar = 1024;
  return std::max({c.stride_d, c.stride_h, c.stride_w, c.dilation_d, c.dilation_h, c.dilation_w,
                   c.pad_front, c.pad_back, c.pad_top, c.pad_bottom, c.pad_left, c.pad_right}) >
         kFar;
}

// f(the entry for this convolution), unless oneDNN has no kernel for it.
template <class F>
bool with_entry(const char* op, Kind kind, const Convolution& conv, DType dtype, bool bias,
                bool relu, const std::function<Entry()>& make, F&& f) {
  if (!has(dtype) || reaches_far(conv)) return false;
  const auto describe = [&] { return text_of(conv, dtype); };
  return explained(op, describe, [&] {
    const IntraOpScope threads;
    Entry& entry = find(key_of(kind, conv, dtype, bias, relu), make);
    if (entry.primitive) f(entry);
    return static_cast<bool>(entry.primitive);
  });
}

// `w` in the format that the entry's primitive wants, held by `storage` where it is not w itself.
const void* reordered(Entry& entry, Device device, const void* w, Buffer& storage) {
  if (!entry.reorder) return w;
  storage = Buffer::allocate(device, entry.reordered_bytes);
  entry.reorder.run(device, {w, storage.data()});
  return storage.data();
}

}  // namespace

bool convolve(const Convolution& conv, DType dtype, Device device, const void* x, const void* w,
              const void* bias, bool relu, void* y) {
  const auto make = [&] { return make_forward(conv, dtype, bias != nullptr, relu); };
  return with_entry(names_of(conv).forward, Kind::forward, conv, dtype, bias != nullptr, relu, make,
                    [&](Entry& entry) {
                      Buffer storage;
                      const void* weights = reordered(entry, device, w, storage);
                      if (bias)
                        entry.primitive.run(device, {x, weights, bias, y});
                      else
                        entry.primitive.run(device, {x, weights, y});
                    });
}

bool convolve_input_gradient(const Convolution& conv, DType dtype, Device device, const void* dy,
                             const void* w, void* dx) {
  const auto make = [&] { return make_input_gradient(conv, dtype); };
  return with_entry(names_of(conv).input_gradient, Kind::input_gradient, conv, dtype, false, false,
                    make, [&](Entry& entry) {
                      Buffer storage;
                      entry.primitive.run(device, {dy, reordered(entry, device, w, storage), dx});
                    });
}

bool convolve_weight_gradient(const Convolution& conv, DType dtype, Device device, const void* x,
                              const void* dy, void* dw) {
  const auto make = [&] { return make_weight_gradient(conv, dtype); };
  return with_entry(names_of(conv).weight_gradient, Kind::weight_gradient, conv, dtype, false,
                    false, make, [&](Entry& entry) {
                      if (!entry.reorder) return entry.primitive.run(device, {x, dy, dw});
                      const Buffer chosen = Buffer::allocate(device, entry.reordered_bytes);
                      entry.primitive.run(device, {x, dy, chosen.data()});
                      entry.reorder.run(device, {chosen.data(), dw});
                    });
}

}  // namespace lockstep::onednn

#else

namespace lockstep::onednn {

bool convolve(const Convolution&, DType, Device, const void*, const void*, const void*, bool,
              void*) {
  return false;
}
bool convolve_input_gradient(const Convolution&, DType, Device, const void*, const void*, void*) {
  return false;
}
bool convolve_weight_gradient(const Convolution&, DType, Device, const void*, const void*, void*) {
  return false;
}

}  // namespace lockstep::onednn

#endif
