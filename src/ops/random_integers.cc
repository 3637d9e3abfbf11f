// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device/buffer.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/cumsum.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/random.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/random_draw.h"
#include "ops/result.h"
#include "ops/traced.h"
#include "tensor/visit_dtype.h"

namespace lockstep {
namespace {

constexpr int kLongestDigit = 12;  // bits

// Moves keys in the order of a digit, and back in that of the one above it. `shift`: of the lower one.
void sort_by_digits(std::uint64_t* keys, std::uint64_t* moved, std::int64_t n, int shift,
                    int digit) {
  const std::uint64_t mask = (std::uint64_t{1} << digit) - 1;
  const auto lower = [=](std::uint64_t key) { return key >> shift & mask; };
  const auto upper = [=](std::uint64_t key) { return key >> (shift + digit) & mask; };
  std::vector<std::int64_t> begin_lower(mask + 1), begin_upper(mask + 1);
  for (std::int64_t i = 0; i < n; ++i) ++begin_lower[lower(keys[i])], ++begin_upper[upper(keys[i])];
  for (auto* begin : {&begin_lower, &begin_upper})
    std::exclusive_scan(begin->begin(), begin->end(), begin->begin(), std::int64_t{0});
  for (std::int64_t i = 0; i < n; ++i) moved[begin_lower[lower(keys[i])]++] = keys[i];
  for (std::int64_t i = 0; i < n; ++i) keys[begin_upper[upper(moved[i])]++] = moved[i];
}

// Sorts keys of which few come before a smaller one, and those not far from it.
void sort_nearly_sorted(std::uint64_t* keys, std::int64_t n) {
  std::uint64_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t key = keys[i];
    if (key >= largest) {
      largest = key;
      continue;
    }
    std::int64_t to = i;
    for (; to > 0 && keys[to - 1] > key; --to) keys[to] = keys[to - 1];
    keys[to] = key;
  }
}

// Sorts random keys: by as many of their upper bits as make most of them distinct, in an even number
// of digits from the lowest on; then those that agree in all of these.
void sort_random(std::uint64_t* keys, std::int64_t n) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(n));
  const int pairs = (bits - 1) / (2 * kLongestDigit) + 1;
  const int digit = std::min(kLongestDigit, (bits + 1) / (2 * pairs) + 1);
  const Buffer memory = Buffer::allocate(Device{}, static_cast<std::size_t>(n) * sizeof(*keys));
  auto* const moved = static_cast<std::uint64_t*>(memory.data());
  for (int pair = pairs; pair > 0; --pair)
    sort_by_digits(keys, moved, n, 64 - 2 * pair * digit, digit);
  sort_nearly_sorted(keys, n);
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

// exp(logits - max): for each row and class, how probable it is.
Tensor class_weights(const Tensor& x) { return exp(x - max(x, {.axes = {1}, .keep_dims = true})); }

// On the host: the first class whose running weight exceeds the draw's part of the whole. It has a
// weight, as running weights that follow each other are equal where it has none. A few rows at a
// time, whose weights stay in the caches.
void pick_classes(const Tensor& x, const Tensor& draws, Tensor& y) {
  const std::int64_t classes = x.dim(1), samples = draws.dim(1);
  const std::int64_t block = std::max<std::int64_t>(1, 65536 / classes);
  const auto* drawn = read<float>(draws);
  auto* to = write<std::int64_t>(y);
  for (std::int64_t first = 0; first < x.dim(0); first += block) {
    const std::int64_t rows = std::min(block, x.dim(0) - first);
    const Tensor weights = class_weights(slice(x, {first, 0}, {rows, classes}));
    const Tensor running = cumsum(weights, {.axis = 1});
    const auto* begin = read<float>(running);
    for (std::int64_t row = 0; row < rows; ++row, begin += classes)
      for (std::int64_t i = 0; i < samples; ++i) {
        const float* const end = begin + classes - 1;  // NaNs lead there
        *to++ = std::upper_bound(begin, end, *drawn++ * *end) - begin;
      }
  }
}

// The same on other devices, where each running weight is rounded in an order of its own. Classes
// without weight count as passed, and the whole is what the largest of the others has, so that there
// is always one that exceeds its part.
Tensor picked_classes(const Tensor& weights, const Tensor& draws) {
  const std::int64_t rows = weights.dim(0), classes = weights.dim(1);
  const Tensor sums = cast(cumsum(cast(weights, DType::f64), {.axis = 1}), DType::f32);
  const Tensor running = select(equal(weights, 0), 0, sums);
  const Tensor parts = draws * max(running, {.axes = {1}, .keep_dims = true});
  const Tensor exceeds =
      greater(reshape(running, {rows, 1, classes}), reshape(parts, {rows, draws.dim(1), 1}));
  const Tensor last(static_cast<std::int32_t>(classes - 1));  // NaNs lead there
  return min(select(exceeds, range(0, classes, 1, DType::i32), last), {.axes = {2}});
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
  const Tensor x = cast(logits, DType::f32, at);
  const DeviceScope here(is_traced(x) ? current_device() : x.device());
  const Shape shape{x.dim(0), samples};
  if (shape.num_elements() == 0) return zeros(shape, dtype);
  const Tensor draws = uniform(shape);
  const Device device = common_device(kOp, {&x, &draws}, at);
  if (!device.is_host()) return cast(picked_classes(class_weights(x), draws), dtype, at);
  Tensor y = make_result(device, DType::i64, shape);
  pick_classes(x, draws, y);
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
