// SPDX-License-Identifier: Apache-2.0
#include "ops/bias_gradient.h"

#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>

#include <numeric>
#include <vector>

#include "ops/cuda/kernels.h"
#include "ops/dense_kernels.h"
#include "ops/half_kernels.h"
#include "ops/launch.h"
#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

struct Gradients {
  Tensor z, bias;
};

template <class T>
Gradients computed(const DenseKernel<T>& kernels, Device device, const Tensor& dy,
                   const Tensor& y) {
  constexpr const char* kOp = "bias_gradient";
  const DenseKernel<T>* const kernel = &kernels;
  const std::int64_t channels = dy.dim(-1);
  // The bias's gradient is the one that may be placed, and dz may have as many elements.
  Tensor bias = make_result(device, dy.dtype(), Shape{channels});
  if (channels == 0) return {dy, bias};
  const std::int64_t rows = dy.num_elements() / channels;
  if (!y.defined()) {
    launch(
        kOp, device, writes(bias), reads(dy),
        [=](Tensor& sums, const Tensor& from) {
          kernel->column_sums(read<T>(from), rows, channels, write<T>(sums));
        },
        [=](Tensor& sums, const Tensor& from) {
          cuda::bias_gradient(sums.dtype(), from.raw_data(), nullptr, nullptr, write<void>(sums),
                              rows, channels, sums.device());
        });
    return {dy, bias};
  }
  Tensor z(Buffer::allocate(device, dy.bytes()), dy.dtype(), dy.shape());
  launch(
      kOp, device, writes(z, bias), reads(dy, y),
      [=](Tensor& to, Tensor& sums, const Tensor& from, const Tensor& value) {
        kernel->relu_gradient_sums(read<T>(from), read<T>(value), rows, channels, write<T>(to),
                                   write<T>(sums));
      },
      [=](Tensor& to, Tensor& sums, const Tensor& from, const Tensor& value) {
        cuda::bias_gradient(to.dtype(), from.raw_data(), value.raw_data(), write<void>(to),
                            write<void>(sums), rows, channels, to.device());
      });
  return {z, bias};
}

// y undefined: no relu.
Gradients computed(const Tensor& dy, const Tensor& y) {
  const Device device = common_device("bias_gradient", {&dy, &y}, {});
  if (is_half(dy.dtype())) {
    const RecorderScope unrecorded(nullptr);
    const Tensor wide_y = y.defined() ? cast(y, DType::f32) : y;
    const Gradients wide = computed(dense_kernels().f32, device, cast(dy, DType::f32), wide_y);
    const Tensor bias = cast(wide.bias, dy.dtype());
    return {y.defined() ? cast(wide.z, dy.dtype()) : dy, bias};
  }
  return dy.dtype() == DType::f64 ? computed(dense_kernels().f64, device, dy, y)
                                  : computed(dense_kernels().f32, device, dy, y);
}

// Sums over all axes but the last, in public ops.
Tensor sum_of_rows(const Tensor& x) {
  if (x.rank() == 1) return x;
  std::vector<int> axes(static_cast<std::size_t>(x.rank() - 1));
  std::iota(axes.begin(), axes.end(), 0);
  return sum(x, {.axes = axes});
}

}  // namespace

Tensor put_bias_gradient(const Tensor& dy, const Tensor& y, bool relu, int bias,
                         GradientSink& sink) {
  // For a gradient of the gradient, which does not reach y, and where compilers fuse.
  if (recording({&dy}) || traced::any({&dy, &y})) {
    Tensor dz = relu ? dy * stop_gradient(sign(y)) : dy;
    if (sink.wants(bias)) sink.put(bias, [&] { return sum_of_rows(dz); });
    return dz;
  }
  Gradients gradients{dy, {}};
  if (sink.wants(bias))
    sink.put(bias, [&] {
      gradients = computed(dy, y);
      return gradients.bias;
    });
  else if (relu)
    gradients = computed(dy, y);
  return gradients.z;
}

}  // namespace lockstep
