// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <optional>

namespace lockstep {

// Tensors made from nothing, on current_device(). InvalidArgument, with the caller's line, for an
// undefined tensor, a step of 0, a negative count, or more elements than memory can hold.
LOCKSTEP_EXPORT Tensor zeros(const Shape& shape, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor ones(const Shape& shape, DType dtype = DType::f32);
// Every element `value`, converted to dtype as by cast: integers saturate, NaN becomes 0.
LOCKSTEP_EXPORT Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
LOCKSTEP_EXPORT Tensor zeros_like(const Tensor& like,
                                  SourceLocation at = SourceLocation::current());
LOCKSTEP_EXPORT Tensor ones_like(const Tensor& like, SourceLocation at = SourceLocation::current());
// begin, begin + step, ... below end (above it for a negative step); i64 unless given.
LOCKSTEP_EXPORT Tensor range(std::int64_t begin, std::int64_t end, std::int64_t step = 1,
                             DType dtype = DType::i64,
                             SourceLocation at = SourceLocation::current());

// `count` values at equal distances, the first of which is `begin` and the last `end`, of a
// floating dtype.
LOCKSTEP_EXPORT Tensor linspace(double begin, double end, std::int64_t count,
                                DType dtype = DType::f32,
                                SourceLocation at = SourceLocation::current());
// 1 where the row is the column, else 0; as many columns as rows unless given. Of any dtype.
LOCKSTEP_EXPORT Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns = {},
                           DType dtype = DType::f32, SourceLocation at = SourceLocation::current());

// A copy of x in memory of its own on `device`. From an accelerator to the host it waits until x has
// been computed; the other ways it only puts the copy into the devices' streams.
LOCKSTEP_EXPORT Tensor copy_to(const Tensor& x, Device device,
                               SourceLocation at = SourceLocation::current());

// A value whose elements `fill(std::span<T>)` writes, on the host.
template <Element T, std::invocable<std::span<T>> Fill>
Tensor make_tensor(const Shape& shape, Fill&& fill) {
  const auto count = static_cast<std::size_t>(shape.num_elements());
  Buffer buffer = Buffer::allocate(current_host_device(), count * sizeof(T));
  fill(std::span<T>(static_cast<T*>(buffer.data()), count));
  return Tensor(std::move(buffer), dtype_of<T>, shape);
}

}  // namespace lockstep
