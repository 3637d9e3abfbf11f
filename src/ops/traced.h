// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/reduce_op.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/operand.h>

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ops/convolution.h"
#include "ops/elementwise_kernels.h"
#include "ops/indices.h"
#include "ops/operands.h"
#include "ops/pool_kernels.h"
#include "ops/random_kernels.h"

// The bodies of ops on TPUs, each in its family's *_xla.cc: they add to the trace of the step that is
// being traced, and throw FailedPrecondition outside one. Callers have checked shapes and dtypes.
// Values are computed as on CPUs, 16-bit floats in f32 and rounded once, but compilers may reorder.
namespace lockstep::traced {

// Whether an op on this device goes here.
inline bool on(Device device) { return device.kind == DeviceKind::xla; }
inline bool any(std::initializer_list<const Tensor*> inputs) {
  for (const Tensor* input : inputs)
    if (input->defined() && on(input->device())) return true;
  return false;
}

// elementwise_xla.cc
Tensor unary(UnaryOp op, const Tensor& x, SourceLocation at);
Tensor binary(BinaryOp op, const Operand& a, const Operand& b, const OperandPair& pair);
Tensor compare(CompareOp op, const Operand& a, const Operand& b, const OperandPair& pair);
// `instruction`: and, or.
Tensor logical(std::string_view instruction, const Operand& a, const Operand& b,
               const OperandPair& pair);
Tensor predicate(PredicateOp op, const Tensor& x, SourceLocation at);
Tensor select(const Tensor& condition, const Operand& a, const Operand& b, const OperandPair& pair);
Tensor cast(const Tensor& x, DType dtype);

// shape_ops_xla.cc
Tensor transpose(const Tensor& x, std::span<const int> permutation);
Tensor broadcast_to(const Tensor& x, const Shape& shape);
Tensor concat(std::span<const Tensor> parts, int axis);
Tensor slice(const Tensor& x, std::span<const std::int64_t> begin,
             std::span<const std::int64_t> extents);
Tensor pad(const Tensor& x, std::span<const std::int64_t> before,
           std::span<const std::int64_t> after, double value);
// A number for each axis of the whole; strides may be negative.
Tensor strided_slice(const Tensor& x, std::span<const std::int64_t> begin,
                     std::span<const std::int64_t> extents, std::span<const std::int64_t> strides);
Tensor strided_slice_gradient(const Tensor& dy, const Shape& shape,
                              std::span<const std::int64_t> begin,
                              std::span<const std::int64_t> strides);

// gather_xla.cc
// Along an axis of extent `rows`. An index out of range reads the nearest row, and its update is
// dropped. `base` may be undefined: zeros.
Tensor gather(const Tensor& x, const Tensor& indices, int axis, const Shape& shape);
Tensor scatter_add(const Tensor& base, const Tensor& indices, const Tensor& updates, int axis,
                   const Shape& shape);
// See ops/indices.h.
Tensor row_numbers(const Tensor& indices, std::span<const std::int64_t> extents, Outside outside);
Tensor numbers_along(const Tensor& indices, const Shape& shape, int axis);
Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype, const Shape& shape);

// reduce_xla.cc; `instruction`: add, multiply, maximum, minimum, and, or; a sum over `divisor`.
Tensor reduce(std::string_view instruction, const Tensor& x, std::span<const std::int64_t> axes,
              const Shape& shape, std::int64_t divisor);
Tensor arg_extreme(const Tensor& x, int axis, bool largest);

// cumsum_xla.cc
Tensor cumsum(const Tensor& x, int axis, bool exclusive, bool reverse);

// matmul_xla.cc; the batch axes of a and b broadcast to those of `shape`.
Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options, const Shape& shape);
Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, const Shape& shape);

// conv_xla.cc
Tensor convolve(const Convolution& conv, const Tensor& x, const Tensor& w, const Tensor& bias,
                bool relu);
Tensor convolve_input_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w);
Tensor convolve_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy);

// pool_xla.cc; `taps` holds the number of each window's largest tap.
struct Maxima {
  Tensor y, taps;
};
Maxima max_pool(const Pool& pool, const Tensor& x, bool keep_taps, DType tap_type);
Tensor pool_scatter(const Pool& pool, const Tensor& dy, const Tensor& taps);
Tensor pool_gather(const Pool& pool, const Tensor& x, const Tensor& taps);
Tensor mean_pool(const Pool& pool, const Tensor& x);
Tensor mean_pool_gradient(const Pool& pool, const Tensor& dy);

// random_xla.cc; drawn from the stream, which is passed as arguments.
Tensor uniform(const PhiloxStream& from, const Shape& shape, double low, double high, DType dtype);
Tensor normal(const PhiloxStream& from, const Shape& shape, double mean, double stddev,
              DType dtype);
Tensor truncated_normal(const PhiloxStream& from, const Shape& shape, double mean, double stddev,
                        DType dtype);
// low + a number below `range`; and the numbers below n in the order of random keys, whose last
// bits, those of `number`, are the numbers.
Tensor uniform_int(const PhiloxStream& from, const Shape& shape, std::uint64_t low,
                   std::uint64_t range, DType dtype);
Tensor permutation(const PhiloxStream& from, std::int64_t n, std::uint64_t number);
// True where the word is below `threshold`.
Tensor bernoulli(const PhiloxStream& from, const Shape& shape, std::uint64_t threshold);

// softmax_xla.cc
Tensor softmax(const Tensor& x, int axis, bool log);
// A loss per row, NaN where a label is out of range.
Tensor sparse_cross_entropy(const Tensor& labels, const Tensor& logits);
Tensor cross_entropy(const Tensor& labels, const Tensor& logits);

// sort_xla.cc; the first k along the axis.
struct Sorted {
  Tensor values, indices;
};
Sorted sort(const Tensor& x, int axis, std::int64_t k, bool descending);

// update_xla.cc
Tensor is_finite_all(std::span<const Tensor> tensors);
Tensor global_norm(std::span<const Tensor> tensors);

// collectives_xla.cc: over all replicas; the values have one dtype.
std::vector<Tensor> all_reduce(std::span<const Tensor> values, int replicas, ReduceOp op);
Tensor all_gather(const Tensor& value, int replicas);
// The sum over replicas, of which each keeps the part of the rows that all_gather put together.
Tensor reduce_scatter(const Tensor& value, int replicas);
// True for the first `count` of `rows` rows, and an i64 scalar; both counts may change from step to
// step.
Tensor first_rows(std::int64_t rows, std::int64_t count);
Tensor varying_number(std::int64_t value);

}  // namespace lockstep::traced
