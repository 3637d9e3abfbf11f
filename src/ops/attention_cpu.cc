// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_cpu.h"

#include <lockstep/device/buffer.h>

#include <algorithm>
#include <cstddef>

#include "ops/attention_kernels.h"
#include "ops/gemm.h"
#include "ops/result.h"

namespace lockstep::cpu {
namespace {

const AttentionKernel<float>& kernel_of(float) { return attention_kernels().f32; }
const AttentionKernel<double>& kernel_of(double) { return attention_kernels().f64; }

constexpr std::int64_t kProductBytes = 256 * 1024;  // of the products that exist at a time

// The queries of some heads, and the keys that any of them sees.
struct Block {
  std::int64_t first_head, heads, first_query, queries, keys;
};

// Calls f(block) for all queries of all heads; of a head in order, and no head between.
template <class F>
void for_each_block(const Attention& a, std::size_t element, F&& f) {
  if (a.heads == 0 || a.queries == 0) return;
  const std::int64_t room =
      std::max<std::int64_t>(kProductBytes / static_cast<std::int64_t>(element), 1);
  const std::int64_t most = std::max<std::int64_t>(room / std::max<std::int64_t>(a.keys, 1), 16);
  const std::int64_t queries = std::min(a.queries, most);
  const std::int64_t heads =
      queries < a.queries ? 1 : std::clamp<std::int64_t>(most / queries, 1, a.heads);
  // Few numbers of keys, so that few primitives are compiled.
  const std::int64_t step = std::max(queries, (a.keys + 7) / 8);
  for (std::int64_t h = 0; h < a.heads; h += heads)
    for (std::int64_t q = 0; q < a.queries; q += queries) {
      const std::int64_t count = std::min(queries, a.queries - q);
      const std::int64_t seen = (q + count + step - 1) / step * step;
      f(Block{h, std::min(heads, a.heads - h), q, count,
              a.causal ? std::min(seen, a.keys) : a.keys});
    }
}

// Where the elements of a mask lie.
template <class T>
class Mask {
 public:
  Mask(const Attention& a, const Tensor& mask) : lead_(a.lead) {
    if (!mask.defined()) return;
    if (mask.dtype() == DType::boolean)
      visible_ = read<bool>(mask);
    else
      added_ = read<T>(mask);
    std::int64_t stride = 1;
    for (int back = 1; back <= mask.rank(); ++back) {
      const std::int64_t extent = mask.shape()[mask.rank() - back];
      const std::int64_t own = extent == 1 ? 0 : stride;
      stride *= extent;
      if (back == 1)
        col_ = own;
      else if (back == 2)
        row_ = own;
      else
        head_[lead_.rank() + 2 - back] = own;
    }
  }

  std::int64_t offset(std::int64_t head, std::int64_t query) const {
    std::int64_t at = query * row_;
    for (int axis = lead_.rank() - 1; axis >= 0; --axis) {
      at += head % lead_[axis] * head_[axis];
      head /= lead_[axis];
    }
    return at;
  }
  // The scores of the block's `head`-th head.
  Scores<T> scores(const Attention& a, const Block& block, std::int64_t head) const {
    const std::int64_t at = offset(block.first_head + head, block.first_query);
    return {.rows = block.queries,
            .cols = block.keys,
            .first_query = a.causal ? block.first_query : block.keys,
            .scale = static_cast<T>(a.scale),
            .visible = visible_ ? visible_ + at : nullptr,
            .added = added_ ? added_ + at : nullptr,
            .mask_row = row_,
            .mask_col = col_};
  }

 private:
  Shape lead_;
  const bool* visible_ = nullptr;
  const T* added_ = nullptr;
  std::int64_t row_ = 0, col_ = 0;
  std::int64_t head_[Shape::kMaxRank] = {};
};

template <class T>
class Blocks {
 public:
  Blocks(const Attention& a, Device device) : a_(a), device_(device) {}

  // c [queries, keys] = rows [queries, width] of each head times matrix [keys, width]'.
  void products(const Block& b, std::int64_t width, const T* rows, const T* matrix, T* c) const {
    compute({.batch = b.heads,
             .m = b.queries,
             .n = b.keys,
             .k = width,
             .transpose_b = true,
             .stride_a = a_.queries * width,
             .stride_b = a_.keys * width},
            dtype_of<T>, device_, rows + at_query(b, width), matrix + at_head(b, width), nullptr,
            c);
  }
  // rows [queries, width] of each head = p [queries, keys] times matrix [keys, width].
  void weighted(const Block& b, std::int64_t width, const T* p, const T* matrix, T* rows) const {
    compute({.batch = b.heads,
             .m = b.queries,
             .n = width,
             .k = b.keys,
             .stride_b = a_.keys * width,
             .stride_c = a_.queries * width},
            dtype_of<T>, device_, p, matrix + at_head(b, width), nullptr,
            rows + at_query(b, width));
  }
  // matrix [keys, width] of each head (+)= p [queries, keys]' times rows [queries, width].
  void gathered(const Block& b, std::int64_t width, const T* p, const T* rows, bool adds,
                T* matrix) const {
    compute({.batch = b.heads,
             .m = b.keys,
             .n = width,
             .k = b.queries,
             .transpose_a = true,
             .accumulate = adds,
             .stride_b = a_.queries * width,
             .stride_c = a_.keys * width},
            dtype_of<T>, device_, p, rows + at_query(b, width), nullptr,
            matrix + at_head(b, width));
  }

  std::int64_t at_query(const Block& b, std::int64_t width) const {
    return (b.first_head * a_.queries + b.first_query) * width;
  }
  std::int64_t at_head(const Block& b, std::int64_t width) const {
    return b.first_head * a_.keys * width;
  }

 private:
  const Attention& a_;
  Device device_;
};

template <class T>
std::int64_t most_products(const Attention& a) {
  std::int64_t most = 0;
  for_each_block(a, sizeof(T),
                 [&](const Block& b) { most = std::max(most, b.heads * b.queries * b.keys); });
  return most;
}

Buffer products_of(Device device, std::int64_t count, std::size_t element) {
  return Buffer::allocate(device, static_cast<std::size_t>(count) * element);
}

template <class T>
void forward(const Attention& a, const T* q, const T* k, const T* v, const Mask<T>& mask,
             T* log_sums, T* y, Device device) {
  const Blocks<T> blocks(a, device);
  const Buffer memory = products_of(device, most_products<T>(a), sizeof(T));
  T* const products = static_cast<T*>(memory.data());
  for_each_block(a, sizeof(T), [&](const Block& b) {
    blocks.products(b, a.dim, q, k, products);
    for (std::int64_t h = 0; h < b.heads; ++h)
      kernel_of(T{}).probabilities(mask.scores(a, b, h), products + h * b.queries * b.keys,
                                   log_sums + blocks.at_query(b, 1) + h * a.queries);
    blocks.weighted(b, a.out, products, v, y);
  });
}

// With p the probabilities: dv = p' dy, ds = p (dy v' - sum(dy y)), dq = scale ds k, dk = scale ds' q.
template <class T>
void backward(const Attention& a, const T* dy, const T* q, const T* k, const T* v,
              const Mask<T>& mask, const T* log_sums, const T* y, T* dq, T* dk, T* dv, T* dmask,
              Device device) {
  const Blocks<T> blocks(a, device);
  const std::int64_t most = most_products<T>(a);
  const Buffer memory = products_of(device, 2 * most, sizeof(T));
  T *const p = static_cast<T*>(memory.data()), *const dp = p + most;
  if (dk) std::fill_n(dk, a.heads * a.keys * a.dim, T(0));
  if (dv) std::fill_n(dv, a.heads * a.keys * a.out, T(0));
  for_each_block(a, sizeof(T), [&](const Block& b) {
    blocks.products(b, a.dim, q, k, p);
    blocks.products(b, a.out, dy, v, dp);
    for (std::int64_t h = 0; h < b.heads; ++h) {
      const std::int64_t rows = blocks.at_query(b, 1) + h * a.queries;
      const std::int64_t at = h * b.queries * b.keys;
      kernel_of(T{}).gradient(
          mask.scores(a, b, h), log_sums + rows, dy + rows * a.out, y + rows * a.out, a.out, p + at,
          dp + at, dmask ? dmask + mask.offset(b.first_head + h, b.first_query) : nullptr);
    }
    // A causal block leaves the last keys alone.
    const bool adds = a.causal || b.first_query > 0;
    if (dv) blocks.gathered(b, a.out, p, dy, adds, dv);
    if (dk) blocks.gathered(b, a.dim, dp, q, adds, dk);
    if (dq) blocks.weighted(b, a.dim, dp, k, dq);
  });
}

// f(T{}) with the type of the elements.
template <class F>
void visit(DType dtype, F&& f) {
  if (dtype == DType::f64)
    f(double{});
  else
    f(float{});
}

template <class T>
T* write_or_null(Tensor& x) {
  return x.defined() ? write<T>(x) : nullptr;
}

}  // namespace

void attend(const Attention& a, const Tensor& q, const Tensor& k, const Tensor& v,
            const Tensor& mask, Tensor& log_sums, Tensor& y) {
  visit(q.dtype(), [&]<class T>(T) {
    forward(a, read<T>(q), read<T>(k), read<T>(v), Mask<T>(a, mask), write<T>(log_sums),
            write<T>(y), y.device());
  });
}

void attend_gradient(const Attention& a, const Tensor& dy, const Tensor& q, const Tensor& k,
                     const Tensor& v, const Tensor& mask, const Tensor& log_sums, const Tensor& y,
                     AttentionGradients& to) {
  visit(q.dtype(), [&]<class T>(T) {
    T* const dmask = write_or_null<T>(to.mask);
    if (dmask) std::fill_n(dmask, to.mask.num_elements(), T(0));
    backward(a, read<T>(dy), read<T>(q), read<T>(k), read<T>(v), Mask<T>(a, mask),
             read<T>(log_sums), read<T>(y), write_or_null<T>(to.q), write_or_null<T>(to.k),
             write_or_null<T>(to.v), dmask, y.device());
  });
}

}  // namespace lockstep::cpu
