// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/losses.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>

#include <optional>
#include <variant>

#include "replica/counted_rows.h"

namespace lockstep::nn {
namespace {

constexpr const char* kAverage = "compute_average_loss";

// Known on the host, or computed.
using Divisor = std::variant<std::int64_t, Tensor>;

using Counted = std::optional<ReplicaContext::CountedRows>;

Divisor rows_of_all_replicas(std::int64_t rows, const Counted& counted, SourceLocation at) {
  ReplicaContext* const replica = get_replica_context();
  if (!replica)
    throw FailedPrecondition(
        message(kAverage,
                "the number of rows is not known in cross-replica context; call it in "
                "the function given to Strategy::run, or pass {.global_batch_size = n}"),
        at);
  if (counted) return counted->global;
  const auto batch = replica->batch_rows();
  if (!batch)
    return replica->num_replicas_in_sync() == 1 ? Divisor(rows) : replica->global_count(rows);
  require(rows == batch->local, at, kAverage, "got losses of ", rows,
          " rows, but this replica's part of the batch has ", batch->local,
          "; say what to divide by: {.count = context.global_count(n)}, n being the number of "
          "examples of this replica, or {.global_batch_size = n}");
  return batch->global;
}

Divisor divisor_of(const Tensor& per_example, const AverageLossOptions& options,
                   const Counted& counted, SourceLocation at) {
  require(!options.global_batch_size || !options.count.defined(), at, kAverage,
          "expected one divisor, got both a global_batch_size and a count");
  if (options.global_batch_size) {
    const std::int64_t size = options.global_batch_size->value();
    require(size >= 0, at, kAverage, "expected a global_batch_size of 0 or more, got ", size);
    return size;
  }
  if (!options.count.defined()) return rows_of_all_replicas(per_example.dim(0), counted, at);
  require(options.count.num_elements() == 1 && options.count.dtype() != DType::boolean, at,
          kAverage, "expected a count that is a scalar, got ", options.count);
  return options.count;
}

// Weights as they broadcast against losses: without, or with, a last axis of extent 1.
Tensor aligned(const Tensor& weight, const Shape& losses) {
  const Shape& shape = weight.shape();
  if (shape.rank() == losses.rank() + 1 && shape.dim(-1) == 1)
    return reshape(weight, shape.without_axis(-1));
  if (shape.rank() > 0 && shape.rank() + 1 == losses.rank())
    return reshape(weight, shape.with_axis(shape.rank()));
  return weight;
}

Tensor weighted(const Tensor& losses, const Tensor& weight, SourceLocation at) {
  const Tensor factor = cast(aligned(weight, losses.shape()), losses.dtype(), at);
  Tensor product = mul(Operand(losses, at), Operand(factor, at));
  require(product.shape() == losses.shape(), at, kAverage, "sample_weight ", weight.shape(),
          " does not broadcast to losses ", losses.shape());
  return product;
}

Tensor divided(const Tensor& total, const Divisor& divisor) {
  const auto* const rows = std::get_if<std::int64_t>(&divisor);
  if (rows && *rows > 0) return total / static_cast<double>(*rows);
  const Tensor count = rows ? Tensor(0.0) : stop_gradient(std::get<Tensor>(divisor));
  const Tensor number = cast(count, total.dtype());
  const Tensor none = equal(number, 0);
  return select(none, 0, total / select(none, 1, number));
}

}  // namespace

Tensor compute_average_loss(const Tensor& per_example, const AverageLossOptions& options,
                            SourceLocation at) {
  require(per_example.defined() && is_floating(per_example.dtype()) && per_example.rank() > 0, at,
          kAverage, "expected floating losses of rank 1 or more, one per example, got ",
          per_example);
  const Counted counted = counted_rows_of(per_example);
  const Divisor divisor = divisor_of(per_example, options, counted, at);
  const DType dtype = per_example.dtype();
  Tensor losses = dtype == DType::f64 ? per_example : cast(per_example, DType::f32, at);
  if (options.sample_weight.defined()) losses = weighted(losses, options.sample_weight, at);
  if (counted) losses = without_padding(losses, *counted);
  return cast(divided(sum(losses, {}, at), divisor), dtype, at);
}

Tensor scale_regularization_loss(const Tensor& loss, SourceLocation at) {
  const ReplicaContext& replica = require_replica_context("scale_regularization_loss", at);
  return sum(loss, {}, at) / static_cast<double>(replica.num_replicas_in_sync());
}

}  // namespace lockstep::nn
