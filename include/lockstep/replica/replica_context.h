// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/reduce_op.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/nest.h>
#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// What the commit point of a gradient reduction decided, the same on every replica.
struct ReducedGradients {
  // Sum over all replicas, of each variable; undefined where no replica used the variable. They are
  // views of a shared arena: tensors like any other, but best dropped before the next step.
  std::vector<Tensor> gradients;
  // Boolean scalar: some replica voted to skip the step (ReplicaContext::vote_skip).
  Tensor skip;
};

// The sum of one step's gradients over all replicas, while they are being computed: `ready` hands
// over one gradient after the other in any order, full buckets are reduced in the background, and
// `finish` is the commit point, after which every replica holds the same sums. One reduction at a
// time per replica; used by the replica's own thread.
class LOCKSTEP_EXPORT GradientReduction {
 public:
  virtual ~GradientReduction();
  // Where the gradient of variable `index` is best written; copied there by ready otherwise.
  virtual Buffer place(std::size_t index) = 0;
  // The local gradient, of the variable's shape and dtype; undefined when the replica did not use
  // the variable: it then contributes zero. Once per variable.
  virtual void ready(std::size_t index, const Tensor& gradient) = 0;
  // Waits for the sums. Every variable must be ready. Throws what stopped another replica.
  virtual ReducedGradients finish() = 0;
};

// A step function's view of its replica. The current one comes from get_replica_context(); with no
// strategy there is a default context of one replica, so that a step function is an ordinary
// function. Collectives must be called by every replica in the same order; results are equal on all
// of them. A context serves the thread of its step function: elsewhere (a merge_call's function, a
// thread that did not inherit it, after the step) collectives throw FailedPrecondition.
class LOCKSTEP_EXPORT ReplicaContext {
 public:
  virtual ~ReplicaContext();

  // This replica's number among all replicas of all workers, 0 .. num_replicas_in_sync() - 1.
  virtual int replica_index() const = 0;
  virtual int num_replicas_in_sync() const = 0;
  // This replica's number among those of its process.
  virtual int local_index() const = 0;
  // replica_index() as an i32 scalar, so that a step that uses it can be traced.
  Tensor replica_id_in_sync_group() const {
    return Tensor(static_cast<std::int32_t>(replica_index()));
  }

  // Sum or mean of every replica's value; shapes and dtypes must agree. Differentiable: the
  // gradient is all_reduce with the same op. Mean of integers throws InvalidArgument. Sums of
  // 16-bit values are rounded at every addition, means are taken in f32 and rounded once.
  virtual Tensor all_reduce(ReduceOp op, const Tensor& value,
                            SourceLocation at = SourceLocation::current()) = 0;
  // All leaves of a nest; numbers are reduced in their own type.
  template <Nest T>
    requires(!std::same_as<T, Tensor>)
  T all_reduce(ReduceOp op, const T& nest, SourceLocation at = SourceLocation::current()) {
    std::vector<Tensor> leaves = flatten(nest);
    for (Tensor& leaf : leaves) leaf = all_reduce(op, leaf, at);
    return with_leaves(nest, leaves);
  }
  // Every replica's value joined along axis 0 in replica order; row counts may differ, the other
  // extents must agree; rank >= 1. Differentiable: the gradient is the sum over replicas, cut to the own rows.
  virtual Tensor all_gather(const Tensor& value, SourceLocation at = SourceLocation::current()) = 0;

  // Rows of the batch this step was run with: this replica's and all replicas'; empty when run was
  // given no distributed batch.
  struct Rows {
    std::int64_t local = 0;
    std::int64_t global = 0;
  };
  virtual std::optional<Rows> batch_rows() const = 0;
  // Where batches are padded, what a loss or metric of `rows` rows is to know: which of them are the
  // batch's, a boolean [rows], and how many all replicas have, an i64 scalar. Empty: all rows count.
  struct CountedRows {
    Tensor own;
    Tensor global;
  };
  virtual std::optional<CountedRows> counted_rows(std::int64_t rows) const;
  // The sum of a count over all replicas as an i64 scalar; a collective.
  Tensor global_count(std::int64_t local);
  Tensor global_count(const Tensor& local);

  // Asks that this step's update be skipped on every replica when `skip` (a boolean scalar) holds
  // here; takes effect at the next commit point, once. Throws InvalidArgument for another tensor.
  // Votes end with the step function, and with an optimizer's step that fails. Without a strategy no
  // one knows where a step ends: who gives up a step between vote and optimizer takes the vote back.
  void vote_skip(const Tensor& skip);
  // Takes this replica's votes back; what they came to, false without any. No collective: what
  // updates a replica by itself asks this.
  virtual Tensor take_vote();

  // Starts the reduction of the gradients of `variables`; the same list on every replica.
  virtual std::unique_ptr<GradientReduction> begin_gradient_reduction(
      std::span<const Variable> variables, SourceLocation at) = 0;

  // Waits for every local replica, then runs `merge` once, in cross-replica context, on replica 0's
  // thread with recording suspended, and returns on all. Called by every replica. The function has
  // left the replica: collectives of a context that it captured throw FailedPrecondition.
  virtual void merge_call(const std::function<void()>& merge,
                          SourceLocation at = SourceLocation::current()) = 0;

  // For optimizers: an update of these variables broke off on this replica, for this reason, so
  // that replicas may differ. They become invalid (Variable::invalidate) once the step is over.
  virtual void invalidate(std::span<const Variable> variables, const std::string& reason) = 0;

  // Hands the context on to a thread that the step function starts; in replica/context.h.
  class Inherit;

 protected:
  Tensor votes_;  // to skip the step, so far; undefined: none
};

}  // namespace lockstep
