// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <vector>

namespace lockstep::testing {

// References for ops that move elements: what stands at each place of the result.

using Place = std::vector<std::int64_t>;

// The number of a place of a row-major shape.
inline std::size_t number_of(const Shape& shape, const Place& place) {
  std::int64_t number = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    number = number * shape[axis] + place.at(static_cast<std::size_t>(axis));
  return static_cast<std::size_t>(number);
}

// Calls f(place) for every place of a shape, in row-major order.
template <class F>
void for_each_place(const Shape& shape, F&& f) {
  Place place(static_cast<std::size_t>(shape.rank()));
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    f(place);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      std::int64_t& index = place[static_cast<std::size_t>(axis)];
      if (++index < shape[axis]) break;
      index = 0;
    }
  }
}

// The elements f(place) of a shape.
template <class F>
std::vector<double> by_index(const Shape& shape, F&& f) {
  std::vector<double> elements;
  for_each_place(shape, [&](const Place& place) { elements.push_back(f(place)); });
  return elements;
}

inline double element_at(const Tensor& x, const Place& place) {
  return x.data<double>()[number_of(x.shape(), place)];
}

// 0, 1, 2, ... in the given shape.
inline Tensor counted(const Shape& shape, DType dtype = DType::f64) {
  return reshape(range(0, shape.num_elements(), 1, dtype), shape);
}

inline constexpr DType kAllDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                       DType::i32, DType::i64, DType::u8,  DType::boolean};

}  // namespace lockstep::testing
