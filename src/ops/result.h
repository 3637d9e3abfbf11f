// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/tensor/placement.h>
#include <lockstep/tensor/tensor.h>

#include <initializer_list>
#include <span>

namespace lockstep {

// What every op's .cc starts with: where it runs, whether its inputs agree, memory for its result.

// Where an op on `inputs` runs and its result lives: the device that they share; for host tensors
// of several logical CPUs, which share memory, the current device. Host tensors go along to an
// accelerator (launch.h; on TPUs ops/traced.h). Undefined inputs (an absent bias) are passed over.
// Throws InvalidArgument for tensors of two accelerators or when none is defined.
Device common_device(const char* op, std::span<const Tensor* const> inputs, SourceLocation at);
inline Device common_device(const char* op, std::initializer_list<const Tensor*> inputs,
                            SourceLocation at) {
  return common_device(op, {inputs.begin(), inputs.size()}, at);
}

// Throws InvalidArgument unless x is defined; `what` names the argument.
inline void require_defined(const char* op, const char* what, const Tensor& x, SourceLocation at) {
  require(x.defined(), at, op, what, " is undefined; pass a tensor that holds a value");
}

// Throws InvalidArgument naming both dtypes unless they agree.
inline void require_same_dtype(const char* op, const Tensor& a, const Tensor& b,
                               SourceLocation at) {
  require(a.dtype() == b.dtype(), at, op, "expected two tensors of one dtype, got ",
          name_of(a.dtype()), a.shape(), " and ", name_of(b.dtype()), b.shape(),
          "; convert one with cast()");
}

// Throws InvalidArgument that names the dtype unless `ok`; `expected` reads "f32 or f64".
inline void require_dtype(bool ok, const char* op, const Tensor& x, const char* expected,
                          SourceLocation at) {
  require(ok, at, op, "expected a tensor of ", expected, ", got ", name_of(x.dtype()), x.shape());
}

// `axis` of a tensor of `rank`, counted from the front. Throws InvalidArgument out of range.
inline int checked_axis(const char* op, int axis, const Shape& shape, SourceLocation at) {
  const int rank = shape.rank();
  require(rank > 0, at, op, "axis ", axis, " of a scalar: shape ", shape, " has no axes");
  require(axis >= -rank && axis < rank, at, op, "axis ", axis, " is out of range for shape ", shape,
          "; expected ", -rank, " to ", rank - 1);
  return axis < 0 ? axis + rank : axis;
}

// An op's result, not yet written: in the current Placement if it fits, else from the device's
// pool.
inline Tensor make_result(Device device, DType dtype, const Shape& shape) {
  ensure(device.kind != DeviceKind::xla, "make_result", "memory asked for on ", device);
  return Tensor(allocate_result(device, dtype, shape), dtype, shape);
}

// The elements of a host tensor, unchecked: T is the element type that the caller dispatched on.
template <Element T>
const T* read(const Tensor& x) {
  return static_cast<const T*>(x.raw_data());
}
// The same for a result that its op is still writing.
template <class T>
T* write(Tensor& result) {
  return static_cast<T*>(result.buffer().data());
}

}  // namespace lockstep
