// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/dataset.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace lockstep::data {
namespace detail {

template <class T>
struct OptionalValue {
  static_assert(sizeof(T) == 0,
                "from_generator: the generator must return a std::optional of a nest");
};
template <class T>
struct OptionalValue<std::optional<T>> {
  using type = T;
};

template <class Make>
auto make_generator(const Make& make, std::stop_token stop) {
  if constexpr (std::is_invocable_v<const Make&, std::stop_token>)
    return make(std::move(stop));
  else
    return make();
}

}  // namespace detail

// Elements that a function makes. Each epoch calls make() for a fresh generator, then the generator
// until it returns nothing:
//
//   from_generator([] { return [i = 0]() mutable -> std::optional<Tensor> { return i++; }; })
//
// For a restored iterator to go on with the same elements, every generator must produce the same
// sequence; what stands before the position is generated again and dropped. A generator may be
// moved to another thread but is called by one at a time; make may be called by several. One that
// blocks for long takes make(std::stop_token) and returns when stop is requested: destroying the
// iterator waits for it.
template <class Make>
auto from_generator(Make make, SourceLocation at = SourceLocation::current()) {
  static_assert(
      std::is_invocable_v<const Make&> || std::is_invocable_v<const Make&, std::stop_token>,
      "from_generator: expected a function that makes generators, callable as const");
  using Generator = decltype(detail::make_generator(make, std::stop_token()));
  static_assert(std::is_invocable_v<Generator&>,
                "from_generator: the function must return a generator, a function itself");
  using T =
      typename detail::OptionalValue<std::remove_cvref_t<std::invoke_result_t<Generator&>>>::type;
  static_assert(FixedNest<T>,
                "from_generator: elements must be nests without vectors, maps or optionals");
  return Dataset<T>(AnyDataset::from_generator(
      [make = std::move(make)](std::stop_token stop) -> LeafGenerator {
        auto generator = std::make_shared<Generator>(detail::make_generator(make, std::move(stop)));
        return [generator]() -> std::optional<Leaves> {
          if (std::optional<T> element = (*generator)()) return flatten(*element);
          return std::nullopt;
        };
      },
      at));
}

}  // namespace lockstep::data
