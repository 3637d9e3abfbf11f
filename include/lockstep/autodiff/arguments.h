// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/nest.h>
#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::detail {

// How custom_gradient and recompute hand an argument to their function: nests as they are, what
// reads as a tensor (a variable) as its value, and lists of such as vectors.
template <class T>
auto as_argument(const T& value) {
  if constexpr (Nest<T>)
    return value;
  else if constexpr (std::convertible_to<const T&, Tensor>)
    return Tensor(value);
  else
    return std::vector<Tensor>(std::begin(value), std::end(value));
}

template <class... T>
using ArgumentsOf = std::tuple<decltype(as_argument(std::declval<const T&>()))...>;

// Whether F, as const, can be called with them.
template <class F, class... T>
inline constexpr bool kTakes =
    std::is_invocable_v<const F&, const decltype(as_argument(std::declval<const T&>()))&...>;

// The leaves of a nest of nothing but tensors.
template <class T>
std::vector<Tensor> tensors_of(const T& nest) {
  static_assert(Nest<T>, "custom_gradient and recompute take and return nests of tensors");
  std::vector<Tensor> leaves;
  visit_leaves(nest, [&]<class Leaf>(const Leaf& leaf) {
    static_assert(std::same_as<Leaf, Tensor>,
                  "custom_gradient and recompute take and return tensors; let the function capture "
                  "numbers");
    if constexpr (std::same_as<Leaf, Tensor>) leaves.push_back(leaf);
  });
  return leaves;
}

}  // namespace lockstep::detail
