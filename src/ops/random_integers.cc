// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/random.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/random_draw.h"
#include "ops/reduce_kernels.h"
#include "ops/result.h"
#include "ops/traced.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

// Sorts random keys: digit by digit, the lower first, by as many of their upper bits as make most of
// them distinct, then by insertion.
void sort_random(std::uint64_t* keys, std::int64_t n) {
  constexpr int kDigit = 11;
  const int digits = (std::bit_width(static_cast<std::uint64_t>(n)) + kDigit - 1) / kDigit;
  std::vector<std::uint64_t> moved(static_cast<std::size_t>(n));
  for (int d = digits; d > 0; --d) {
    const int shift = 64 - d * kDigit;
    const auto digit = [shift](std::uint64_t key) { return key >> shift & ((1u << kDigit) - 1); };
    std::array<std::int64_t, 1u << kDigit> begin{};
    for (std::int64_t i = 0; i < n; ++i) ++begin[digit(keys[i])];
    std::exclusive_scan(begin.begin(), begin.end(), begin.begin(), std::int64_t{0});
    for (std::int64_t i = 0; i < n; ++i)
      moved[static_cast<std::size_t>(begin[digit(keys[i])]++)] = keys[i];
    std::copy(moved.begin(), moved.end(), keys);
  }
  for (std::int64_t i = 1; i < n; ++i) {
    const std::uint64_t key = keys[i];
    std::int64_t place = i;
    for (; place > 0 && keys[place - 1] > key; --place) keys[place] = keys[place - 1];
    keys[place] = key;
  }
}

// bits range / 2^64: each number of the range is as likely, but for one part in 2^64 / range.
std::uint64_t scaled(std::uint64_t bits, std::uint64_t range) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits} * range) >> 64);
}

void require_bounds(std::int64_t low, std::int64_t high, DType dtype, SourceLocation at) {
  require(is_integer(dtype), at, "uniform_int", "expected an integer dtype, got ", name_of(dtype));
  require(low < high, at, "uniform_int", "expected low < high, got ", low, " and ", high);
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>)
      require(low >= std::numeric_limits<T>::min() && high - 1 <= std::numeric_limits<T>::max(), at,
              "uniform_int", "expected bounds that ", name_of(dtype), " holds, got ", low, " and ",
              high);
  });
}

// Where the random numbers of an op on x are drawn: a traced step draws in the trace.
bool is_traced(const Tensor& x) { return traced::on(current_device()) || traced::on(x.device()); }

// The class of each of `samples` draws from every row of logits, those of f32 and on the host: the
// largest of logits + noise, or the first NaN.
void pick_classes(const Tensor& logits, std::int64_t samples, Tensor& y) {
  const std::int64_t classes = logits.dim(1);
  const auto* const x = read<float>(logits);
  auto* const to = write<std::int64_t>(y);
  const std::int64_t n = y.num_elements() * classes;
  std::int64_t place = 0, column = 0;  // of the next element: a result, a class
  float best = 0;
  in_chunks<float>(draw(n), n, 4, random_kernels().gumbel,
                   [&](const float* noise, std::int64_t, std::int64_t count) {
                     for (std::int64_t k = 0; k < count;) {
                       const std::int64_t part = std::min(count - k, classes - column);
                       const float* const row = x + place / samples * classes + column;
                       float scores[4 * kChunk], most = 0;
                       for (std::int64_t i = 0; i < part; ++i) scores[i] = row[i] + noise[k + i];
                       f32_reduce().max.runs(scores, &most, 1, part);
                       if (column == 0 || most > best || (most != most && best == best)) {
                         std::int64_t i = 0;  // of the first NaN, or of the most
                         while (scores[i] != most && scores[i] == scores[i]) ++i;
                         best = most;
                         to[place] = column + i;
                       }
                       k += part;
                       column += part;
                       if (column == classes) column = 0, ++place;
                     }
                   });
}

// Numbers whose largest, once logits are added, is at each class with its probability.
Tensor gumbel_noise(const Shape& shape, Device device) {
  const std::int64_t n = shape.num_elements();
  if (traced::on(current_device())) return traced::gumbel(draw(n), shape);
  Tensor y = make_result(Device{}, DType::f32, shape);
  in_chunks<float>(draw(n), n, 4, random_kernels().gumbel,
                   [&](const float* values, std::int64_t i, std::int64_t count) {
                     std::copy_n(values, count, write<float>(y) + i);
                   });
  return copy_to(y, device);
}

}  // namespace

Tensor uniform_int(const Shape& shape, std::int64_t low, std::int64_t high, DType dtype,
                   SourceLocation at) {
  require_bounds(low, high, dtype, at);
  const std::int64_t n = shape.num_elements();
  const auto first = static_cast<std::uint64_t>(low);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - first;
  if (traced::on(current_device()))
    return traced::uniform_int(draw(2 * n), shape, first, range, dtype);
  if (!current_device().is_host())
    return drawn_on_host([&] { return uniform_int(shape, low, high, dtype, at); });
  Tensor y = make_result(current_device(), dtype, shape);
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      T* const to = write<T>(y);
      in_chunks<std::uint32_t>(draw(2 * n), n, 2, words_of,
                               [=](const std::uint32_t* words, std::int64_t i, std::int64_t count) {
                                 for (std::int64_t k = 0; k < count; ++k)
                                   to[i + k] =
                                       static_cast<T>(first + scaled(wide_word(words, k), range));
                               });
    }
  });
  return y;
}

Tensor categorical(const Tensor& logits, std::int64_t samples, DType dtype, SourceLocation at) {
  constexpr const char* kOp = "categorical";
  require_defined(kOp, "logits", logits, at);
  require_dtype(is_floating(logits.dtype()), kOp, logits, "a floating dtype as logits", at);
  require(logits.rank() == 2 && logits.dim(1) > 0, at, kOp,
          "expected logits [rows, classes] with 1 class or more, got ", logits.shape());
  require(samples >= 0, at, kOp, "expected a count of 0 samples or more, got ", samples);
  require(dtype == DType::i32 || dtype == DType::i64, at, kOp, "expected dtype i32 or i64, got ",
          name_of(dtype));
  const RecorderScope unrecorded(nullptr);
  const std::int64_t rows = logits.dim(0), classes = logits.dim(1);
  const Tensor x = cast(logits, DType::f32, at);
  if (!x.device().is_host() || is_traced(x)) {
    const Tensor noise = gumbel_noise({rows, samples, classes}, x.device());
    return cast(argmax(reshape(x, {rows, 1, classes}) + noise, 2), dtype, at);
  }
  Tensor y = make_result(common_device(kOp, {&x}, at), DType::i64, {rows, samples});
  pick_classes(x, samples, y);
  return cast(y, dtype, at);
}

Tensor permutation(std::int64_t n, SourceLocation at) {
  require(n >= 0, at, "permutation", "expected a count of 0 or more, got ", n);
  // In the order of 64 random bits each, of which the last are the number itself.
  const std::uint64_t number = std::bit_ceil(static_cast<std::uint64_t>(n)) - 1;
  if (traced::on(current_device())) return traced::permutation(draw(2 * n), n, number);
  if (!current_device().is_host()) return drawn_on_host([&] { return permutation(n, at); });
  Tensor y = make_result(current_device(), DType::i64, Shape({n}, at, "permutation"));
  auto* const keys = write<std::uint64_t>(y);
  in_chunks<std::uint32_t>(draw(2 * n), n, 2, words_of,
                           [&](const std::uint32_t* words, std::int64_t i, std::int64_t count) {
                             for (std::int64_t k = 0; k < count; ++k)
                               keys[i + k] = (wide_word(words, k) & ~number) |
                                             static_cast<std::uint64_t>(i + k);
                           });
  sort_random(keys, n);
  for (std::int64_t i = 0; i < n; ++i) keys[i] &= number;
  return y;
}

Tensor shuffle(const Tensor& x, SourceLocation at) {
  require_defined("shuffle", "x", x, at);
  require(x.rank() >= 1, at, "shuffle", "expected a tensor of rank 1 or more, got a scalar");
  const DeviceScope here(is_traced(x) ? current_device() : x.device());
  return gather(x, permutation(x.dim(0), at), 0, at);
}

}  // namespace lockstep
