// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/update.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "device/accelerator.h"
#include "ops/cuda/kernels.h"
#include "ops/half_kernels.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "ops/update_kernels.h"

namespace lockstep {
namespace {

std::atomic<std::int64_t> copies{0};

template <class T>
const UpdateKernels<T>& kernels() {
  if constexpr (std::is_same_v<T, float>)
    return f32_update();
  else
    return f64_update();
}

void require_scalar(const char* op, const char* what, const Tensor& x, SourceLocation at) {
  require_defined(op, what, x, at);
  require(x.num_elements() == 1, at, op, what, " must be a scalar, got shape ", x.shape());
}

void require_scale(const char* op, const Tensor& gradient_scale, SourceLocation at) {
  if (gradient_scale.defined()) require_scalar(op, "gradient_scale", gradient_scale, at);
}

bool on_tpu(const char* op, std::initializer_list<const Tensor*> inputs, SourceLocation at) {
  return traced::on(common_device(op, inputs, at));
}

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

// A scalar for a CUDA kernel.
Tensor in_double(const Tensor& scalar) {
  const RecorderScope unrecorded(nullptr);
  return scalar.defined() ? cast(scalar, DType::f64) : Tensor();
}

double value_or_one(const Tensor& scale) { return scale.defined() ? scale.item<double>() : 1.0; }

void require_state(const char* op, const char* what, const Tensor& x, const Tensor& weights,
                   SourceLocation at) {
  require_defined(op, what, x, at);
  require(x.dtype() == weights.dtype() && x.shape() == weights.shape(), at, op, what, " must be ",
          name_of(weights.dtype()), weights.shape(), " as the weights are, got ",
          name_of(x.dtype()), x.shape());
}

void require_weights(const char* op, const Tensor& weights, const Tensor& gradient,
                     SourceLocation at) {
  require_defined(op, "weights", weights, at);
  require_dtype(is_floating(weights.dtype()), op, weights, "a floating dtype", at);
  require_state(op, "the gradient", gradient, weights, at);
}

// A donated tensor as one to write in place: itself when nobody else holds it, else a copy. The
// caller's handle stays until the update is done, so that nothing is lost if another copy does not
// fit in memory.
Tensor donated(const Tensor& x) {
  if (x.unique()) return Tensor(x.buffer(), x.dtype(), x.shape());
  Tensor copy(Buffer::allocate(x.device(), x.bytes()), x.dtype(), x.shape());
  copy_bytes(x.device(), write<void>(copy), x.device(), x.raw_data(), x.bytes());
  copies.fetch_add(1, std::memory_order_relaxed);
  return copy;
}

// Runs update(pointers, n) on the elements of `states`, written in place, and of the gradient;
// 16-bit ones a block at a time in float. Undefined states are null.
template <std::size_t count, class Update>
void in_float(Tensor (&states)[count], const Tensor& gradient, Update&& update) {
  const DType dtype = gradient.dtype();
  const std::int64_t n = gradient.num_elements();
  float wide[count][kHalfBlock], wide_gradient[kHalfBlock];
  float* pointers[count];
  for (std::int64_t i = 0; i < n; i += kHalfBlock) {
    const std::int64_t block = std::min(kHalfBlock, n - i);
    half_kernels().widen(dtype, read<half>(gradient) + i, wide_gradient, block);
    for (std::size_t k = 0; k < count; ++k) {
      pointers[k] = states[k].defined() ? wide[k] : nullptr;
      if (pointers[k]) half_kernels().widen(dtype, write<half>(states[k]) + i, wide[k], block);
    }
    update(pointers, wide_gradient, block);
    for (std::size_t k = 0; k < count; ++k)
      if (pointers[k]) half_kernels().narrow(dtype, wide[k], write<half>(states[k]) + i, block);
  }
}

// The same for any dtype: update<T>(T* (&states)[count], const T* gradient, n).
template <std::size_t count, class Update>
void run(Tensor (&states)[count], const Tensor& gradient, Update&& update) {
  const auto directly = [&]<class T>(T) {
    T* pointers[count];
    for (std::size_t k = 0; k < count; ++k)
      pointers[k] = states[k].defined() ? write<T>(states[k]) : nullptr;
    update(pointers, read<T>(gradient), gradient.num_elements());
  };
  switch (gradient.dtype()) {
    case DType::f32:
      return directly(float{});
    case DType::f64:
      return directly(double{});
    default:
      return in_float(states, gradient, update);
  }
}

void adam_cpu(const AdamState& state, const Tensor& gradient, const AdamOptions& options,
              double rate, double number, double scale) {
  const double corrected =
      rate * std::sqrt(1 - std::pow(options.beta2, number)) / (1 - std::pow(options.beta1, number));
  Tensor states[] = {state.weights, state.first, state.second};
  run(states, gradient, [&]<class T>(T*(&to)[3], const T* from, std::int64_t n) {
    kernels<T>().adam(to[0], to[1], to[2], from, n,
                      {.scale = static_cast<T>(scale),
                       .decay = static_cast<T>(rate * options.weight_decay),
                       .rate = static_cast<T>(corrected),
                       .one_minus_beta1 = static_cast<T>(1 - options.beta1),
                       .one_minus_beta2 = static_cast<T>(1 - options.beta2),
                       .epsilon = static_cast<T>(options.epsilon)});
  });
}

void sgd_cpu(const SgdState& state, const Tensor& gradient, const SgdOptions& options, double rate,
             double scale) {
  Tensor states[] = {state.weights, state.velocity};
  run(states, gradient, [&]<class T>(T*(&to)[2], const T* from, std::int64_t n) {
    kernels<T>().sgd(to[0], to[1], from, n,
                     {.scale = static_cast<T>(scale),
                      .decay = static_cast<T>(rate * options.weight_decay),
                      .rate = static_cast<T>(rate),
                      .momentum = static_cast<T>(options.momentum),
                      .nesterov = options.nesterov});
  });
}

}  // namespace

AdamState adam_update(AdamState&& state, const Tensor& gradient, const Tensor& learning_rate,
                      const Tensor& step, const AdamOptions& options, const Tensor& gradient_scale,
                      SourceLocation at) {
  constexpr const char* op = "adam_update";
  require_weights(op, state.weights, gradient, at);
  require_state(op, "the first moment", state.first, state.weights, at);
  require_state(op, "the second moment", state.second, state.weights, at);
  require_scalar(op, "learning_rate", learning_rate, at);
  require_scalar(op, "step", step, at);
  require_scale(op, gradient_scale, at);
  if (on_tpu(op,
             {&state.weights, &state.first, &state.second, &gradient, &learning_rate, &step,
              &gradient_scale},
             at)) {
    AdamState updated = traced::adam(state, gradient, learning_rate, step, options, gradient_scale);
    state = {};
    return updated;
  }
  if (step.device().is_host())
    require(step.item<double>() >= 1, at, op,
            "step is the number of this update and starts at 1, got ", step.item<double>());
  const Device device =
      common_device(op, {&state.weights, &state.first, &state.second, &gradient}, at);
  AdamState next{donated(state.weights), donated(state.first), donated(state.second)};
  launch(
      op, device, writes(next.weights, next.first, next.second),
      reads(gradient, learning_rate, step, gradient_scale),
      [options](Tensor& weights, Tensor& first, Tensor& second, const Tensor& from,
                const Tensor& rate, const Tensor& number, const Tensor& scale) {
        adam_cpu({weights, first, second}, from, options, rate.item<double>(),
                 number.item<double>(), value_or_one(scale));
      },
      [options](Tensor& weights, Tensor& first, Tensor& second, const Tensor& from,
                const Tensor& rate, const Tensor& number, const Tensor& scale) {
        const Tensor wide_rate = in_double(rate), wide_number = in_double(number),
                     wide_scale = in_double(scale);
        cuda::adam(weights.dtype(), write<void>(weights), write<void>(first), write<void>(second),
                   from.raw_data(), read<double>(wide_rate), read<double>(wide_number),
                   wide_scale.defined() ? read<double>(wide_scale) : nullptr, options,
                   weights.num_elements(), weights.device());
      });
  state = {};
  return next;
}

SgdState sgd_update(SgdState&& state, const Tensor& gradient, const Tensor& learning_rate,
                    const SgdOptions& options, const Tensor& gradient_scale, SourceLocation at) {
  constexpr const char* op = "sgd_update";
  require_weights(op, state.weights, gradient, at);
  const bool moves = options.momentum != 0;
  if (moves) require_state(op, "the velocity", state.velocity, state.weights, at);
  require_scalar(op, "learning_rate", learning_rate, at);
  require_scale(op, gradient_scale, at);
  if (on_tpu(op, {&state.weights, &state.velocity, &gradient, &learning_rate, &gradient_scale},
             at)) {
    SgdState updated = traced::sgd(state, gradient, learning_rate, options, gradient_scale);
    state = {};
    return updated;
  }
  const Device device = common_device(op, {&state.weights, &state.velocity, &gradient}, at);
  SgdState next{donated(state.weights), moves ? donated(state.velocity) : Tensor()};
  launch(
      op, device, writes(next.weights, next.velocity),
      reads(gradient, learning_rate, gradient_scale),
      [options](Tensor& weights, Tensor& velocity, const Tensor& from, const Tensor& rate,
                const Tensor& scale) {
        sgd_cpu({weights, velocity}, from, options, rate.item<double>(), value_or_one(scale));
      },
      [options](Tensor& weights, Tensor& velocity, const Tensor& from, const Tensor& rate,
                const Tensor& scale) {
        const Tensor wide_rate = in_double(rate), wide_scale = in_double(scale);
        cuda::sgd(weights.dtype(), write<void>(weights),
                  velocity.defined() ? write<void>(velocity) : nullptr, from.raw_data(),
                  read<double>(wide_rate),
                  wide_scale.defined() ? read<double>(wide_scale) : nullptr, options,
                  weights.num_elements(), weights.device());
      });
  if (!moves) next.velocity = std::move(state.velocity);
  state = {};
  return next;
}

namespace {

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
          finite = finite && kernels<T>().all_finite(part, n);
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
          *write<double>(total) += kernels<T>().sum_of_squares(part, n);
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

std::int64_t update_copies() noexcept { return copies.load(std::memory_order_relaxed); }

}  // namespace lockstep
