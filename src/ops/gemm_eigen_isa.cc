// SPDX-License-Identifier: Apache-2.0
#define EIGEN_DONT_PARALLELIZE
#ifndef EIGEN_NO_DEBUG
#define EIGEN_NO_DEBUG
#endif
#include <Eigen/Core>

#include "ops/gemm_kernels.h"

namespace lockstep::LOCKSTEP_ISA_NAMESPACE {
namespace {

using Index = Eigen::Index;

// Eigen's expression c += a * b allocates its packing buffers by malloc; its kernel below takes
// them from whoever calls it. A row-major product is the column-major one of the transposes: c' =
// b' a'.
template <class T>
class Blocking : public Eigen::internal::level3_blocking<T, T> {
 public:
  Blocking(Index m, Index n, Index k) {
    this->m_mc = n;
    this->m_nc = m;
    this->m_kc = k;
    Eigen::internal::computeProductBlockingSizes<T, T, 1>(this->m_kc, this->m_mc, this->m_nc,
                                                          Index{1});
  }
  std::size_t bytes_a() const {
    const std::size_t bytes = static_cast<std::size_t>(this->m_mc * this->m_kc) * sizeof(T);
    return (bytes + 63) / 64 * 64;
  }
  std::size_t bytes_b() const {
    return static_cast<std::size_t>(this->m_kc * this->m_nc) * sizeof(T);
  }
  void use(void* scratch) {
    this->m_blockA = static_cast<T*>(scratch);
    this->m_blockB = reinterpret_cast<T*>(static_cast<char*>(scratch) + bytes_a());
  }
};

template <class T>
std::size_t scratch_bytes(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Blocking<T> blocking(m, n, k);
  return blocking.bytes_a() + blocking.bytes_b();
}

template <class T, int order_b, int order_a>
void run(const GemmArguments<T>& g, Blocking<T>& blocking) {
  Eigen::internal::general_matrix_matrix_product<Index, T, order_b, false, T, order_a, false,
                                                 Eigen::ColMajor, 1>::run(g.n, g.m, g.k, g.b,
                                                                          g.row_b, g.a, g.row_a,
                                                                          g.c, 1, g.row_c, T(1),
                                                                          blocking, nullptr);
}

template <class T>
void add_product(const GemmArguments<T>& g, void* scratch) {
  constexpr int kPlain = Eigen::ColMajor;
  constexpr int kTransposed = Eigen::RowMajor;
  Blocking<T> blocking(g.m, g.n, g.k);
  blocking.use(scratch);
  if (g.transpose_b)
    g.transpose_a ? run<T, kTransposed, kTransposed>(g, blocking)
                  : run<T, kTransposed, kPlain>(g, blocking);
  else
    g.transpose_a ? run<T, kPlain, kTransposed>(g, blocking) : run<T, kPlain, kPlain>(g, blocking);
}

template <class T>
constexpr GemmKernel<T> kernel() {
  return {.scratch_bytes = scratch_bytes<T>, .add_product = add_product<T>};
}

}  // namespace

extern const GemmKernels gemm_kernels{.f32 = kernel<float>(),
                                      .f64 = kernel<double>(),
                                      .i32 = kernel<std::int32_t>(),
                                      .i64 = kernel<std::int64_t>()};

}  // namespace lockstep::LOCKSTEP_ISA_NAMESPACE
