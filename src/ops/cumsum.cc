// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cumsum.h>

#include <lockstep/ops/cast.h>
#include <lockstep/ops/recorder.h>

#include <algorithm>
#include <type_traits>

#include "ops/cuda/kernels.h"
#include "ops/half_kernels.h"
#include "ops/launch.h"
#include "ops/result.h"
#include "ops/traced.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

constexpr const char* kOp = "cumsum";
constexpr std::int64_t kTile = 512;  // columns at a time, whose sums stay in the first cache

// [outer, n, inner], summed along n.
struct Extents {
  std::int64_t outer = 1, n, inner = 1;

  Extents(const Shape& shape, int axis) : n(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// Floats are added up in double; integers as unsigned, which wraps around.
template <class T>
struct Accumulator {
  using type = double;
};
template <class T>
  requires std::is_integral_v<T>
struct Accumulator<T> {
  using type = std::make_unsigned_t<T>;
};

// One line, whose elements lie `step` apart.
template <class T>
void add_up_line(const T* x, T* y, std::int64_t n, std::int64_t step, bool exclusive) {
  typename Accumulator<T>::type sum = 0;
  for (std::int64_t i = 0; i < n; ++i, x += step, y += step) {
    const auto before = sum;
    sum += static_cast<decltype(sum)>(*x);
    *y = static_cast<T>(exclusive ? before : sum);
  }
}

// `width` neighbouring lines; their elements lie `step` apart.
template <class T>
void add_up_lines(const T* __restrict x, T* __restrict y, std::int64_t n, std::int64_t step,
                  std::int64_t width, bool exclusive) {
  using Sum = typename Accumulator<T>::type;
  Sum sums[kTile] = {};
  for (std::int64_t i = 0; i < n; ++i, x += step, y += step) {
    if (exclusive)
      for (std::int64_t j = 0; j < width; ++j) {
        y[j] = static_cast<T>(sums[j]);
        sums[j] += static_cast<Sum>(x[j]);
      }
    else
      for (std::int64_t j = 0; j < width; ++j) {
        sums[j] += static_cast<Sum>(x[j]);
        y[j] = static_cast<T>(sums[j]);
      }
  }
}

template <class T>
void cumsum_cpu(const T* x, T* y, const Extents& e, const CumsumOptions& options) {
  const std::int64_t last = options.reverse ? (e.n - 1) * e.inner : 0;
  const std::int64_t step = options.reverse ? -e.inner : e.inner;
  for (std::int64_t o = 0; o < e.outer; ++o)
    for (std::int64_t j = 0; j < e.inner; j += kTile) {
      const std::int64_t begin = o * e.n * e.inner + last + j;
      if (e.inner == 1)
        add_up_line(x + begin, y + begin, e.n, step, options.exclusive);
      else
        add_up_lines(x + begin, y + begin, e.n, step, std::min(kTile, e.inner - j),
                     options.exclusive);
    }
}

Tensor forward(const Tensor& x, const CumsumOptions& options) {
  const RecorderScope unrecorded(nullptr);
  const Device device = common_device(kOp, {&x}, {});
  if (traced::on(device))
    return traced::cumsum(x, options.axis, options.exclusive, options.reverse);
  if (is_half(x.dtype())) return cast(forward(cast(x, DType::f32), options), x.dtype());
  Tensor y = make_result(device, x.dtype(), x.shape());
  if (x.num_elements() == 0) return y;
  const Extents extents(x.shape(), options.axis);
  launch(
      kOp, device, writes(y), reads(x),
      [extents, options](Tensor& to, const Tensor& from) {
        visit_dtype(from.dtype(), [&]<class T>(T) {
          if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
            cumsum_cpu(read<T>(from), write<T>(to), extents, options);
        });
      },
      [extents, options](Tensor& to, const Tensor& from) {
        cuda::cumsum(from.dtype(), from.raw_data(), write<void>(to), extents.outer, extents.n,
                     extents.inner, options.exclusive, options.reverse, to.device());
      });
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& x, const CumsumOptions& options, SourceLocation at) {
  require_defined(kOp, "x", x, at);
  require_dtype(is_floating(x.dtype()) || x.dtype() == DType::i32 || x.dtype() == DType::i64, kOp,
                x, "a floating dtype, i32 or i64 (cast others first)", at);
  CumsumOptions own = options;
  own.axis = checked_axis(kOp, options.axis, x.shape(), at);
  Tensor y = forward(x, own);
  if (is_floating(x.dtype()))
    record(kOp, {&x}, y, [own](const Tensor& dy, GradientSink& sink) {
      CumsumOptions opposite = own;
      opposite.reverse = !own.reverse;
      if (sink.wants(0)) sink.put(0, [&] { return cumsum(dy, opposite); });
    });
  return y;
}

}  // namespace lockstep
