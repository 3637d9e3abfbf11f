// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/update.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "device/accelerator.h"
#include "ops/half_kernels.h"
#include "ops/indices.h"
#include "ops/launch.h"
#include "ops/traced.h"
#include "ops/update_bodies.h"
#include "ops/update_kernels.h"

namespace lockstep {
namespace {

constexpr const char* kOp = "apply_update";
std::atomic<std::int64_t> copies{0};

// Weights and slots; undefined beyond those of the rule.
using State = Tensor[kMaxUpdateState];

void require_scalar(const char* what, const Tensor& x, SourceLocation at) {
  require_defined(kOp, what, x, at);
  require(x.num_elements() == 1, at, kOp, what, " must be a scalar, got shape ", x.shape());
}

bool fits(const Tensor& x, const Tensor& weights) {
  return x.defined() && x.dtype() == weights.dtype() && x.shape() == weights.shape();
}

[[noreturn]] void refuse(const std::string& what, const Tensor& x, const Tensor& weights,
                         SourceLocation at) {
  require_defined(kOp, what.c_str(), x, at);
  throw InvalidArgument(message(kOp, what, " must be ", name_of(weights.dtype()), weights.shape(),
                                " as the weights are, got ", name_of(x.dtype()), x.shape()),
                        at);
}

std::size_t num_slots(const UpdateRule& rule) {
  return visit_update_rule(
      rule, []<class Rule>(Rule, const auto&) -> std::size_t { return Rule::kSlots; });
}

void check_rows(const UpdateRule& rule, const Tensor& weights, const Tensor& gradient,
                const UpdateStep& step, SourceLocation at) {
  const Tensor& rows = step.rows;
  require(updates_by_rows(rule) && step.weight_decay == 0, at, kOp,
          "expected a gradient of all rows: the rule or its weight decay changes rows without one");
  require_defined(kOp, "the gradient", gradient, at);
  require(rows.dtype() == DType::i64 && rows.rank() == 1 && weights.rank() > 0, at, kOp,
          "expected rows as i64 [count], and weights that have rows, got ", rows, " and ", weights);
  require(gradient.dtype() == weights.dtype() &&
              gradient.shape() == weights.shape().with_dim(0, rows.dim(0)),
          at, kOp, "the gradient of ", rows.dim(0), " rows must be ", name_of(weights.dtype()),
          weights.shape().with_dim(0, rows.dim(0)), ", got ", name_of(gradient.dtype()),
          gradient.shape());
  if (!rows.device().is_host() || !gradient.device().is_host() || !weights.device().is_host())
    throw Unimplemented(message(kOp, "updates by rows on CPUs only; hand over to_dense(slices)"),
                        at);
  const std::int64_t* const first = read<std::int64_t>(rows);
  require_inside(kOp, first, rows.dim(0), weights.dim(0), at);
  require(
      std::adjacent_find(first, first + rows.dim(0), std::greater_equal<>()) == first + rows.dim(0),
      at, kOp, "expected rows in ascending order, each once: coalesce(slices), got ", rows);
}

void check(const UpdateRule& rule, std::span<const Tensor> state, const Tensor& gradient,
           const UpdateStep& step, SourceLocation at) {
  const std::size_t slots = num_slots(rule);
  require(state.size() == 1 + slots, at, kOp, "expected the weights and ", slots,
          " slots (update_slots names them), got ", state.size(), " tensors");
  const Tensor& weights = state[0];
  require_defined(kOp, "weights", weights, at);
  require_dtype(is_floating(weights.dtype()), kOp, weights, "a floating dtype", at);
  if (step.rows.defined())
    check_rows(rule, weights, gradient, step, at);
  else if (!fits(gradient, weights))
    refuse("the gradient", gradient, weights, at);
  for (std::size_t i = 0; i < slots; ++i)
    if (!fits(state[1 + i], weights))
      refuse("slot '" + std::string(update_slots(rule)[i].name) + "'", state[1 + i], weights, at);
  require_scalar("learning_rate", step.learning_rate, at);
  require_scalar("number", step.number, at);
  if (step.gradient_scale.defined()) require_scalar("gradient_scale", step.gradient_scale, at);
  if (step.number.device().is_host())
    require(step.number.item<double>() >= 1, at, kOp,
            "number is that of this update and starts at 1, got ", step.number.item<double>());
}

// A tensor as one to write in place: itself when nobody else holds it, else a copy. The caller's
// handle stays until the update is done, so that nothing is lost if another copy does not fit in
// memory.
Tensor donated(const Tensor& x) {
  if (x.unique()) return Tensor(x.buffer(), x.dtype(), x.shape());
  Tensor copy(Buffer::allocate(x.device(), x.bytes()), x.dtype(), x.shape());
  copy_bytes(x.device(), write<void>(copy), x.device(), x.raw_data(), x.bytes());
  copies.fetch_add(1, std::memory_order_relaxed);
  return copy;
}

// The functor's place in the list and its scalars, after the factors of gradient and decay.
struct Prepared {
  UpdateKind kind;
  int count;
  double scalars[2 + kMaxUpdateScalars];
};

Prepared prepare(const UpdateRule& rule, const GivenNumbers& given, double scale) {
  return visit_update_rule(rule, [&]<class Rule>(Rule, const auto& options) {
    const double decay = kOwnDecay<Rule> ? 0 : given.rate * given.weight_decay;
    Prepared prepared{kUpdateKind<Rule>, 2 + Rule::kScalars, {scale, decay}};
    const auto scalars = Rule::scalars(options, given);
    std::copy(std::begin(scalars.of), std::end(scalars.of), prepared.scalars + 2);
    return prepared;
  });
}

// f<T>(state, gradient, n) for pointers to all elements as float or double. 16-bit floats are given a
// block at a time in float; the state is written back where `writes`.
template <class F>
void on_elements(State& state, const Tensor& gradient, bool writes, F&& f) {
  const auto directly = [&]<class T>(T) {
    T* pointers[kMaxUpdateState];
    for (int k = 0; k < kMaxUpdateState; ++k)
      pointers[k] = state[k].defined() ? write<T>(state[k]) : nullptr;
    f(pointers, read<T>(gradient), gradient.num_elements());
  };
  const DType dtype = gradient.dtype();
  if (dtype == DType::f32) return directly(float{});
  if (dtype == DType::f64) return directly(double{});
  const std::int64_t n = gradient.num_elements();
  float wide[kMaxUpdateState][kHalfBlock], wide_gradient[kHalfBlock];
  float* pointers[kMaxUpdateState];
  for (std::int64_t i = 0; i < n; i += kHalfBlock) {
    const std::int64_t block = std::min(kHalfBlock, n - i);
    half_kernels().widen(dtype, read<half>(gradient) + i, wide_gradient, block);
    for (int k = 0; k < kMaxUpdateState; ++k) {
      pointers[k] = state[k].defined() ? wide[k] : nullptr;
      if (pointers[k]) half_kernels().widen(dtype, write<half>(state[k]) + i, wide[k], block);
    }
    f(pointers, static_cast<const float*>(wide_gradient), block);
    for (int k = 0; writes && k < kMaxUpdateState; ++k)
      if (pointers[k]) half_kernels().narrow(dtype, wide[k], write<half>(state[k]) + i, block);
  }
}

template <class T>
struct Scalars {
  T values[2 + kMaxUpdateScalars];
  explicit Scalars(const Prepared& prepared) {
    std::transform(prepared.scalars, prepared.scalars + prepared.count, values,
                   [](double x) { return static_cast<T>(x); });
  }
};

// The last of the scalars of a rule that depends on norms.
double trust(const UpdateRule& rule, const GivenNumbers& given, const Prepared& prepared,
             State& state, const Tensor& gradient) {
  double squares[2] = {};
  on_elements(state, gradient, false, [&]<class T>(T* const* from, const T* g, std::int64_t n) {
    const Scalars<T> scalars(prepared);
    update_kernels<T>().measure[static_cast<int>(prepared.kind)](from, g, n, scalars.values,
                                                                 squares);
  });
  return visit_update_rule(rule, [&]<class Rule>(Rule, const auto& options) {
    if constexpr (kMeasures<Rule>)
      return Rule::trust(options, given, std::sqrt(squares[0]), std::sqrt(squares[1]));
    else
      return 0.0;
  });
}

void update_cpu(const UpdateRule& rule, const GivenNumbers& given, double scale, State& state,
                const Tensor& gradient) {
  Prepared prepared = prepare(rule, given, scale);
  if (f32_update().measure[static_cast<int>(prepared.kind)])
    prepared.scalars[prepared.count - 1] = trust(rule, given, prepared, state, gradient);
  on_elements(state, gradient, true, [&]<class T>(T* const* to, const T* g, std::int64_t n) {
    const Scalars<T> scalars(prepared);
    update_kernels<T>().update[static_cast<int>(prepared.kind)](to, g, n, scalars.values);
  });
}

Tensor row_of(const Tensor& x, std::int64_t row) {
  if (!x.defined()) return x;
  const Shape shape = x.shape().without_axis(0);
  const std::size_t bytes = static_cast<std::size_t>(shape.num_elements()) * size_of(x.dtype());
  return Tensor(x.buffer().slice(static_cast<std::size_t>(row) * bytes, bytes), x.dtype(), shape);
}

void update_rows(const UpdateRule& rule, State& state, const Tensor& gradient,
                 const UpdateStep& step) {
  const GivenNumbers given{step.learning_rate.item<double>(), step.number.item<double>(), 0};
  const double scale = step.gradient_scale.defined() ? step.gradient_scale.item<double>() : 1.0;
  const std::int64_t* const rows = read<std::int64_t>(step.rows);
  for (std::int64_t i = 0; i < step.rows.dim(0); ++i) {
    State row;
    std::transform(std::begin(state), std::end(state), row,
                   [&](const Tensor& x) { return row_of(x, rows[i]); });
    update_cpu(rule, given, scale, row, row_of(gradient, i));
  }
}

// A scalar for a CUDA kernel.
Tensor in_double(const Tensor& scalar) {
  const RecorderScope unrecorded(nullptr);
  return scalar.defined() ? cast(scalar, DType::f64) : Tensor();
}

void update_cuda(const UpdateRule& rule, State& state, const Tensor& gradient, const Tensor& rate,
                 const Tensor& number, const Tensor& scale, double weight_decay) {
  const Tensor wide_rate = in_double(rate), wide_number = in_double(number),
               wide_scale = in_double(scale);
  void* pointers[kMaxUpdateState];
  for (int k = 0; k < kMaxUpdateState; ++k)
    pointers[k] = state[k].defined() ? write<void>(state[k]) : nullptr;
  cuda::update(rule, gradient.dtype(), pointers, gradient.raw_data(),
               {.rate = read<double>(wide_rate),
                .number = read<double>(wide_number),
                .scale = wide_scale.defined() ? read<double>(wide_scale) : nullptr,
                .weight_decay = weight_decay},
               gradient.num_elements(), gradient.device());
}

// Calls f with the tensors that are written, all of them.
template <class F>
auto with_state(State& state, F&& f) {
  return [&]<std::size_t... k>(std::index_sequence<k...>) {
    return f(state[k]...);
  }(std::make_index_sequence<kMaxUpdateState>());
}

void launch_update(const UpdateRule& rule, Device device, State& state, const Tensor& gradient,
                   const UpdateStep& step) {
  const double weight_decay = step.weight_decay;
  with_state(state, [&](auto&... written) {
    launch(
        kOp, device, writes(written...),
        reads(gradient, step.learning_rate, step.number, step.gradient_scale),
        [rule, weight_decay](decltype(written)... to, const Tensor& from, const Tensor& rate,
                             const Tensor& number, const Tensor& scale) {
          State host{Tensor(to)...};
          update_cpu(rule, {rate.item<double>(), number.item<double>(), weight_decay},
                     scale.defined() ? scale.item<double>() : 1.0, host, from);
        },
        [rule, weight_decay](decltype(written)... to, const Tensor& from, const Tensor& rate,
                             const Tensor& number, const Tensor& scale) {
          State there{Tensor(to)...};
          update_cuda(rule, there, from, rate, number, scale, weight_decay);
        });
  });
}

}  // namespace

bool updates_by_rows(const UpdateRule& rule) noexcept {
  const auto* const sgd = std::get_if<SgdRule>(&rule);
  return (sgd && sgd->momentum == 0) || std::holds_alternative<AdagradRule>(rule);
}

std::vector<UpdateSlot> update_slots(const UpdateRule& rule) {
  return visit_update_rule(rule, []<class Rule>(Rule, const auto& options) {
    std::vector<UpdateSlot> slots;
    for (int k = 0; k < Rule::kSlots; ++k) {
      double start = 0;
      if constexpr (requires { Rule::start(options, k); }) start = Rule::start(options, k);
      if constexpr (Rule::kSlots > 0) slots.push_back({Rule::kNames[k], start});
    }
    return slots;
  });
}

void apply_update(const UpdateRule& rule, std::span<Tensor> state, const Tensor& gradient,
                  const UpdateStep& step, SourceLocation at) {
  check(rule, state, gradient, step, at);
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : state) inputs.push_back(&tensor);
  inputs.push_back(&gradient);
  const Device device = common_device(kOp, inputs, at);
  inputs.insert(inputs.end(), {&step.learning_rate, &step.number, &step.gradient_scale});
  if (traced::on(common_device(kOp, inputs, at)))
    return traced::update(rule, state, gradient, step);
  State next;
  for (std::size_t i = 0; i < state.size(); ++i) next[i] = donated(state[i]);
  if (step.rows.defined())
    update_rows(rule, next, gradient, step);
  else
    launch_update(rule, device, next, gradient, step);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = std::move(next[i]);
}

std::int64_t update_copies() noexcept { return copies.load(std::memory_order_relaxed); }

}  // namespace lockstep
