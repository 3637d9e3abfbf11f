// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/base/dtype.h>
#include <lockstep/base/export.h>
#include <lockstep/base/shape.h>
#include <lockstep/base/source_location.h>
#include <lockstep/device/buffer.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

class Tensor;

namespace detail {

struct TensorNode;  // what a handle refers to; defined in src/tensor
LOCKSTEP_EXPORT void retain(TensorNode* node) noexcept;
LOCKSTEP_EXPORT void release(TensorNode* node) noexcept;

}  // namespace detail

// A handle to an immutable value: elements of one dtype in row-major order, a shape and a device.
// Copying a handle is cheap and shares the value. A default-constructed Tensor is undefined; asking
// it for anything but defined() throws InvalidArgument that names the caller's line. Distinct handles
// may be used from several threads at once.
//
// key() identifies the value to gradient tapes: copies share it, every op's result has a new one,
// and what is read from a variable carries the variable's.
class LOCKSTEP_EXPORT Tensor {
 public:
  Tensor() = default;
  // A scalar, so that numbers can stand where tensors are expected.
  template <Element T>
  Tensor(T value, SourceLocation at = SourceLocation::current());
  // The values of `data` in row-major order with the given shape, on current_device(). Throws
  // InvalidArgument when the counts differ.
  template <Element T>
  Tensor(Shape shape, std::span<const T> data, SourceLocation at = SourceLocation::current());
  template <Element T>
  Tensor(Shape shape, std::initializer_list<T> data, SourceLocation at = SourceLocation::current())
      : Tensor(shape, std::span<const T>(data.begin(), data.size()), at) {}
  // A view of `buffer` as it is, without a copy; the bytes must not be written afterwards.
  Tensor(Buffer buffer, DType dtype, Shape shape);

  Tensor(const Tensor& other) noexcept : node_(other.node_) {
    if (node_) detail::retain(node_);
  }
  Tensor(Tensor&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Tensor() {
    if (node_) detail::release(node_);
  }

  bool defined() const { return node_ != nullptr; }
  DType dtype(SourceLocation at = SourceLocation::current()) const;
  const Shape& shape(SourceLocation at = SourceLocation::current()) const;
  int rank(SourceLocation at = SourceLocation::current()) const { return shape(at).rank(); }
  std::int64_t dim(int axis, SourceLocation at = SourceLocation::current()) const {
    return shape(at).dim(axis, at);
  }
  std::int64_t num_elements(SourceLocation at = SourceLocation::current()) const {
    return shape(at).num_elements();
  }
  std::size_t bytes(SourceLocation at = SourceLocation::current()) const {
    return static_cast<std::size_t>(num_elements(at)) * size_of(dtype(at));
  }
  Device device(SourceLocation at = SourceLocation::current()) const;
  std::uint64_t key(SourceLocation at = SourceLocation::current()) const;
  // Read from a trainable variable: tapes record what is computed from it.
  bool trainable(SourceLocation at = SourceLocation::current()) const;

  // The same value in host memory: itself, or from an accelerator a copy, which waits until the value
  // has been computed there.
  Tensor to_host(SourceLocation at = SourceLocation::current()) const;
  // The elements of a host tensor. Throws InvalidArgument when T is not the dtype, Unavailable when
  // the tensor is on an accelerator (copy it with to_host first).
  template <Element T>
  std::span<const T> data(SourceLocation at = SourceLocation::current()) const {
    return {static_cast<const T*>(host_data(dtype_of<T>, at)),
            static_cast<std::size_t>(num_elements())};
  }
  // The same, wherever the tensor is.
  template <Element T>
  std::vector<T> to_vector(SourceLocation at = SourceLocation::current()) const {
    const Tensor here = defined() ? to_host(at) : *this;
    const auto elements = here.data<T>(at);
    return {elements.begin(), elements.end()};
  }
  // The element of a one-element tensor of any dtype, wherever it is, converted to T as by cast(),
  // integers by way of i64: they saturate, and NaN becomes 0. Throws InvalidArgument when there is
  // not exactly one.
  template <class T>
    requires std::is_arithmetic_v<T>
  T item(SourceLocation at = SourceLocation::current()) const {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>)
      return static_cast<T>(floating_item(at));
    else
      return saturated<T>(integer_item(at));
  }

  // The memory behind the value, whatever the device.
  const Buffer& buffer(SourceLocation at = SourceLocation::current()) const;
  const void* raw_data() const { return buffer().data(); }

  // "f32[2, 3]" and, for a few elements, their values.
  std::string to_string() const;

  // The same elements under another shape of as many elements, or another key; no copy.
  Tensor with_shape(const Shape& shape) const;
  Tensor with_identity(std::uint64_t key, bool trainable) const;
  // Neither another handle nor another buffer refers to the value: an op that is given the tensor
  // by move may write in place.
  bool unique() const;

 private:
  template <class T>
  static T saturated(std::int64_t value) {
    if constexpr (sizeof(T) < sizeof(value))
      return static_cast<T>(std::clamp<std::int64_t>(value, std::numeric_limits<T>::min(),
                                                     std::numeric_limits<T>::max()));
    else
      return static_cast<T>(std::is_unsigned_v<T> && value < 0 ? 0 : value);
  }
  const void* host_data(DType expected, SourceLocation at) const;
  std::int64_t integer_item(SourceLocation at) const;
  double floating_item(SourceLocation at) const;
  void fill_from(DType dtype, const Shape& shape, const void* data, std::size_t count,
                 SourceLocation at);
  const detail::TensorNode& item_node(SourceLocation at) const;
  detail::TensorNode& node(const char* op, SourceLocation at) const;

  detail::TensorNode* node_ = nullptr;
};

template <Element T>
Tensor::Tensor(T value, SourceLocation at) {
  fill_from(dtype_of<T>, Shape{}, &value, 1, at);
}

template <Element T>
Tensor::Tensor(Shape shape, std::span<const T> data, SourceLocation at) {
  fill_from(dtype_of<T>, shape, data.data(), data.size(), at);
}

// A key that no other value has; drawn from blocks per thread.
LOCKSTEP_EXPORT std::uint64_t new_tensor_key() noexcept;

}  // namespace lockstep
