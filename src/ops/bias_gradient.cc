// SPDX-License-Identifier: Apache-2.0
#include "ops/bias_gradient.h"

#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>

#include <numeric>
#include <vector>

#include "ops/dense_kernels.h"
#include "ops/half_kernels.h"
#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

struct Gradients {
  Tensor z, bias;
};

template <class T>
Gradients computed(const DenseKernel<T>& kernel, Device device, const Tensor& dy, const Tensor& y) {
  const std::int64_t channels = dy.dim(-1);
  // The bias's gradient is the one that may be placed, and dz may have as many elements.
  Tensor bias = make_result(device, dy.dtype(), Shape{channels});
  if (channels == 0) return {dy, bias};
  const std::int64_t rows = dy.num_elements() / channels;
  if (!y.defined()) {
    kernel.column_sums(read<T>(dy), rows, channels, write<T>(bias));
    return {dy, bias};
  }
  Tensor z(Buffer::allocate(device, dy.bytes()), dy.dtype(), dy.shape());
  kernel.relu_gradient_sums(read<T>(dy), read<T>(y), rows, channels, write<T>(z), write<T>(bias));
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
