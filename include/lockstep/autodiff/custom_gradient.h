// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/arguments.h>
#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/tensor/nest.h>
#include <lockstep/tensor/tensor.h>

#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

namespace detail {

struct CustomResult {
  std::vector<Tensor> results;
  // Of the arguments, in their order, given those of the results.
  std::function<std::vector<Tensor>(std::span<const Tensor> dy)> gradient;
};
LOCKSTEP_EXPORT std::vector<Tensor> run_custom_gradient(std::span<const Tensor> arguments,
                                                        const std::function<CustomResult()>& run,
                                                        SourceLocation at);

template <class T>
concept ResultAndGradient = requires(const T& returned) {
  returned.first;
  returned.second;
};

}  // namespace detail

// A function with a gradient of its own; made by custom_gradient.
template <class F>
class CustomGradient {
 public:
  explicit CustomGradient(F f, SourceLocation at) : f_(std::move(f)), at_(at) {}

  template <class... Arguments>
  auto operator()(const Arguments&... values) const {
    if constexpr (detail::kTakes<F, Arguments...>)
      return call(detail::ArgumentsOf<Arguments...>(detail::as_argument(values)...));
    else
      static_assert(detail::kTakes<F, Arguments...>,
                    "the function given to custom_gradient cannot be called with these arguments");
  }

 private:
  template <class Arguments>
  auto call(const Arguments& arguments) const {
    using Returned = std::remove_cvref_t<decltype(std::apply(f_, arguments))>;
    if constexpr (detail::ResultAndGradient<Returned>)
      return run<decltype(Returned::first)>(arguments);
    else
      static_assert(detail::ResultAndGradient<Returned>,
                    "the function given to custom_gradient returns no std::pair(result, gradient "
                    "function)");
  }

  template <class Result, class Arguments>
  Result run(const Arguments& arguments) const {
    std::optional<Result> result;
    const auto evaluate = [&] {
      auto [value, gradient] = std::apply(f_, arguments);
      result = value;
      std::vector<Tensor> leaves = detail::tensors_of(value);
      const std::vector<Tensor> none(leaves.size());
      return detail::CustomResult{std::move(leaves),
                                  [gradient = std::move(gradient),
                                   dy_of = with_leaves(value, none)](std::span<const Tensor> dy) {
                                    return detail::tensors_of(gradient(with_leaves(dy_of, dy)));
                                  }};
    };
    const auto leaves = detail::run_custom_gradient(detail::tensors_of(arguments), evaluate, at_);
    return with_leaves(*std::move(result), leaves);
  }

  F f_;
  SourceLocation at_;
};

// As tf.custom_gradient: f with the gradient that it states itself. f is const-callable, takes
// tensors or nests of tensors and returns std::pair(result, gradient): a tensor or nest of tensors,
// and a function that takes the gradient of the result (zeros where none flows) and returns those
// of the arguments: one tensor, or a tuple or vector with one for each tensor of the arguments, of
// its shape and dtype. An undefined tensor says that there is none: for labels.
//
//   auto log1pexp = custom_gradient([](const Tensor& x) {
//     return std::pair(log(1 + exp(x)), [x](const Tensor& dy) { return dy * sigmoid(x); });
//   });
//   Tensor y = log1pexp(x);
//
// What is returned is called with f's arguments; a variable stands for its value, a list of
// variables for a vector of tensors. The innermost tape records each call as one op and keeps of
// what f does only what the gradient function holds. Gradients of gradients are those of what the
// gradient function does, through values that f computed, too.
//
// No gradient is lost silently; these throw InvalidArgument, with the line of custom_gradient:
//   - f uses a trainable variable or another value that a tape follows which is not among its
//     arguments. Where TensorFlow hands `variables` to the gradient function, pass the variables as
//     arguments (f may still read them itself), or read them through stop_gradient;
//   - gradients of another number, shape or dtype than the arguments';
//   - an undefined result.
template <class F>
CustomGradient<F> custom_gradient(F f, SourceLocation at = SourceLocation::current()) {
  return CustomGradient<F>(std::move(f), at);
}

}  // namespace lockstep
