// SPDX-License-Identifier: Apache-2.0
// Matrix products by cublasLt, which is opened when the first one comes.
#include <cublasLt.h>
#include <lockstep/base/check.h>
#include <lockstep/device/buffer.h>

#include <map>
#include <memory>
#include <mutex>

#include "device/cuda/api.h"
#include "ops/cuda/kernels.h"

namespace lockstep::cuda {
namespace {

// NOLINTNEXTLINE(bugprone-macro-parentheses): f names a member
#define LOCKSTEP_CUBLASLT(f) decltype(&::f) f = library.function<decltype(&::f)>(#f)

struct CublasLt {
  Library library{"cublasLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}};
  LOCKSTEP_CUBLASLT(cublasLtCreate);
  LOCKSTEP_CUBLASLT(cublasLtMatmul);
  LOCKSTEP_CUBLASLT(cublasLtMatmulDescCreate);
  LOCKSTEP_CUBLASLT(cublasLtMatmulDescDestroy);
  LOCKSTEP_CUBLASLT(cublasLtMatmulDescSetAttribute);
  LOCKSTEP_CUBLASLT(cublasLtMatrixLayoutCreate);
  LOCKSTEP_CUBLASLT(cublasLtMatrixLayoutDestroy);
  LOCKSTEP_CUBLASLT(cublasLtMatrixLayoutSetAttribute);
  LOCKSTEP_CUBLASLT(cublasLtMatmulPreferenceCreate);
  LOCKSTEP_CUBLASLT(cublasLtMatmulPreferenceDestroy);
  LOCKSTEP_CUBLASLT(cublasLtMatmulPreferenceSetAttribute);
  LOCKSTEP_CUBLASLT(cublasLtMatmulAlgoGetHeuristic);
};
#undef LOCKSTEP_CUBLASLT

const CublasLt& lt() {
  static const auto* const loaded = new CublasLt;  // stays, as the library does
  return *loaded;
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  throw InternalError(message("matmul", what, " failed with cuBLAS status ", status));
}

cublasLtHandle_t handle_of(Device device) {
  static auto* const mutex = new std::mutex;
  static auto* const handles = new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(*mutex);
  cublasLtHandle_t& handle = (*handles)[device.index];
  if (!handle) check(lt().cublasLtCreate(&handle), "cublasLtCreate");
  return handle;
}

struct Types {
  cudaDataType_t data;
  cublasComputeType_t compute;
  cudaDataType_t scale;
};

// f32 in full precision: TensorFloat-32 is for who asks for it.
Types types_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::f64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case DType::f16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::bf16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    default:
      throw Unimplemented(message("matmul", "has no CUDA kernel for ", name_of(dtype),
                                  "; cast the tensors to a floating dtype"),
                          SourceLocation{});
  }
}

class Description {
 public:
  Description(const Gemm& gemm, const Types& types, const void* bias) {
    check(lt().cublasLtMatmulDescCreate(&raw_, types.compute, types.scale), "cublasLtMatmulDesc");
    // Row-major c = op(a) op(b) is column-major c' = op(b)' op(a)'.
    set(CUBLASLT_MATMUL_DESC_TRANSA, gemm.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, gemm.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (gemm.bias || gemm.relu)
      set(CUBLASLT_MATMUL_DESC_EPILOGUE,
          gemm.bias ? (gemm.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                    : CUBLASLT_EPILOGUE_RELU);
    if (gemm.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  ~Description() { lt().cublasLtMatmulDescDestroy(raw_); }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  cublasLtMatmulDesc_t get() const { return raw_; }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(lt().cublasLtMatmulDescSetAttribute(raw_, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }
  cublasLtMatmulDesc_t raw_ = nullptr;
};

// A row-major matrix of rows x cols, seen as column-major of cols x rows.
class Layout {
 public:
  Layout(const Types& types, std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
         std::int64_t batch, std::int64_t stride) {
    check(lt().cublasLtMatrixLayoutCreate(&raw_, types.data, static_cast<std::uint64_t>(cols),
                                          static_cast<std::uint64_t>(rows), row_stride),
          "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<std::int32_t>(batch);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
  ~Layout() { lt().cublasLtMatrixLayoutDestroy(raw_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return raw_; }

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
    check(lt().cublasLtMatrixLayoutSetAttribute(raw_, attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute");
  }
  cublasLtMatrixLayout_t raw_ = nullptr;
};

class Preference {
 public:
  explicit Preference(std::size_t workspace) {
    check(lt().cublasLtMatmulPreferenceCreate(&raw_), "cublasLtMatmulPreferenceCreate");
    check(lt().cublasLtMatmulPreferenceSetAttribute(raw_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace, sizeof workspace),
          "cublasLtMatmulPreferenceSetAttribute");
  }
  ~Preference() { lt().cublasLtMatmulPreferenceDestroy(raw_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return raw_; }

 private:
  cublasLtMatmulPreference_t raw_ = nullptr;
};

}  // namespace

void compute(const Gemm& gemm, DType dtype, const void* a, const void* b, const void* bias, void* c,
             Device device) {
  if (gemm.batch * gemm.m * gemm.n == 0) return;
  const Types types = types_of(dtype);
  const cudaStream_t stream = enter_compute(device);
  const Description description(gemm, types, bias);
  const auto stored = [&](std::int64_t rows, std::int64_t cols, bool transposed,
                          std::int64_t row_stride, std::int64_t stride) {
    return std::make_unique<Layout>(types, transposed ? cols : rows, transposed ? rows : cols,
                                    std::max<std::int64_t>(row_stride, 1), gemm.batch, stride);
  };
  const auto layout_a = stored(gemm.m, gemm.k, gemm.transpose_a, gemm.row_a, gemm.stride_a);
  const auto layout_b = stored(gemm.k, gemm.n, gemm.transpose_b, gemm.row_b, gemm.stride_b);
  const auto layout_c = stored(gemm.m, gemm.n, false, gemm.row_c, gemm.stride_c);

  constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  const Buffer workspace = Buffer::allocate(device, kWorkspace);
  const Preference preference(kWorkspace);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasLtHandle_t handle = handle_of(device);
  check(lt().cublasLtMatmulAlgoGetHeuristic(handle, description.get(), layout_b->get(),
                                            layout_a->get(), layout_c->get(), layout_c->get(),
                                            preference.get(), 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic");
  ensure(count > 0, "matmul", "cublasLt has no algorithm for [", gemm.m, ", ", gemm.k, "] [",
         gemm.k, ", ", gemm.n, "] of ", name_of(dtype));
  const double one64 = 1, zero64 = 0;
  const float one32 = 1, zero32 = 0;
  const bool wide = types.scale == CUDA_R_64F;
  const auto scalar = [&](const double& d, const float& f) -> const void* {
    return wide ? static_cast<const void*>(&d) : &f;
  };
  check(lt().cublasLtMatmul(
            handle, description.get(), scalar(one64, one32), b, layout_b->get(), a, layout_a->get(),
            gemm.accumulate ? scalar(one64, one32) : scalar(zero64, zero32), c, layout_c->get(), c,
            layout_c->get(), &found.algo, workspace.data(), kWorkspace, stream),
        "cublasLtMatmul");
}

}  // namespace lockstep::cuda
