// SPDX-License-Identifier: Apache-2.0
#include "replica/counted_rows.h"

#include <lockstep/ops/compare.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/replica/context.h>

namespace lockstep {

std::optional<ReplicaContext::CountedRows> counted_rows_of(const Tensor& x) {
  const ReplicaContext* const replica = get_replica_context();
  if (!replica || x.rank() == 0) return std::nullopt;
  return replica->counted_rows(x.dim(0));
}

Tensor without_padding(const Tensor& x, const ReplicaContext::CountedRows& rows) {
  Shape column{x.dim(0)};
  while (column.rank() < x.rank()) column = column.with_axis(column.rank());
  return select(reshape(rows.own, column), x, 0);
}

}  // namespace lockstep
