// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/arguments.h>
#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/tensor/nest.h>
#include <lockstep/tensor/tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

namespace detail {

// The tensors of first(), recorded as one op, whose gradient rule calls `again`.
LOCKSTEP_EXPORT std::vector<Tensor> run_recompute(const std::function<std::vector<Tensor>()>& first,
                                                  std::function<std::vector<Tensor>()> again,
                                                  SourceLocation at);

}  // namespace detail

// A function that runs again in backward; made by recompute.
template <class F>
class Recompute {
 public:
  explicit Recompute(F f, SourceLocation at)
      : f_(std::make_shared<const F>(std::move(f))), at_(at) {}

  template <class... Arguments>
  auto operator()(const Arguments&... values) const {
    if constexpr (detail::kTakes<F, Arguments...>)
      return call(detail::ArgumentsOf<Arguments...>(detail::as_argument(values)...));
    else
      static_assert(detail::kTakes<F, Arguments...>,
                    "the function given to recompute cannot be called with these arguments");
  }

 private:
  template <class Arguments>
  auto call(const Arguments& arguments) const {
    using Result = std::remove_cvref_t<decltype(std::apply(*f_, arguments))>;
    if constexpr (Nest<Result>)
      return run<Result>(arguments);
    else
      static_assert(Nest<Result>, "the function given to recompute returns no nest of tensors");
  }

  template <class Result, class Arguments>
  Result run(const Arguments& arguments) const {
    std::optional<Result> result;
    const auto first = [&] {
      result = std::apply(*f_, arguments);
      return detail::tensors_of(*result);
    };
    auto again = [f = f_, arguments] { return detail::tensors_of(std::apply(*f, arguments)); };
    const auto leaves = detail::run_recompute(first, std::move(again), at_);
    return with_leaves(*std::move(result), leaves);
  }

  std::shared_ptr<const F> f_;
  SourceLocation at_;
};

// As tf.recompute_grad: f without the memory that its intermediate values take until backward. Tapes
// keep its arguments and run it again when its gradient is needed, which costs its forward time once
// more. f is const-callable, takes tensors or nests of tensors and returns a tensor or a nest of
// tensors; what it captures by reference is to live until the gradient is there.
//
//   auto block = recompute([&](const Tensor& x) { return second(relu(first(x))); });
//   Tensor y = block(x);                    // a variable stands for its value, too
//
// Gradients flow to all that f uses: its arguments, the trainable variables it reads, the watched
// values it captures. They are, bit for bit, those that a tape gives of f itself, because f
//   - draws the same random numbers again (dropout masks), without moving the thread's RandomState;
//   - sees each variable as it did the first time, whatever was assigned since, and its own
//     assignments do nothing but give what they gave: a moving average moves once;
//   - runs its collectives again, on every replica at the same place of the backward pass: all
//     replicas are to use recompute alike.
// What is not to be differentiated in f goes through stop_gradient; pausing a tape around f has no
// effect when f runs again. Whatever else f does happens twice, and is to lead to the same ops:
// FailedPrecondition, with the line of recompute, when f accesses other variables or returns other
// shapes than the first time. Optimizers are not to be run in f (FailedPrecondition). An undefined
// result is InvalidArgument. Gradients of gradients keep f's intermediate values. In a step that is
// compiled for a TPU the compiler decides what is kept.
template <class F>
Recompute<F> recompute(F f, SourceLocation at = SourceLocation::current()) {
  return Recompute<F>(std::move(f), at);
}

}  // namespace lockstep
