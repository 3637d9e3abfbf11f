// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/reduce_op.h>
#include <lockstep/base/source_location.h>
#include <lockstep/replica/per_replica.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/indexed_slices.h>
#include <lockstep/tensor/nest.h>
#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

// What the commit point of a gradient reduction decided, the same on every replica.
struct ReducedGradients {
  // Sum over all replicas, of each variable; undefined where no replica used the variable. They are
  // views of a shared arena: tensors like any other, but best dropped before the next step.
  std::vector<Tensor> gradients;
  // Boolean scalar: some replica voted to skip the step (ReplicaContext::vote_skip).
  Tensor skip;
  // Of each variable whose gradient is of a few rows: which rows gradients[i] holds, i64, each once
  // and ascending; the others are zero. Undefined: all rows. Empty: all rows of all variables.
  std::vector<Tensor> rows = {};
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
  // The same, of a table of which a few rows were read. On CPUs it is reduced by rows where that is
  // less than the table: of 256 KiB or more, and at most half as many rows on all replicas together
  // as the table has. Of which variables, the first reduction of a list of variables decides, by what
  // replica 0 read.
  virtual void ready(std::size_t index, const IndexedSlices& gradient);
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
  // Rows of every replica's value, which stay rows: one replica's after the other's, so that a row
  // that several name stands there for each. The mean divides them by the number of replicas. Shapes,
  // and dtypes of values and of indices, must agree; the counts of rows may differ, but on TPUs.
  IndexedSlices all_reduce(ReduceOp op, const IndexedSlices& value,
                           SourceLocation at = SourceLocation::current());
  // Every replica's value joined along axis 0 in replica order; row counts may differ, the other
  // extents must agree; rank >= 1. Differentiable: the gradient is the sum over replicas, cut to the own rows.
  virtual Tensor all_gather(const Tensor& value, SourceLocation at = SourceLocation::current()) = 0;
  // The same along any axis, negative ones counted from the end.
  Tensor all_gather(const Tensor& value, int axis, SourceLocation at = SourceLocation::current());

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
  void merge_call(const std::function<void()>& merge,
                  SourceLocation at = SourceLocation::current());
  // The same with what the local replicas hand over: merge(values...) gets a PerReplica of each, in
  // replica order. What it returns is returned on all of them, of a PerReplica each one's own.
  template <class F, Nest... Args>
    requires(sizeof...(Args) > 0 && std::is_invocable_v<const F&, const PerReplica<Args>&...>)
  auto merge_call(const F& merge, const Args&... args) {
    using R = std::remove_cvref_t<std::invoke_result_t<const F&, const PerReplica<Args>&...>>;
    struct HandedOver {
      std::tuple<const Args&...> arguments;
      std::optional<typename detail::Local<detail::OrNothing<R>>::type> result;
    } own{{args...}, {}};
    const auto merged = [&](std::span<void* const> all) {
      const auto of = [&](std::size_t r) { return static_cast<HandedOver*>(all[r]); };
      const auto call = [&]<std::size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
        const auto gathered = [&]<std::size_t k>(std::integral_constant<std::size_t, k>) {
          std::vector<std::tuple_element_t<k, std::tuple<Args...>>> values;
          for (std::size_t r = 0; r < all.size(); ++r)
            values.push_back(std::get<k>(of(r)->arguments));
          return PerReplica(std::move(values));
        };
        return merge(gathered(std::integral_constant<std::size_t, i>())...);
      };
      if constexpr (std::is_void_v<R>) {
        call(std::index_sequence_for<Args...>());
      } else {
        const R result = call(std::index_sequence_for<Args...>());
        for (std::size_t r = 0; r < all.size(); ++r)
          of(r)->result.emplace(detail::local_value(result, r));
      }
    };
    merge_all(merged, &own, SourceLocation{});
    if constexpr (!std::is_void_v<R>) return *std::move(own.result);
  }

  // What merge_call with values is made of: the function gets what each local replica hands over.
  virtual void merge_all(const std::function<void(std::span<void* const>)>& merge, void* own,
                         SourceLocation at) = 0;

  // What f(variable, args...) returns, in which reading, assigning and update_values concern this
  // replica's component alone, whatever the variable's aggregation: an assignment that needs no
  // agreement, as every replica makes the same. Strategy::update in a replica.
  template <class F, class... Args>
  decltype(auto) update(Variable variable, const F& f,
                        const Args&... args);  // in replica/context.h

  // For optimizers: an update of these variables broke off on this replica, for this reason, so
  // that replicas may differ. They become invalid (Variable::invalidate) once the step is over.
  virtual void invalidate(std::span<const Variable> variables, const std::string& reason) = 0;

  // Hands the context on to a thread that the step function starts; in replica/context.h.
  class Inherit;

 private:
  // Of a variable that an update may concern; throws FailedPrecondition for another strategy's.
  const std::shared_ptr<ReplicaGroup>& group_of(const Variable& variable) const;

 protected:
  Tensor votes_;  // to skip the step, so far; undefined: none
};

}  // namespace lockstep
