// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/update.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cuda/kernels.h"
#include "ops/half_kernels.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "ops/update_kernels.h"

namespace lockstep {
namespace {

bool any_on_tpu(std::span<const Tensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& x) { return traced::any({&x}); });
}

void require_floating(const char* op, std::span<const Tensor> tensors, SourceLocation at) {
  for (const Tensor& x : tensors) {
    require_defined(op, "a tensor", x, at);
    require_dtype(is_floating(x.dtype()), op, x, "a floating dtype", at);
  }
}

// Calls use(pointer, n) with all elements of x, in order, as float or double.
template <class Use>
void for_each_part(const Tensor& x, Use&& use) {
  const std::int64_t n = x.num_elements();
  if (x.dtype() == DType::f32) return use(read<float>(x), n);
  if (x.dtype() == DType::f64) return use(read<double>(x), n);
  float wide[kHalfBlock];
  for (std::int64_t i = 0; i < n; i += kHalfBlock) {
    const std::int64_t block = std::min(kHalfBlock, n - i);
    half_kernels().widen(x.dtype(), read<half>(x) + i, wide, block);
    use(static_cast<const float*>(wide), block);
  }
}

// `start`, a scalar, after add(accumulated, x) for each of the tensors, on their device.
template <class Add, class CudaAdd>
Tensor accumulated(const char* op, std::span<const Tensor> tensors, const Tensor& start,
                   SourceLocation at, Add&& add, CudaAdd&& cuda_add) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& x : tensors) inputs.push_back(&x);
  const Device device = inputs.empty() ? Device{} : common_device(op, inputs, at);
  Tensor result = copy_to(start, device);
  for (const Tensor& x : tensors) launch(op, device, writes(result), reads(x), add, cuda_add);
  return result;
}

}  // namespace

Tensor is_finite_all(std::span<const Tensor> tensors, SourceLocation at) {
  require_floating("is_finite_all", tensors, at);
  if (any_on_tpu(tensors)) return traced::is_finite_all(tensors);
  return accumulated(
      "is_finite_all", tensors, Tensor(true), at,
      [](Tensor& all, const Tensor& x) {
        bool& finite = *write<bool>(all);
        for_each_part(x, [&]<class T>(const T* part, std::int64_t n) {
          finite = finite && update_kernels<T>().all_finite(part, n);
        });
      },
      [](Tensor& all, const Tensor& x) {
        cuda::clear_unless_finite(x.dtype(), x.raw_data(), write<bool>(all), x.num_elements(),
                                  all.device());
      });
}

Tensor global_norm(std::span<const Tensor> tensors, SourceLocation at) {
  constexpr const char* op = "global_norm";
  require_floating(op, tensors, at);
  if (any_on_tpu(tensors)) return traced::global_norm(tensors);
  const Tensor squares = accumulated(
      op, tensors, Tensor(0.0), at,
      [](Tensor& total, const Tensor& x) {
        for_each_part(x, [&]<class T>(const T* part, std::int64_t n) {
          *write<double>(total) += update_kernels<T>().sum_of_squares(part, n);
        });
      },
      [](Tensor& total, const Tensor& x) {
        cuda::add_square_sum(x.dtype(), x.raw_data(), write<double>(total), x.num_elements(),
                             total.device());
      });
  Tensor norm(Buffer::allocate(squares.device(), sizeof(float)), DType::f32, Shape{});
  launch(
      op, squares.device(), writes(norm), reads(squares),
      [](Tensor& to, const Tensor& from) {
        *write<float>(to) = static_cast<float>(std::sqrt(*read<double>(from)));
      },
      [](Tensor& to, const Tensor& from) {
        cuda::square_root(read<double>(from), write<float>(to), to.device());
      });
  return norm;
}

}  // namespace lockstep
