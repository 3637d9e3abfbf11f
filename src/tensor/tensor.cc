// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/tensor.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <sstream>

#include "device/accelerator.h"
#include "device/xla/trace.h"
#include "tensor/convert.h"
#include "tensor/node.h"
#include "tensor/visit_dtype.h"

namespace lockstep {

void detail::retain(TensorNode* node) noexcept {
  node->references.fetch_add(1, std::memory_order_relaxed);
}

void detail::release(TensorNode* node) noexcept {
  if (node->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node;
}

std::uint64_t new_tensor_key() noexcept {
  constexpr std::uint64_t kBlock = 1 << 16;
  static std::atomic<std::uint64_t> next_block{1};  // key 0 is never given
  thread_local std::uint64_t next = 0, end = 0;
  if (next == end) {
    next = next_block.fetch_add(kBlock, std::memory_order_relaxed);
    end = next + kBlock;
  }
  return next++;
}

Tensor::Tensor(Buffer buffer, DType dtype, Shape shape) {
  const std::size_t needed = static_cast<std::size_t>(shape.num_elements()) * size_of(dtype);
  ensure(buffer.bytes() >= needed, "Tensor", "a buffer of ", buffer.bytes(), " bytes cannot hold ",
         name_of(dtype), shape);
  node_ = new detail::TensorNode{
      .dtype = dtype, .key = new_tensor_key(), .shape = shape, .buffer = std::move(buffer)};
}

void Tensor::fill_from(DType dtype, const Shape& shape, const void* data, std::size_t count,
                       SourceLocation at) {
  require(static_cast<std::size_t>(shape.num_elements()) == count, at, "Tensor", "shape ", shape,
          " needs ", shape.num_elements(), " values, got ", count);
  const std::size_t bytes = count * size_of(dtype);
  Buffer buffer = Buffer::allocate(current_device(), bytes);
  if (!buffer.device().is_host())
    copy_bytes(buffer.device(), buffer.data(), Device{}, data, bytes);
  else if (count)
    std::memcpy(buffer.data(), data, bytes);
  *this = Tensor(std::move(buffer), dtype, shape);
}

detail::TensorNode& Tensor::node(const char* op, SourceLocation at) const {
  require(node_ != nullptr, at, op,
          "the tensor is undefined (default-constructed or moved from); give it a value first");
  return *node_;
}

DType Tensor::dtype(SourceLocation at) const { return node("Tensor::dtype", at).dtype; }
const Shape& Tensor::shape(SourceLocation at) const { return node("Tensor::shape", at).shape; }
Device Tensor::device(SourceLocation at) const {
  return node("Tensor::device", at).buffer.device();
}
std::uint64_t Tensor::key(SourceLocation at) const { return node("Tensor::key", at).key; }
bool Tensor::trainable(SourceLocation at) const { return node("Tensor::trainable", at).trainable; }
const Buffer& Tensor::buffer(SourceLocation at) const { return node("Tensor::buffer", at).buffer; }

bool Tensor::unique() const {
  return node_ && node_->references.load(std::memory_order_acquire) == 1 && node_->buffer.unique();
}

Tensor Tensor::with_shape(const Shape& shape) const {
  ensure(shape.num_elements() == num_elements(), "Tensor::with_shape", this->shape(), " to ",
         shape);
  return Tensor(buffer(), dtype(), shape);
}

Tensor Tensor::with_identity(std::uint64_t key, bool trainable) const {
  const detail::TensorNode& from = node("Tensor::with_identity", {});
  Tensor result;
  result.node_ = new detail::TensorNode{.dtype = from.dtype,
                                        .trainable = trainable,
                                        .key = key,
                                        .shape = from.shape,
                                        .buffer = from.buffer};
  return result;
}

Tensor Tensor::to_host(SourceLocation at) const {
  return node("Tensor::to_host", at).buffer.device().is_host() ? *this
                                                               : copy_to(*this, Device{}, at);
}

const void* Tensor::host_data(DType expected, SourceLocation at) const {
  const detail::TensorNode& own = node("Tensor::data", at);
  require(own.dtype == expected, at, "Tensor::data", "expected element type ", name_of(own.dtype),
          ", got ", name_of(expected));
  if (device().kind == DeviceKind::xla) xla::require_value(buffer(), "Tensor::data", at);
  if (!device().is_host())
    throw Unavailable(message("Tensor::data", "the tensor is on ", device().to_string(),
                              "; copy it to the host first"),
                      at);
  return raw_data();
}

const detail::TensorNode& Tensor::item_node(SourceLocation at) const {
  const detail::TensorNode& own = node("Tensor::item", at);
  require(own.shape.num_elements() == 1, at, "Tensor::item", "expected one element, got shape ",
          own.shape);
  return own;
}

namespace {

Tensor element_on_host(const Tensor& x, SourceLocation at) {
  if (x.device().kind == DeviceKind::xla) xla::require_value(x.buffer(), "Tensor::item", at);
  return copy_to(x, Device{});
}

}  // namespace

std::int64_t Tensor::integer_item(SourceLocation at) const {
  if (!item_node(at).buffer.device().is_host()) return element_on_host(*this, at).integer_item(at);
  return visit_dtype(item_node(at).dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<std::int64_t>(data<T>(at)[0]);
    else
      return detail::converted<std::int64_t>(floating_item(at));
  });
}

double Tensor::floating_item(SourceLocation at) const {
  if (!item_node(at).buffer.device().is_host()) return element_on_host(*this, at).floating_item(at);
  return visit_dtype(item_node(at).dtype, [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(data<T>(at)[0]);
    else
      return static_cast<double>(static_cast<float>(data<T>(at)[0]));
  });
}

std::string Tensor::to_string() const {
  if (!defined()) return "undefined";
  std::ostringstream out;
  out << name_of(dtype()) << shape().to_string();
  constexpr std::int64_t kShown = 16;
  if (num_elements() > kShown || !device().is_host()) return std::move(out).str();
  out << " {";
  visit_dtype(dtype(), [&]<class T>(T) {
    const char* separator = "";
    for (const T& element : data<T>()) {
      if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
        out << separator << static_cast<float>(element);
      else
        out << separator << +element;
      separator = ", ";
    }
  });
  out << "}";
  return std::move(out).str();
}

}  // namespace lockstep
