// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/tensor/indexed_slices.h>
#include <lockstep/tensor/state.h>
#include <lockstep/tensor/tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

class ReplicaGroup;
class Variable;
template <std::size_t n, class F>
void update_values(const std::array<Variable, n>& variables, F&& f,
                   SourceLocation at = SourceLocation::current());

// When the components of a variable are brought together: at every assignment in a replica
// (on_write), or when it is read outside replicas (on_read). `automatic` is on_write.
enum class VariableSynchronization { automatic, none, on_write, on_read };
// How the replicas' values are combined then.
enum class VariableAggregation { none, sum, mean, only_first_replica };

struct VariableOptions {
  std::string name = "variable";
  bool trainable = true;  // on_read variables are never trainable
  VariableSynchronization synchronization = VariableSynchronization::automatic;
  VariableAggregation aggregation = VariableAggregation::none;
  // What its value is cast to where it is used, for those who ask in what it is computed with; unset: its
  // own dtype.
  std::optional<DType> compute_dtype = {};
};

// A mutable tensor: a cheap handle to shared state. Made inside Strategy::scope() it is mirrored:
// one component per replica, equal at the start (evaluated once, the chief's value). Made outside
// it has a single component. In a replica context reads and assignments concern the replica's own
// component unless the aggregation says otherwise; each replica's thread may use its component
// freely.
//
//   assign* in a replica     on_write: none - own component only; sum, mean, only_first_replica - a
//                            collective, all components get the combined value. on_read: own
//                            component.
//   assign* outside          every component; on_read with sum: assign divides by the number of
//                            replicas, assign_add and assign_sub throw InvalidArgument.
//   read in a replica        own component
//   read outside             on_write: component 0; on_read: combined over all replicas, which is
//                            a collective across workers; aggregation none throws InvalidArgument.
//
// An update that broke off on one replica leaves the variables it concerned invalid: reading them,
// or changing what they hold, throws FailedPrecondition with the reason until assign outside
// replicas, or set_local_value of every component, gives them a value again.
//
// Reading or assigning from a thread that is in no replica while a run is active throws
// FailedPrecondition, as does use under another strategy.
class LOCKSTEP_EXPORT Variable {
 public:
  // Throws InvalidArgument for synchronization none, mean of a dtype not floating, or no value. In a
  // step: a collective, replica 0's value; FailedPrecondition where names differ, and on TPUs.
  explicit Variable(Tensor initial, VariableOptions options = {},
                    SourceLocation at = SourceLocation::current());
  Variable(const Variable&) = default;  // a move is a copy: no handle is ever without its state
  Variable& operator=(const Variable&) = default;
  // A variable of zeros with the replicas, dtype and shape of `like`: an optimizer slot. Not
  // trainable; legal in any context, without communication.
  static Variable zeros_like(const Variable& like, std::string name);
  // The same of another shape and dtype, whose elements are all `start`; with `summed` it is on_read
  // with aggregation sum.
  static Variable slot_of(const Variable& variable, const Shape& shape, DType dtype, double start,
                          std::string name, bool summed = false);

  const std::string& name() const;
  // Gives it another name: for models that number their layers, before other threads know the
  // variable.
  void rename(std::string name);
  DType dtype() const;
  DType compute_dtype() const;  // of VariableOptions, else dtype()
  const Shape& shape() const;
  std::int64_t num_elements() const { return shape().num_elements(); }
  bool trainable() const;
  VariableSynchronization synchronization() const;
  VariableAggregation aggregation() const;
  // What tapes know the variable by: the key of every value read from it, unless it is on_read.
  std::uint64_t key() const;
  // How many variables of its group were made before it: what the same variable has on every worker,
  // when names repeat. -1 without a group, and for slots.
  std::int64_t number() const;

  Tensor read(SourceLocation at = SourceLocation::current()) const;
  operator Tensor() const { return read(); }  // NOLINT: reads wherever a tensor is expected

  // Shapes and dtypes must be the variable's, else InvalidArgument. Returns the value that a read
  // gives afterwards, in a replica; outside, on_read variables return an undefined tensor.
  Tensor assign(const Tensor& value, SourceLocation at = SourceLocation::current());
  Tensor assign_add(const Tensor& value, SourceLocation at = SourceLocation::current());
  Tensor assign_sub(const Tensor& value, SourceLocation at = SourceLocation::current());

  // Rows of the value, changed by those of `slices`, of the variable's shape, one after the other: a
  // row that several name is changed by each. In a replica slices of on_write variables are brought
  // together as all_reduce does, or all are replica 0's, before every replica changes its component;
  // on_read variables throw Unimplemented, and so do scatter_min, scatter_max and scatter_update where
  // the aggregation is sum or mean. All but scatter_add and scatter_sub are computed on the host,
  // Unimplemented in a traced step. Throws InvalidArgument as assign, for indices outside, and for
  // integers divided by 0.
  Tensor scatter_add(const IndexedSlices& slices, SourceLocation at = SourceLocation::current());
  Tensor scatter_sub(const IndexedSlices& slices, SourceLocation at = SourceLocation::current());
  Tensor scatter_mul(const IndexedSlices& slices, SourceLocation at = SourceLocation::current());
  Tensor scatter_div(const IndexedSlices& slices, SourceLocation at = SourceLocation::current());
  Tensor scatter_min(const IndexedSlices& slices, SourceLocation at = SourceLocation::current());
  Tensor scatter_max(const IndexedSlices& slices, SourceLocation at = SourceLocation::current());
  Tensor scatter_update(const IndexedSlices& slices, SourceLocation at = SourceLocation::current());

  // This process's components in replica order, whatever the context, of an invalid variable, too;
  // not while a run is active.
  std::vector<Tensor> local_values(SourceLocation at = SourceLocation::current()) const;
  // Replaces component `local_replica` only; for restoring and for tests.
  void set_local_value(std::size_t local_replica, const Tensor& value);
  // All components may be wrong from now on, for this reason. Between runs; in a step function it
  // is ReplicaContext::invalidate.
  void invalidate(const std::string& reason);
  bool valid() const;

  // The group whose replicas the components belong to; null for a variable made outside any scope.
  const std::shared_ptr<ReplicaGroup>& group() const;
  // A visitor that only reads an invalid variable gets FailedPrecondition after its visit.
  void visit_state(StateVisitor& visitor);

  // The same variable, not an equal value.
  friend bool operator==(const Variable& a, const Variable& b) { return a.state_ == b.state_; }

  struct State;

 private:
  explicit Variable(std::shared_ptr<State> state) : state_(std::move(state)) {}
  template <std::size_t n, class F>
  friend void update_values(const std::array<Variable, n>& variables, F&& f, SourceLocation at);
  static void require_distinct(std::span<const Variable> variables, SourceLocation at);
  Tensor take(SourceLocation at) const;
  void put(Tensor value) const;

  std::shared_ptr<State> state_;
};

// Updates several variables at once, in place where nobody else holds their values: f(values) gets
// this replica's components (component 0 outside replicas: all are updated alike only in a replica)
// as std::array<Tensor, n>& that it may move from, and leaves the new values there. When f throws,
// what it left is put back, so an f that moves a value only into ops that succeed loses nothing.
// Throws InvalidArgument for a variable that is listed twice.
template <std::size_t n, class F>
void update_values(const std::array<Variable, n>& variables, F&& f, SourceLocation at) {
  Variable::require_distinct(variables, at);
  std::array<Tensor, n> values;
  struct PutBack {
    const std::array<Variable, n>& variables;
    std::array<Tensor, n>& values;
    ~PutBack() {
      for (std::size_t i = 0; i < n; ++i) variables[i].put(std::move(values[i]));
    }
  } put_back{variables, values};
  for (std::size_t i = 0; i < n; ++i) values[i] = variables[i].take(at);
  f(values);
}

}  // namespace lockstep
