// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <array>
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

// A nest is a structure of tensors: a Tensor, a number, a std::tuple, pair, array, vector, map or
// optional of nests, an aggregate of up to 16 nests without bases, C arrays or references, or a
// type with a friend `nest_members(x)` that returns std::tie of its nests. Batches, step results
// and optimizer state are nests. Leaves are visited in declaration order (maps: in key order).
namespace detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class K, class V, class C, class A>
struct IsMap<std::map<K, V, C, A>> : std::true_type {};

template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };
template <class T>
concept HasNestMembers = requires(T& x) { nest_members(x); };

// Stands for any initializer of an aggregate's member but the aggregate itself or a base of it. Only
// ever named, never called.
template <class Owner>
struct AnyMember {
  template <class U>
    requires(!std::is_same_v<std::remove_cvref_t<U>, Owner> && !std::is_base_of_v<U, Owner>)
  operator U() const {
    std::terminate();
  }
};

// Stands for a base class of an aggregate.
template <class Owner>
struct AnyBase {
  template <class U>
    requires(!std::is_same_v<U, Owner> && std::is_base_of_v<U, Owner>)
  operator U() const {
    std::terminate();
  }
};
template <class T>
concept HasBase = requires { T{AnyBase<T>{}}; };

inline constexpr std::size_t kMaxMembers = 16;

template <class T, std::size_t... I>
constexpr bool initializable(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyMember<T>{})...}; };
}

// The number of members of an aggregate; kMaxMembers + 1 stands for more.
template <class T, std::size_t n = kMaxMembers + 1>
constexpr std::size_t member_count() {
  if constexpr (n == 0 || initializable<T>(std::make_index_sequence<n>()))
    return n;
  else
    return member_count<T, n - 1>();
}

template <class T, std::size_t... Before, std::size_t... After>
constexpr bool initializable_around(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires {
    T{(static_cast<void>(Before), AnyMember<T>{})...,
      {},
      (static_cast<void>(After), AnyMember<T>{})...};
  };
}

// Member i is a C array: member_count() has counted each element, but one {} stands for all of them.
template <class T, std::size_t n, std::size_t i>
constexpr bool is_array_member() {
  using Before = std::make_index_sequence<i>;
  return initializable_around<T>(Before(), std::index_sequence<>()) &&
         !initializable_around<T>(Before(), std::make_index_sequence<n - i - 1>());
}
template <class T, std::size_t... I>
constexpr bool has_array(std::index_sequence<I...>) {
  return (is_array_member<T, sizeof...(I), I>() || ...);
}

template <class T>
constexpr auto tie_aggregate(T& x) {
  constexpr std::size_t n = member_count<std::remove_const_t<T>>();
  // clang-format off
  if constexpr (n == 0) return std::tie();
  else if constexpr (n == 1) { auto& [a] = x; return std::tie(a); }
  else if constexpr (n == 2) { auto& [a, b] = x; return std::tie(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = x; return std::tie(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = x; return std::tie(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = x; return std::tie(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = x; return std::tie(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = x; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = x; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = x; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = x; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  // clang-format on
}

// The members of a structure with a fixed number of them, as a tuple of references.
template <class T>
constexpr auto members_of(T& x) {
  using U = std::remove_const_t<T>;
  if constexpr (HasNestMembers<T>)
    return nest_members(x);
  else if constexpr (TupleLike<U>)
    return std::apply([](auto&... member) { return std::tie(member...); }, x);
  else
    return tie_aggregate(x);
}

template <class T>
constexpr bool is_nest();

template <class Members>
struct AllNests;
template <class... M>
struct AllNests<std::tuple<M...>> {
  static constexpr bool value = (is_nest<std::remove_cvref_t<M>>() && ...);
};

template <class T>
constexpr bool is_nest() {
  if constexpr (std::is_same_v<T, Tensor> || std::is_arithmetic_v<T>) {
    return true;
  } else if constexpr (IsVector<T>::value || IsOptional<T>::value) {
    return is_nest<typename T::value_type>();
  } else if constexpr (IsMap<T>::value) {
    return is_nest<typename T::mapped_type>();
  } else if constexpr (HasNestMembers<T> || TupleLike<T>) {
    return AllNests<decltype(members_of(std::declval<T&>()))>::value;
  } else if constexpr (std::is_aggregate_v<T> && !std::is_array_v<T>) {
    // No member found in a type that is not empty: there are some that cannot be made, like
    // references.
    constexpr std::size_t n = member_count<T>();
    if constexpr (HasBase<T> || n > kMaxMembers || (n == 0 && !std::is_empty_v<T>) ||
                  has_array<T>(std::make_index_sequence<n>()))
      return false;
    else
      return AllNests<decltype(tie_aggregate(std::declval<T&>()))>::value;
  } else {
    return false;
  }
}

}  // namespace detail

template <class T>
concept Nest = detail::is_nest<std::remove_cvref_t<T>>();

// Calls f(leaf) for each leaf, a Tensor& or a number&, const where the nest is.
template <class T, class F>
  requires Nest<T>
void visit_leaves(T& nest, F&& f) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, Tensor> || std::is_arithmetic_v<U>) {
    f(nest);
  } else if constexpr (detail::IsVector<U>::value) {
    for (auto& element : nest) visit_leaves(element, f);
  } else if constexpr (detail::IsOptional<U>::value) {
    if (nest) visit_leaves(*nest, f);
  } else if constexpr (detail::IsMap<U>::value) {
    for (auto& [key, element] : nest) visit_leaves(element, f);
  } else {
    std::apply([&](auto&... member) { (visit_leaves(member, f), ...); }, detail::members_of(nest));
  }
}

// The leaves as tensors; numbers become scalars (bool, i32, f32, f64 as they are, other integers
// i64).
template <Nest T>
std::vector<Tensor> flatten(const T& nest) {
  std::vector<Tensor> leaves;
  visit_leaves(nest, [&]<class Leaf>(const Leaf& leaf) {
    if constexpr (std::is_same_v<Leaf, Tensor> || Element<Leaf>)
      leaves.emplace_back(leaf);
    else if constexpr (std::is_integral_v<Leaf>)
      leaves.emplace_back(static_cast<std::int64_t>(leaf));
    else
      leaves.emplace_back(static_cast<double>(leaf));
  });
  return leaves;
}

// `nest` with its leaves replaced, in the order of flatten. The counts must agree.
template <Nest T>
T with_leaves(T nest, std::span<const Tensor> leaves) {
  std::size_t next = 0;
  visit_leaves(nest, [&]<class Leaf>(Leaf& leaf) {
    ensure(next < leaves.size(), "with_leaves", "too few leaves: ", leaves.size());
    if constexpr (std::is_same_v<Leaf, Tensor>)
      leaf = leaves[next++];
    else
      leaf = leaves[next++].template item<Leaf>();
  });
  ensure(next == leaves.size(), "with_leaves", "expected ", next, " leaves, got ", leaves.size());
  return nest;
}

namespace detail {
template <class T>
void append_paths(const T& nest, const std::string& prefix, std::vector<std::string>& paths) {
  if constexpr (std::is_same_v<T, Tensor> || std::is_arithmetic_v<T>) {
    paths.push_back(prefix.empty() ? "value" : prefix);
  } else if constexpr (IsVector<T>::value) {
    for (std::size_t i = 0; i < nest.size(); ++i)
      append_paths(nest[i], prefix + "[" + std::to_string(i) + "]", paths);
  } else if constexpr (IsOptional<T>::value) {
    if (nest) append_paths(*nest, prefix, paths);
  } else if constexpr (IsMap<T>::value) {
    for (const auto& [key, element] : nest)
      append_paths(
          element,
          prefix + "[" +
              [&] {
                std::ostringstream out;
                out << key;
                return std::move(out).str();
              }() +
              "]",
          paths);
  } else {
    std::size_t i = 0;
    std::apply(
        [&](const auto&... member) {
          (append_paths(member, prefix + "." + std::to_string(i++), paths), ...);
        },
        members_of(nest));
  }
}
}  // namespace detail

// Where each leaf stands, in the order of flatten: ".0[2].1"; for error messages.
template <Nest T>
std::vector<std::string> leaf_paths(const T& nest) {
  std::vector<std::string> paths;
  detail::append_paths(nest, "", paths);
  return paths;
}

}  // namespace lockstep
