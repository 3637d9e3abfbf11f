// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <lockstep/tensor/tensor.h>

#include <initializer_list>
#include <type_traits>
#include <vector>

namespace lockstep::testing {

// A rank-1 tensor.
template <class T = float>
Tensor vec(std::initializer_list<std::type_identity_t<T>> values) {
  return Tensor(Shape{static_cast<std::int64_t>(values.size())}, values);
}

// Matches a tensor of T whose elements are exactly these, in row-major order.
template <class T = float>
auto holds(std::vector<T> values) {
  return ::testing::ResultOf(
      "elements", [](const Tensor& x) { return x.to_vector<T>(); },
      ::testing::ElementsAreArray(values));
}

// Numbers that look random and are the same on every machine: an LCG, uniform in [-1, 1).
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed * 2862933555777941757u + 3037000493u) {}
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) / 4503599627370496.0 - 1.0;
  }
  template <Element T>
  Tensor tensor(const Shape& shape, double scale = 1) {
    std::vector<T> values(static_cast<std::size_t>(shape.num_elements()));
    for (T& value : values) value = static_cast<T>(scale * next());
    return Tensor(shape, std::span<const T>(values));
  }

 private:
  std::uint64_t state_;
};

}  // namespace lockstep::testing
