// SPDX-License-Identifier: Apache-2.0
#include "ops/onednn.h"

#if LOCKSTEP_WITH_ONEDNN

#include <lockstep/base/check.h>
#include <lockstep/device/buffer.h>
#include <lockstep/ops/threads.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ops/intra_op_scope.h"
#include "ops/isa.h"

namespace lockstep::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr std::size_t kMaxKept = 512;  // compiled primitives per thread

// Never destroyed: primitives of threads that end after main refer to it.
dnnl::engine& engine() {
  static dnnl::engine* const cpu = [] {
    // What is asked of our own kernels holds for oneDNN's. It accepts that before its first use
    // only.
    if (isa() == Isa::v2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
    if (isa() == Isa::v3) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *cpu;
}

dnnl_stream_t stream() {
  thread_local dnnl::stream own(engine());
  return own.get();
}

[[noreturn]] void rethrow(dnnl_status_t status, const char* what) {
  if (status == dnnl_out_of_memory)
    throw ResourceExhausted(message("oneDNN", "out of memory: ", what), SourceLocation{});
  throw InternalError(message("oneDNN", what, " (status ", static_cast<int>(status), ")"));
}

// One compiled primitive with the memory objects that it is called with. A default-constructed one
// stands for a primitive that oneDNN lacks.
class Prepared {
 public:
  using Arguments = std::initializer_list<std::pair<int, memory::desc>>;

  Prepared() = default;
  template <class Description>
  Prepared(const dnnl::primitive& primitive, const Description& description, Arguments arguments)
      : primitive_(primitive), scratch_bytes_(description.scratchpad_desc().get_size()) {
    for (const auto& [name, desc] : arguments) add(name, desc);
    if (scratch_bytes_) add(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  }

  explicit operator bool() const { return count_ > 0; }

  // `data` in the order of the constructor's arguments.
  void run(Device device, std::initializer_list<const void*> data) {
    int i = 0;
    for (const void* pointer : data) point(i++, const_cast<void*>(pointer));
    Buffer scratch;
    if (scratch_bytes_) {
      scratch = Buffer::allocate(device, scratch_bytes_);
      point(i++, scratch.data());
    }
    ensure(i == count_, "oneDNN", "expected ", count_, " arguments, got ", i);
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream(), count_, arguments_.data());
    if (status != dnnl_success) [[unlikely]]
      rethrow(status, "executing a primitive");
  }

 private:
  void add(int name, const memory::desc& desc) {
    owners_.push_back(memory(desc, engine(), DNNL_MEMORY_NONE));
    arguments_[static_cast<std::size_t>(count_++)] = {name, owners_.back().get()};
  }
  void point(int argument, void* data) {
    dnnl_memory_set_data_handle(arguments_[static_cast<std::size_t>(argument)].memory, data);
  }

  dnnl::primitive primitive_;
  std::size_t scratch_bytes_ = 0;
  std::vector<memory> owners_;
  std::array<dnnl_exec_arg_t, 6> arguments_{};
  int count_ = 0;
};

// What is kept per problem: the primitive, and for convolutions the conversion of weights between
// HWIO and the format that the primitive chose (absent where that is HWIO itself).
struct Entry {
  Prepared primitive;
  Prepared reorder;
  std::size_t reordered_bytes = 0;
};

enum class Kind : std::int64_t { gemm, forward, input_gradient, weight_gradient };

using Key = std::array<std::int64_t, 24>;
static_assert(sizeof(Convolution) <= 20 * sizeof(std::int64_t));

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (const std::int64_t word : key)
      hash = (std::rotl(hash, 5) ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  }
};

// The thread's entry for `key`, made at its first use.
template <class Make>
Entry& find(const Key& key, Make&& make) {
  thread_local std::unordered_map<Key, Entry, KeyHash> kept;
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  Entry entry;
  try {
    entry = make();
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) rethrow(error.status, error.what());
  }
  if (kept.size() >= kMaxKept) kept.clear();
  return kept.emplace(key, std::move(entry)).first->second;
}

// Whether oneDNN may have kernels for `dtype`, and its name for it.
bool has(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }
memory::data_type type_of(DType dtype) {
  if (dtype == DType::bf16) return memory::data_type::bf16;
  return dtype == DType::f16 ? memory::data_type::f16 : memory::data_type::f32;
}

dnnl::primitive_attr attributes(bool relu, bool accumulate = false) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops post_ops;
  if (accumulate) post_ops.append_sum();
  if (relu) {
#if DNNL_VERSION_MAJOR >= 3
    post_ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
    post_ops.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  }
  if (relu || accumulate) attributes.set_post_ops(post_ops);
  return attributes;
}

// The description of a primitive, the step in which versions 2 and 3 differ.
template <class Primitive, class... Arguments>
auto describe(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), arguments..., attributes);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes,
                                            engine());
#endif
}
// The same for the gradient of a primitive, which is chosen to go with `forward`.
template <class Primitive, class Forward, class... Arguments>
auto describe_gradient(const Forward& forward, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), arguments..., forward, attributes(false));
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...),
                                            attributes(false), engine(), forward);
#endif
}

// oneDNN's reference implementations are loops without vectors; ours are better.
template <class Description>
void require_fast(const Description& description) {
  if (std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos)
    throw dnnl::error(dnnl_unimplemented, "only a reference implementation");
}

// ---- matrix products

Entry make_gemm(const Gemm& gemm, DType dtype) {
  // Row r of a matrix starts at r * row, unless it is transposed.
  const auto matrix = [&](std::int64_t rows, std::int64_t cols, bool transpose, std::int64_t row,
                          std::int64_t stride) {
    Dims dims{rows, cols};
    Dims strides = transpose ? Dims{1, row} : Dims{row, 1};
    if (gemm.batch > 1) {
      dims.insert(dims.begin(), stride ? gemm.batch : 1);
      strides.insert(strides.begin(), stride ? stride : rows * cols);
    }
    return memory::desc(dims, type_of(dtype), strides);
  };
  const auto a = matrix(gemm.m, gemm.k, gemm.transpose_a, gemm.row_a, gemm.stride_a);
  const auto b = matrix(gemm.k, gemm.n, gemm.transpose_b, gemm.row_b, gemm.stride_b);
  const auto bias = matrix(1, gemm.n, false, gemm.n, 0);
  const auto c = matrix(gemm.m, gemm.n, false, gemm.row_c, gemm.stride_c);
  const auto attr = attributes(gemm.relu, gemm.accumulate);
  const auto description = gemm.bias ? describe<dnnl::matmul>(attr, a, b, bias, c)
                                     : describe<dnnl::matmul>(attr, a, b, c);
  require_fast(description);
  const dnnl::matmul primitive(description);
  Entry entry;
  if (gemm.bias)
    entry.primitive = {
        primitive,
        description,
        {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, c}}};
  else
    entry.primitive = {
        primitive, description, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}};
  return entry;
}

// ---- convolutions

struct Descriptions {
  memory::desc x, w, plain_w, bias, y;
  Dims strides, dilations, pad_begin, pad_end;
};

// `w` leaves the format to oneDNN, `plain_w` is HWIO.
Descriptions descriptions(const Convolution& c, DType dtype) {
  const auto type = type_of(dtype);
  const std::int64_t in = c.in_c / c.groups;
  const std::int64_t out = c.out_c / c.groups;
  Dims w{out, in, c.kernel_h, c.kernel_w};
  Dims w_strides{1, c.out_c, c.kernel_w * in * c.out_c, in * c.out_c};
  if (c.groups > 1) {
    w.insert(w.begin(), c.groups);
    w_strides.insert(w_strides.begin(), out);
  }
  return {.x = {{c.batch, c.in_c, c.in_h, c.in_w}, type, memory::format_tag::nhwc},
          .w = {w, type, memory::format_tag::any},
          .plain_w = {w, type, w_strides},
          .bias = {{c.out_c}, type, memory::format_tag::x},
          .y = {{c.batch, c.out_c, c.out_h, c.out_w}, type, memory::format_tag::nhwc},
          .strides = {c.stride_h, c.stride_w},
          .dilations = {c.dilation_h - 1, c.dilation_w - 1},
          .pad_begin = {c.pad_top, c.pad_left},
          .pad_end = {c.pad_bottom, c.pad_right}};
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

Key key_of(Kind kind, const Convolution& conv, DType dtype, bool bias, bool relu) {
  using Words = std::array<std::int64_t, sizeof(Convolution) / sizeof(std::int64_t)>;
  Key key{static_cast<std::int64_t>(kind), static_cast<std::int64_t>(dtype), bias + 2 * relu,
          intra_op_threads()};
  const Words words = std::bit_cast<Words>(conv);
  std::copy(words.begin(), words.end(), key.begin() + 4);
  return key;
}

// `w` in the format that the entry's primitive wants, held by `storage` where it is not w itself.
const void* reordered(Entry& entry, Device device, const void* w, Buffer& storage) {
  if (!entry.reorder) return w;
  storage = Buffer::allocate(device, entry.reordered_bytes);
  entry.reorder.run(device, {w, storage.data()});
  return storage.data();
}

}  // namespace

bool compute(const Gemm& gemm, DType dtype, Device device, const void* a, const void* b,
             const void* bias, void* c) {
  if (!has(dtype)) return false;
  const std::int64_t flags = gemm.transpose_a + 2 * gemm.transpose_b + 4 * gemm.bias +
                             8 * gemm.relu + 16 * gemm.accumulate;
  const Key key{static_cast<std::int64_t>(Kind::gemm),
                static_cast<std::int64_t>(dtype),
                flags,
                intra_op_threads(),
                gemm.batch,
                gemm.m,
                gemm.n,
                gemm.k,
                gemm.row_a,
                gemm.row_b,
                gemm.row_c,
                gemm.stride_a,
                gemm.stride_b,
                gemm.stride_c};
  const IntraOpScope threads;
  Entry& entry = find(key, [&] { return make_gemm(gemm, dtype); });
  if (!entry.primitive) return false;
  if (gemm.bias)
    entry.primitive.run(device, {a, b, bias, c});
  else
    entry.primitive.run(device, {a, b, c});
  return true;
}

bool convolve(const Convolution& conv, DType dtype, Device device, const void* x, const void* w,
              const void* bias, bool relu, void* y) {
  if (!has(dtype)) return false;
  const IntraOpScope threads;
  Entry& entry = find(key_of(Kind::forward, conv, dtype, bias != nullptr, relu),
                      [&] { return make_forward(conv, dtype, bias != nullptr, relu); });
  if (!entry.primitive) return false;
  Buffer storage;
  const void* weights = reordered(entry, device, w, storage);
  if (bias)
    entry.primitive.run(device, {x, weights, bias, y});
  else
    entry.primitive.run(device, {x, weights, y});
  return true;
}

bool convolve_input_gradient(const Convolution& conv, DType dtype, Device device, const void* dy,
                             const void* w, void* dx) {
  if (!has(dtype)) return false;
  const IntraOpScope threads;
  Entry& entry = find(key_of(Kind::input_gradient, conv, dtype, false, false),
                      [&] { return make_input_gradient(conv, dtype); });
  if (!entry.primitive) return false;
  Buffer storage;
  entry.primitive.run(device, {dy, reordered(entry, device, w, storage), dx});
  return true;
}

bool convolve_weight_gradient(const Convolution& conv, DType dtype, Device device, const void* x,
                              const void* dy, void* dw) {
  if (!has(dtype)) return false;
  const IntraOpScope threads;
  Entry& entry = find(key_of(Kind::weight_gradient, conv, dtype, false, false),
                      [&] { return make_weight_gradient(conv, dtype); });
  if (!entry.primitive) return false;
  if (!entry.reorder) {
    entry.primitive.run(device, {x, dy, dw});
    return true;
  }
  const Buffer chosen = Buffer::allocate(device, entry.reordered_bytes);
  entry.primitive.run(device, {x, dy, chosen.data()});
  entry.reorder.run(device, {chosen.data(), dw});
  return true;
}

}  // namespace lockstep::onednn

#else

namespace lockstep::onednn {

bool compute(const Gemm&, DType, Device, const void*, const void*, const void*, void*) {
  return false;
}
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
