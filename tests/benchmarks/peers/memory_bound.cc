// SPDX-License-Identifier: Apache-2.0
// The time of a loop that reads and writes what an update by Adam of 10M weights does, 28 bytes each,
// and computes next to nothing: the best that one core's memory allows.
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "../window.h"

namespace {

constexpr std::size_t kWeights = 10'000'000;

// Of huge pages, as ours has them.
float* memory() {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes = (kWeights * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  auto* const data = static_cast<float*>(std::aligned_alloc(kHugePage, bytes));
  if (!data) throw std::bad_alloc();
  madvise(data, bytes, MADV_HUGEPAGE);
  for (std::size_t i = 0; i < kWeights; ++i) data[i] = static_cast<float>(i % 1000) * 0.001F;
  return data;
}

void touch(float* __restrict w, float* __restrict m, float* __restrict v,
           const float* __restrict gradient) {
  for (std::size_t i = 0; i < kWeights; ++i) {
    m[i] += 0.1F * gradient[i];
    v[i] += 0.1F * gradient[i];
    w[i] -= 0.1F * m[i];
  }
}

}  // namespace

int main() {
  float *const w = memory(), *const m = memory(), *const v = memory(), *const gradient = memory();
  window::answer("the same bytes, hardly computed with", [=] { touch(w, m, v, gradient); });
}
