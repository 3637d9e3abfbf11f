// SPDX-License-Identifier: Apache-2.0
#include "ops/sort_cpu.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "ops/result.h"
#include "tensor/visit_dtype.h"

namespace lockstep::cpu {
namespace {

// Unsigned numbers that order as the elements do: floats by sign and size, NaNs above all.
template <class Key, class Float>
Key float_key(Float x) {
  if (x != x) return std::numeric_limits<Key>::max();
  const Key bits = std::bit_cast<Key>(x + Float(0));  // -0 becomes 0
  constexpr Key kSign = Key(1) << (8 * sizeof(Key) - 1);
  return bits & kSign ? ~bits : bits | kSign;
}
inline std::uint32_t key_of(float x) { return float_key<std::uint32_t>(x); }
inline std::uint64_t key_of(double x) { return float_key<std::uint64_t>(x); }
inline std::uint32_t key_of(half x) { return key_of(static_cast<float>(x)); }
inline std::uint32_t key_of(bfloat16 x) { return key_of(static_cast<float>(x)); }
inline std::uint32_t key_of(std::int32_t x) { return static_cast<std::uint32_t>(x) ^ 0x80000000u; }
inline std::uint64_t key_of(std::int64_t x) {
  return static_cast<std::uint64_t>(x) ^ 0x8000000000000000u;
}
inline std::uint32_t key_of(std::uint8_t x) { return x; }
inline std::uint32_t key_of(bool x) { return x; }

// A key and the place it stands at, which decides between equal keys: no two entries are equal, so
// any sort is stable.
template <class Key>
struct Entry {
  Key key;
  std::uint32_t place;
  Entry() = default;
  Entry(Key k, std::uint32_t p) : key(k), place(p) {}
  std::uint32_t index() const { return place; }
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};
template <>
struct Entry<std::uint32_t> {
  std::uint64_t both;
  Entry() = default;
  Entry(std::uint32_t key, std::uint32_t place) : both(std::uint64_t{key} << 32 | place) {}
  std::uint32_t index() const { return static_cast<std::uint32_t>(both); }
  friend bool operator<(const Entry& a, const Entry& b) { return a.both < b.both; }
};

template <class T>
void sort_row(const T* x, std::int64_t n, std::int64_t k, bool descending,
              std::vector<Entry<decltype(key_of(T{}))>>& entries) {
  using Key = decltype(key_of(T{}));
  const Key flipped = descending ? std::numeric_limits<Key>::max() : Key(0);
  for (std::int64_t i = 0; i < n; ++i)
    entries[static_cast<std::size_t>(i)] = {key_of(x[i]) ^ flipped, static_cast<std::uint32_t>(i)};
  const auto last = entries.begin() + k;
  if (k < n) std::nth_element(entries.begin(), last, entries.end());
  std::sort(entries.begin(), last);
}

}  // namespace

void sort_rows(const Tensor& x, std::int64_t n, std::int64_t k, bool descending, Tensor& values,
               Tensor& indices) {
  if (n == 0 || k == 0) return;
  const std::int64_t rows = x.num_elements() / n;
  visit_dtype(x.dtype(), [&]<class T>(T) {
    std::vector<Entry<decltype(key_of(T{}))>> entries(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const row = read<T>(x) + r * n;
      sort_row(row, n, k, descending, entries);
      T* const value = values.defined() ? write<T>(values) + r * k : nullptr;
      std::int32_t* const place =
          indices.defined() ? write<std::int32_t>(indices) + r * k : nullptr;
      for (std::int64_t i = 0; i < k; ++i) {
        const std::uint32_t index = entries[static_cast<std::size_t>(i)].index();
        if (value) value[i] = row[index];
        if (place) place[i] = static_cast<std::int32_t>(index);
      }
    }
  });
}

}  // namespace lockstep::cpu
