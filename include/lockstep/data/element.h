// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/nest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

// The tensors of one element, in the order of flatten.
using Leaves = std::vector<Tensor>;

// Answers of cardinality() that are no counts; kInfinite is also repeat()'s "without end".
inline constexpr std::int64_t kInfinite = -1;
inline constexpr std::int64_t kUnknown = -2;

// What is known of one leaf before any element is read.
struct LeafSpec {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;  // -1: may differ between elements

  friend bool operator==(const LeafSpec&, const LeafSpec&) = default;
};
using ElementSpec = std::vector<LeafSpec>;

// "f32[?, 64]".
LOCKSTEP_EXPORT std::string to_string(const LeafSpec& spec);

namespace detail {

// The number of leaves that every T has; -1 when values of T differ in it.
template <class T>
constexpr int leaf_count();

template <class Members>
struct MemberLeaves;
template <class... M>
struct MemberLeaves<std::tuple<M...>> {
  static constexpr bool fixed = ((leaf_count<std::remove_cvref_t<M>>() >= 0) && ...);
  static constexpr int count = fixed ? (0 + ... + leaf_count<std::remove_cvref_t<M>>()) : -1;
};

template <class T>
constexpr int leaf_count() {
  namespace nest = lockstep::detail;
  if constexpr (!Nest<T> || nest::IsVector<T>::value || nest::IsOptional<T>::value ||
                nest::IsMap<T>::value)
    return -1;
  else if constexpr (std::is_same_v<T, Tensor> || std::is_arithmetic_v<T>)
    return 1;
  else
    return MemberLeaves<decltype(nest::members_of(std::declval<T&>()))>::count;
}

template <class T>
constexpr bool has_numbers();

template <class Members>
struct MemberNumbers;
template <class... M>
struct MemberNumbers<std::tuple<M...>> {
  static constexpr bool value = (has_numbers<std::remove_cvref_t<M>>() || ...);
};

template <class T>
constexpr bool has_numbers() {
  namespace nest = lockstep::detail;
  if constexpr (std::is_arithmetic_v<T>)
    return true;
  else if constexpr (std::is_same_v<T, Tensor>)
    return false;
  else if constexpr (nest::IsMap<T>::value)
    return has_numbers<typename T::mapped_type>();
  else if constexpr (nest::IsVector<T>::value || nest::IsOptional<T>::value)
    return has_numbers<typename T::value_type>();
  else
    return MemberNumbers<decltype(nest::members_of(std::declval<T&>()))>::value;
}

}  // namespace detail

// A nest whose number of leaves follows from its type: no vector, map or optional in it. Elements
// that a function makes (map, from_generator) are of this kind.
template <class T>
concept FixedNest = Nest<T> && std::default_initializable<T> && detail::leaf_count<T>() >= 0;

// A nest without numbers, so that its leaves can hold whole batches.
template <class T>
concept TensorNest = Nest<T> && !detail::has_numbers<T>();

}  // namespace lockstep::data
