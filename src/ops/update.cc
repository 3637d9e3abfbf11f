// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/update.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "ops/half_kernels.h"
#include "ops/result.h"
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

double scalar(const char* op, const char* what, const Tensor& x, SourceLocation at) {
  require_scalar(op, what, x, at);
  return x.item<double>(at);
}

double scale_of(const char* op, const Tensor& gradient_scale, SourceLocation at) {
  return gradient_scale.defined() ? scalar(op, "gradient_scale", gradient_scale, at) : 1.0;
}

bool on_tpu(const char* op, std::initializer_list<const Tensor*> inputs, SourceLocation at) {
  return traced::on(common_device(op, inputs, at));
}

bool any_on_tpu(std::span<const Tensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& x) { return traced::any({&x}); });
}

// Checks what for_each_part checks of host tensors.
void require_floating(const char* op, std::span<const Tensor> tensors, SourceLocation at) {
  for (const Tensor& x : tensors)
    require_dtype(is_floating(x.dtype()), op, x, "a floating dtype", at);
}

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
  if (x.bytes()) std::memcpy(write<void>(copy), x.raw_data(), x.bytes());
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

}  // namespace

AdamState adam_update(AdamState&& state, const Tensor& gradient, const Tensor& learning_rate,
                      const Tensor& step, const AdamOptions& options, const Tensor& gradient_scale,
                      SourceLocation at) {
  constexpr const char* op = "adam_update";
  require_weights(op, state.weights, gradient, at);
  require_state(op, "the first moment", state.first, state.weights, at);
  require_state(op, "the second moment", state.second, state.weights, at);
  if (on_tpu(op,
             {&state.weights, &state.first, &state.second, &gradient, &learning_rate, &step,
              &gradient_scale},
             at)) {
    require_scalar(op, "learning_rate", learning_rate, at);
    require_scalar(op, "step", step, at);
    AdamState updated = traced::adam(state, gradient, learning_rate, step, options, gradient_scale);
    state = {};
    return updated;
  }
  const double rate = scalar(op, "learning_rate", learning_rate, at);
  const double number = scalar(op, "step", step, at);
  require(number >= 1, at, op, "step is the number of this update and starts at 1, got ", number);
  const double scale = scale_of(op, gradient_scale, at);
  common_device(op, {&state.weights, &state.first, &state.second, &gradient}, at);
  const double corrected =
      rate * std::sqrt(1 - std::pow(options.beta2, number)) / (1 - std::pow(options.beta1, number));
  Tensor states[] = {donated(state.weights), donated(state.first), donated(state.second)};
  run(states, gradient, [&]<class T>(T*(&to)[3], const T* from, std::int64_t n) {
    kernels<T>().adam(to[0], to[1], to[2], from, n,
                      {.scale = static_cast<T>(scale),
                       .decay = static_cast<T>(rate * options.weight_decay),
                       .rate = static_cast<T>(corrected),
                       .one_minus_beta1 = static_cast<T>(1 - options.beta1),
                       .one_minus_beta2 = static_cast<T>(1 - options.beta2),
                       .epsilon = static_cast<T>(options.epsilon)});
  });
  state = {};
  return {std::move(states[0]), std::move(states[1]), std::move(states[2])};
}

SgdState sgd_update(SgdState&& state, const Tensor& gradient, const Tensor& learning_rate,
                    const SgdOptions& options, const Tensor& gradient_scale, SourceLocation at) {
  constexpr const char* op = "sgd_update";
  require_weights(op, state.weights, gradient, at);
  const bool moves = options.momentum != 0;
  if (moves) require_state(op, "the velocity", state.velocity, state.weights, at);
  if (on_tpu(op, {&state.weights, &state.velocity, &gradient, &learning_rate, &gradient_scale},
             at)) {
    require_scalar(op, "learning_rate", learning_rate, at);
    SgdState updated = traced::sgd(state, gradient, learning_rate, options, gradient_scale);
    state = {};
    return updated;
  }
  const double rate = scalar(op, "learning_rate", learning_rate, at);
  const double scale = scale_of(op, gradient_scale, at);
  common_device(op, {&state.weights, &state.velocity, &gradient}, at);
  Tensor states[] = {donated(state.weights), moves ? donated(state.velocity) : Tensor()};
  run(states, gradient, [&]<class T>(T*(&to)[2], const T* from, std::int64_t n) {
    kernels<T>().sgd(to[0], to[1], from, n,
                     {.scale = static_cast<T>(scale),
                      .decay = static_cast<T>(rate * options.weight_decay),
                      .rate = static_cast<T>(rate),
                      .momentum = static_cast<T>(options.momentum),
                      .nesterov = options.nesterov});
  });
  Tensor velocity = moves ? std::move(states[1]) : std::move(state.velocity);
  state = {};
  return {std::move(states[0]), std::move(velocity)};
}

namespace {

// Calls use(pointer, n) with all elements of the tensors, in order, as float or double.
template <class Use>
void for_each_part(const char* op, std::span<const Tensor> tensors, SourceLocation at, Use&& use) {
  float wide[kHalfBlock];
  for (const Tensor& x : tensors) {
    require_defined(op, "a tensor", x, at);
    common_device(op, {&x}, at);
    require_dtype(is_floating(x.dtype()), op, x, "a floating dtype", at);
    const std::int64_t n = x.num_elements();
    if (x.dtype() == DType::f32) {
      use(read<float>(x), n);
    } else if (x.dtype() == DType::f64) {
      use(read<double>(x), n);
    } else {
      for (std::int64_t i = 0; i < n; i += kHalfBlock) {
        const std::int64_t block = std::min(kHalfBlock, n - i);
        half_kernels().widen(x.dtype(), read<half>(x) + i, wide, block);
        use(static_cast<const float*>(wide), block);
      }
    }
  }
}

}  // namespace

Tensor is_finite_all(std::span<const Tensor> tensors, SourceLocation at) {
  if (any_on_tpu(tensors)) {
    require_floating("is_finite_all", tensors, at);
    return traced::is_finite_all(tensors);
  }
  bool finite = true;
  for_each_part("is_finite_all", tensors, at, [&]<class T>(const T* x, std::int64_t n) {
    finite = finite && kernels<T>().all_finite(x, n);
  });
  return Tensor(finite);
}

Tensor global_norm(std::span<const Tensor> tensors, SourceLocation at) {
  if (any_on_tpu(tensors)) {
    require_floating("global_norm", tensors, at);
    return traced::global_norm(tensors);
  }
  double squares = 0;
  for_each_part("global_norm", tensors, at, [&]<class T>(const T* x, std::int64_t n) {
    squares += kernels<T>().sum_of_squares(x, n);
  });
  return Tensor(static_cast<float>(std::sqrt(squares)));
}

std::int64_t update_copies() noexcept { return copies.load(std::memory_order_relaxed); }

}  // namespace lockstep
