// SPDX-License-Identifier: Apache-2.0
#include "ops/onednn.h"

#if LOCKSTEP_WITH_ONEDNN

#include <lockstep/ops/threads.h>

#include <sstream>
#include <string>
#include <utility>

#include "ops/intra_op_scope.h"
#include "ops/onednn_primitive.h"

namespace lockstep::onednn {
namespace {

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

std::string text_of(const Gemm& gemm, DType dtype) {
  std::ostringstream out;
  out << gemm.batch << " products of " << name_of(dtype) << " [" << gemm.m << ", " << gemm.k
      << "] and [" << gemm.k << ", " << gemm.n << "]";
  return std::move(out).str();
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
  const auto describe = [&] { return text_of(gemm, dtype); };
  return explained("matmul", describe, [&] {
    const IntraOpScope threads;
    Entry& entry = find(key, [&] { return make_gemm(gemm, dtype); });
    if (!entry.primitive) return false;
    if (gemm.bias)
      entry.primitive.run(device, {a, b, bias, c});
    else
      entry.primitive.run(device, {a, b, c});
    return true;
  });
}

}  // namespace lockstep::onednn

#else

namespace lockstep::onednn {

bool compute(const Gemm&, DType, Device, const void*, const void*, const void*, void*) {
  return false;
}

}  // namespace lockstep::onednn

#endif
