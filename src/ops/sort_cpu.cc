// SPDX-License-Identifier: Apache-2.0
#include "ops/sort_cpu.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
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
  std::size_t digit(std::size_t d) const { return key >> 8 * d & 0xFF; }
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
  std::size_t digit(std::size_t d) const { return both >> (32 + 8 * d) & 0xFF; }
  friend bool operator<(const Entry& a, const Entry& b) { return a.both < b.both; }
};

// Rows that are at least so long are sorted digit by digit.
constexpr std::int64_t kLong = 1024;
// So many of a longer row are picked one by one.
constexpr std::int64_t kFew = 32;

// The entries of one row, and as many to move them to.
template <class Key>
struct Row {
  std::vector<Entry<Key>> entries, moved;
};

// From the lowest digit of the keys on. Each pass keeps the order of those with equal digits, so that
// equal keys stay as they were filled in, by place.
template <class Key>
void sort_by_digits(Row<Key>& row) {
  std::array<std::array<std::uint32_t, 256>, sizeof(Key)> counts{};
  for (const Entry<Key>& entry : row.entries)
    for (std::size_t d = 0; d < sizeof(Key); ++d) ++counts[d][entry.digit(d)];
  row.moved.resize(row.entries.size());
  for (std::size_t d = 0; d < sizeof(Key); ++d) {
    auto& begin = counts[d];
    if (begin[row.entries[0].digit(d)] == row.entries.size()) continue;  // all have the same digit
    std::exclusive_scan(begin.begin(), begin.end(), begin.begin(), std::uint32_t{0});
    for (const Entry<Key>& entry : row.entries) row.moved[begin[entry.digit(d)]++] = entry;
    row.entries.swap(row.moved);
  }
}

// The first k of the row, in order, where k is small: each entry is compared with the last of them.
template <class Key>
void pick_few(Row<Key>& row, std::int64_t k) {
  auto& entries = row.entries;
  const auto first = entries.begin(), last = first + k;
  std::sort(first, last);
  for (auto entry = last; entry != entries.end(); ++entry) {
    if (!(*entry < last[-1])) continue;
    const auto place = std::upper_bound(first, last - 1, *entry);
    std::move_backward(place, last - 1, last);
    *place = *entry;
  }
}

template <class T, class Key>
void sort_row(const T* x, std::int64_t n, std::int64_t k, bool descending, Row<Key>& row) {
  const Key flipped = descending ? std::numeric_limits<Key>::max() : Key(0);
  auto& entries = row.entries;
  for (std::int64_t i = 0; i < n; ++i)
    entries[static_cast<std::size_t>(i)] = {key_of(x[i]) ^ flipped, static_cast<std::uint32_t>(i)};
  if (k == n && n >= kLong) return sort_by_digits(row);
  if (k <= kFew && k < n) return pick_few(row, k);
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
    Row<decltype(key_of(T{}))> sorted;
    sorted.entries.resize(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const row = read<T>(x) + r * n;
      sort_row(row, n, k, descending, sorted);
      T* const value = values.defined() ? write<T>(values) + r * k : nullptr;
      std::int32_t* const place =
          indices.defined() ? write<std::int32_t>(indices) + r * k : nullptr;
      for (std::int64_t i = 0; i < k; ++i) {
        const std::uint32_t index = sorted.entries[static_cast<std::size_t>(i)].index();
        if (value) value[i] = row[index];
        if (place) place[i] = static_cast<std::int32_t>(index);
      }
    }
  });
}

}  // namespace lockstep::cpu
