// SPDX-License-Identifier: Apache-2.0
#include "ops/norm_kernels.h"
#include "ops/reduce_loops.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

// A matrix as chunks of neighbouring elements of one set of columns: parts of rows where there are
// many columns, several rows in a row where there are few. The last chunk may be shorter.
struct Tile {
  std::int64_t first, cols;    // of the columns
  std::int64_t stride, width;  // from chunk to chunk, and of a chunk
  std::int64_t chunks, last;   // their number, and the width of the last one

  std::int64_t width_of(std::int64_t chunk) const { return chunk + 1 < chunks ? width : last; }
  std::int64_t rows_in(std::int64_t begin, std::int64_t end) const {
    return (((end - begin - 1) * width) + width_of(end - 1)) / cols;
  }
};

template <class F>
[[gnu::always_inline]] inline void for_each_tile(std::int64_t rows, std::int64_t cols, F&& f) {
  if (cols >= kTile) {
    for (std::int64_t c = 0; c < cols; c += kTile) {
      const std::int64_t width = cols - c < kTile ? cols - c : kTile;
      f(Tile{c, width, cols, width, rows, width});
    }
    return;
  }
  const std::int64_t folded = kTile / cols, width = folded * cols;
  const std::int64_t full = rows / folded, rest = rows % folded;
  f(Tile{0, cols, width, width, full + (rest ? 1 : 0), rest ? rest * cols : width});
}

constexpr std::int64_t kChunks = 64;  // so many chunks stay in the second cache

// The values of the columns, side by side as in a chunk.
template <class T>
void spread(const Tile& tile, const T* by_column, T* __restrict chunk) {
  for (std::int64_t f = 0; f < tile.width; f += tile.cols)
    for (std::int64_t c = 0; c < tile.cols; ++c) chunk[f + c] = by_column[c];
}
// The reverse: sums over the rows of a chunk, written over its beginning.
template <class T>
void fold(const Tile& tile, T* chunk) {
  for (std::int64_t f = tile.cols; f < tile.width; f += tile.cols)
    for (std::int64_t c = 0; c < tile.cols; ++c) chunk[c] += chunk[f + c];
}

// sums[j] = the sum over chunks of term(offset of element j in the chunk, j).
template <class T, class Term>
[[gnu::always_inline]] inline void sum_chunks(const Tile& tile, std::int64_t begin,
                                              std::int64_t end, const Term& term,
                                              T* __restrict sums) {
  for (std::int64_t j = 0; j < tile.width; ++j) sums[j] = T(0);
  std::int64_t chunk = begin;
  for (; chunk + 4 < end; chunk += 4) {
    const std::int64_t at = tile.first + chunk * tile.stride;
    for (std::int64_t j = 0; j < tile.width; ++j)
      sums[j] += (term(at + j, j) + term(at + tile.stride + j, j)) +
                 (term(at + 2 * tile.stride + j, j) + term(at + 3 * tile.stride + j, j));
  }
  for (; chunk < end; ++chunk) {
    const std::int64_t at = tile.first + chunk * tile.stride, width = tile.width_of(chunk);
    for (std::int64_t j = 0; j < width; ++j) sums[j] += term(at + j, j);
  }
}

// Blocks of rows have their own mean and squares, which meet by Chan's formula.
template <class T>
void tile_moments(const Tile& tile, const T* __restrict x, double* __restrict mean,
                  double* __restrict squares) {
  T sums[kTile], centre[kTile];
  for (std::int64_t c = 0; c < tile.cols; ++c) mean[c] = squares[c] = 0;
  double seen = 0;
  for (std::int64_t begin = 0; begin < tile.chunks; begin += kChunks) {
    const std::int64_t end = begin + kChunks < tile.chunks ? begin + kChunks : tile.chunks;
    const auto rows = static_cast<double>(tile.rows_in(begin, end));
    sum_chunks(
        tile, begin, end, [x](std::int64_t i, std::int64_t) { return x[i]; }, sums);
    fold(tile, sums);
    for (std::int64_t c = 0; c < tile.cols; ++c) sums[c] = sums[c] / static_cast<T>(rows);
    spread(tile, sums, centre);
    sum_chunks(
        tile, begin, end,
        [x, &centre](std::int64_t i, std::int64_t j) {
          const T distance = x[i] - centre[j];
          return distance * distance;
        },
        sums);
    fold(tile, sums);
    const double part = rows / (seen + rows);
    for (std::int64_t c = 0; c < tile.cols; ++c) {
      const double delta = static_cast<double>(centre[c]) - mean[c];
      mean[c] += delta * part;
      squares[c] += static_cast<double>(sums[c]) + delta * delta * seen * part;
    }
    seen += rows;
  }
}

template <class T>
void moments(const T* x, std::int64_t rows, std::int64_t cols, double* mean, double* squares) {
  for_each_tile(rows, cols, [=](const Tile& tile) {
    tile_moments(tile, x, mean + tile.first, squares + tile.first);
  });
}

// What one chunk adds to both sums.
template <class T>
void add_chunk(const T* __restrict dy, const T* __restrict x, std::int64_t n,
               const T* __restrict centre, T* __restrict sums, T* __restrict products) {
  for (std::int64_t j = 0; j < n; ++j) {
    sums[j] += dy[j];
    products[j] += dy[j] * (x[j] - centre[j]);
  }
}

// Chunk by chunk, though that reads and writes the sums more often: two arrays are followed by
// prefetchers only where they are read straight on.
template <class T>
void tile_sums(const Tile& tile, const T* dy, const T* x, const T* shift, double* __restrict of_dy,
               double* __restrict of_products) {
  alignas(64) T sums[kTile], products[kTile], centre[kTile];
  spread(tile, shift, centre);
  for (std::int64_t c = 0; c < tile.cols; ++c) of_dy[c] = of_products[c] = 0;
  for (std::int64_t begin = 0; begin < tile.chunks; begin += kChunks) {
    const std::int64_t end = begin + kChunks < tile.chunks ? begin + kChunks : tile.chunks;
    for (std::int64_t j = 0; j < tile.width; ++j) sums[j] = products[j] = T(0);
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t at = tile.first + chunk * tile.stride;
      add_chunk(dy + at, x + at, tile.width_of(chunk), centre, sums, products);
    }
    fold(tile, sums);
    fold(tile, products);
    for (std::int64_t c = 0; c < tile.cols; ++c) {
      of_dy[c] += static_cast<double>(sums[c]);
      of_products[c] += static_cast<double>(products[c]);
    }
  }
}

template <class T>
void sums(const T* dy, const T* x, std::int64_t rows, std::int64_t cols, const T* shift,
          double* of_dy, double* of_products) {
  for_each_tile(rows, cols, [=](const Tile& tile) {
    tile_sums(tile, dy, x, shift + tile.first, of_dy + tile.first, of_products + tile.first);
  });
}

// Values by column, side by side for all rows of a chunk.
template <class T>
class Spread {
 public:
  Spread(const T* by_column, std::int64_t cols) : values_(by_column) {
    if (cols >= kTile) return;
    for (std::int64_t f = 0; f + cols <= kTile; f += cols)
      for (std::int64_t c = 0; c < cols; ++c) spread_[f + c] = by_column[c];
    values_ = spread_;
  }
  const T* values() const { return values_; }

 private:
  const T* values_;
  alignas(64) T spread_[kTile];
};

// Calls chunk(offset, elements) for all rows, one at a time or several that are short.
template <class Chunk>
[[gnu::always_inline]] inline void for_each_chunk(std::int64_t rows, std::int64_t cols,
                                                  const Chunk& chunk) {
  const std::int64_t step = cols < kTile ? kTile / cols : 1;
  for (std::int64_t row = 0; row < rows; row += step)
    chunk(row * cols, (rows - row < step ? rows - row : step) * cols);
}

template <class T>
void affine_chunk(const T* __restrict x, std::int64_t n, const T* __restrict shift,
                  const T* __restrict a, const T* __restrict b, T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift[i]) * a[i] + b[i];
}

template <class T>
void affine(const T* x, std::int64_t rows, std::int64_t cols, const T* shift, const T* a,
            const T* b, T* y) {
  const Spread<T> centre(shift, cols), factor(a, cols), added(b, cols);
  for_each_chunk(rows, cols, [&](std::int64_t at, std::int64_t n) {
    affine_chunk(x + at, n, centre.values(), factor.values(), added.values(), y + at);
  });
}

template <class T>
void gradient_chunk(const T* __restrict dy, const T* __restrict x, std::int64_t n,
                    const T* __restrict shift, const T* __restrict a, const T* __restrict b,
                    const T* __restrict c, T* __restrict dx) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = (dy[i] * a[i] + (x[i] - shift[i]) * b[i]) + c[i];
}

template <class T>
void gradient(const T* dy, const T* x, std::int64_t rows, std::int64_t cols, const T* shift,
              const T* a, const T* b, const T* c, T* dx) {
  const Spread<T> centre(shift, cols), of_dy(a, cols), of_x(b, cols), added(c, cols);
  for_each_chunk(rows, cols, [&](std::int64_t at, std::int64_t n) {
    gradient_chunk(dy + at, x + at, n, centre.values(), of_dy.values(), of_x.values(),
                   added.values(), dx + at);
  });
}

template <class T>
constexpr ColumnNormKernel<T> kernel() {
  return {.moments = moments<T>, .affine = affine<T>, .sums = sums<T>, .gradient = gradient<T>};
}

}  // namespace

extern const ColumnNormKernels column_norm_kernels{.f32 = kernel<float>(), .f64 = kernel<double>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
