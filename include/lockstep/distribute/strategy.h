// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/data/dataset.h>
#include <lockstep/distribute/distributed_dataset.h>
#include <lockstep/distribute/extension.h>
#include <lockstep/distribute/input_context.h>
#include <lockstep/distribute/options.h>
#include <lockstep/replica/context.h>
#include <lockstep/replica/per_replica.h>
#include <lockstep/tensor/nest.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

namespace detail {
// Never mind which one of false: a static_assert that depends on T.
template <class>
inline constexpr bool kNever = false;
}  // namespace detail

// A way to run one step function on many replicas: a cheap handle; copies are the same strategy.
// Make one as MirroredStrategy, MultiWorkerMirroredStrategy, TPUStrategy, OneDeviceStrategy or
// by make_strategy. Four verbs:
//
//   scope()               variables made while it is open are mirrored on the replicas
//   distribute_dataset()  each global batch is dealt over the replicas
//   run()                 calls the step function once per replica
//   reduce()              combines what the replicas returned
//
// All of them belong to the cross-replica side: called in a step function they throw
// FailedPrecondition, and so they do inside another strategy's scope. Thread-safe, and runs are served
// one after the other; of several workers (multi_worker.h), all verbs are called from one thread.
class LOCKSTEP_EXPORT Strategy {
 public:
  explicit Strategy(std::shared_ptr<StrategyInterface> implementation);
  Strategy(const Strategy&) = default;  // a move is a copy: no handle is ever without its strategy
  Strategy& operator=(const Strategy&) = default;

  class Scope;
  // Opens the strategy's scope in the calling thread until the returned guard dies. Re-entrant.
  Scope scope(SourceLocation at = SourceLocation::current()) const;

  // The batches of `dataset`, whose batch size is the global one, dealt over the replicas: part k
  // of each batch goes to global replica k, in order, ceil(rows / replicas) rows each, the last
  // parts short or empty. Throws InvalidArgument for elements with scalars, which no batch has.
  template <class T>
  DistributedDataset<T> distribute_dataset(const data::Dataset<T>& dataset,
                                           SourceLocation at = SourceLocation::current()) const {
    return distributed(detail::Dealing::rows_of_global_batches, dataset, at);
  }

  // For input that each worker reads by itself: calls dataset_fn(const InputContext&) once, for this
  // process; it returns a data::Dataset of per-replica batches of this worker's rows, which its
  // replicas take in turn. A loop ends with the longest worker's data; who has no batch left gets one
  // of zero rows. Throws what dataset_fn does, and InvalidArgument for elements with scalars.
  template <class F>
  auto distribute_datasets_from_function(F&& dataset_fn,
                                         SourceLocation at = SourceLocation::current()) const {
    static_assert(std::is_invocable_v<F&, const InputContext&>,
                  "expected a function that takes a const InputContext& and returns a Dataset");
    const InputContext context = input_context(at);
    return distributed(detail::Dealing::batches_of_replicas, dataset_fn(context), at);
  }

  // Calls step(args...) once on every replica, concurrently, and returns what the replicas
  // returned; an argument that is a PerReplica arrives as the replica's own value, any other as it
  // is. lockstep objects that the step captures are safe; anything else it captures is shared
  // between threads, which is why it must be callable as const (ReplicaLocal gives each replica its
  // own); threads that it starts are in no replica (ReplicaContext::Inherit). The first exception
  // of a replica releases the others and is thrown: a lockstep::Error with the replica added, another
  // type unchanged; the strategy stays usable.
  template <class F, class... Args>
  auto run(const F& step, const Args&... args) const {
    if constexpr (std::is_invocable_v<const F&, const typename detail::Local<Args>::type&...>)
      return run_step(step, args...);
    else
      static_assert(detail::kNever<F>,
                    "the step function cannot be called with this batch: it must be const (no "
                    "mutable lambda) and take what the dataset yields");
  }

  // The sum or mean over all replicas, leaf by leaf; the leaves must have one shape. Obeys the
  // kind: the sum of a uniform or mirrored value throws InvalidArgument (unless there is one
  // replica), its mean is the value. Sums follow one tree over replica ids, whatever the topology.
  // The mean of integer tensors is f64; of plain integers, which cannot hold it, InvalidArgument:
  // return a double or a Tensor from the step. 16-bit floats are summed by pairs with rounding,
  // their mean is taken in f32. Undefined tensors and bool throw InvalidArgument.
  template <Nest T>
  T reduce(ReduceOp op, const PerReplica<T>& value,
           SourceLocation at = SourceLocation::current()) const {
    return reduce_nest(op, value, std::nullopt, at);
  }
  // The same after reducing each replica's value along `axis`, whose extent may differ between
  // replicas: the mean is over all rows, not a mean of means. Zero rows everywhere: NaN.
  template <Nest T>
  T reduce(ReduceOp op, const PerReplica<T>& value, int axis,
           SourceLocation at = SourceLocation::current()) const {
    return reduce_nest(op, value, axis, at);
  }
  // A value that no replica returned: this worker's own. The sum is over the workers, not over the
  // replicas, the mean divides by their number. With one worker the mean is the value and the sum
  // throws InvalidArgument, unless there is one replica.
  template <Nest T>
    requires(!std::same_as<T, PerReplica<void>>)
  T reduce(ReduceOp op, const T& value, SourceLocation at = SourceLocation::current()) const {
    const std::vector<Tensor> leaves = reduce_of_workers(op, flatten(value), at);
    T result = with_leaves(value, leaves);
    if constexpr (!std::is_same_v<T, Tensor>) check_held(leaves, flatten(result), at);
    return result;
  }
  // A step that forgot its return.
  template <class T = void>
  Tensor reduce(ReduceOp, const PerReplica<void>&) const {
    static_assert(detail::kNever<T>,
                  "the step function returns nothing to reduce: end it with a return of the loss");
    return {};
  }
  // A variable: on_write is mirrored (the mean is its value, the sum InvalidArgument), on_read is
  // combined over its components.
  Tensor reduce(ReduceOp op, const Variable& variable,
                SourceLocation at = SourceLocation::current()) const;

  // The components of all replicas joined along axis 0, in replica order; collective across
  // workers. Their rows must have one dtype and shape.
  Tensor gather(const PerReplica<Tensor>& value,
                SourceLocation at = SourceLocation::current()) const;
  // The same along any axis, negative ones counted from the end.
  Tensor gather(const PerReplica<Tensor>& value, int axis,
                SourceLocation at = SourceLocation::current()) const;

  // What reduce gives, once for each local component of `destinations`: in a merge_call's function,
  // for the updates that follow there.
  PerReplica<Tensor> reduce_to(ReduceOp op, const PerReplica<Tensor>& value,
                               const Variable& destinations,
                               SourceLocation at = SourceLocation::current()) const;
  std::vector<PerReplica<Tensor>> batch_reduce_to(
      ReduceOp op, const std::vector<std::pair<PerReplica<Tensor>, Variable>>& values,
      SourceLocation at = SourceLocation::current()) const;

  // Calls f(variable, args...) for each local component of the variable, in replica order; of a
  // PerReplica it gets that replica's own. Within f reading, assigning and update_values concern that
  // component alone, whatever the variable's aggregation. Returns what f returned, for each. In a step
  // function it is ReplicaContext::update.
  template <class F, class... Args>
  auto update(const Variable& variable, const F& f, const Args&... args) const {
    using R = std::remove_cvref_t<
        std::invoke_result_t<const F&, Variable, const typename detail::Local<Args>::type&...>>;
    require_own(variable, "Strategy::update", SourceLocation{});
    (check_argument(args), ...);
    const auto call = [&](std::size_t component) -> decltype(auto) {
      const ContextScope own(variable.group(), component);
      return f(variable, detail::local_value(args, component)...);
    };
    if constexpr (std::is_void_v<R>) {
      for (std::size_t i = 0; i < num_local_replicas(); ++i) call(i);
    } else {
      std::vector<R> results;
      for (std::size_t i = 0; i < num_local_replicas(); ++i) results.push_back(call(i));
      return PerReplica<R>(std::move(results));
    }
  }

  // A scope for variables that go with this one, as slots do: of its replicas, on their devices.
  Scope colocate_vars_with(const Variable& variable,
                           SourceLocation at = SourceLocation::current()) const;

  // What value_fn(const ValueContext&) returns for each replica of this process, called for one after
  // the other in the caller's thread: an argument for run, made outside of it (rollouts of an
  // environment, say). Replicas of TPUs need values of one dtype and shape. Each replica has a value
  // of its own, so that reduce adds them, even if all are the same object.
  template <class F>
  auto distribute_values_from_function(F&& value_fn,
                                       SourceLocation at = SourceLocation::current()) const {
    static_assert(std::is_invocable_v<F&, const ValueContext&>,
                  "distribute_values_from_function: expected a function of a const ValueContext&");
    using R = std::remove_cvref_t<std::invoke_result_t<F&, const ValueContext&>>;
    static_assert(Nest<R>,
                  "distribute_values_from_function: the function must return a nest of tensors");
    std::vector<R> values;
    for (const ValueContext& context : value_contexts(at)) {
      const R value = value_fn(context);
      values.push_back(with_leaves(value, separate(flatten(value))));
    }
    return PerReplica<R>(std::move(values));
  }

  // What the replicas of this process have, in their order: the values of a PerReplica, a variable's
  // components, any other value alone. Tensors of TPUs are copied to the host.
  template <Nest T>
  std::vector<T> local_results(const PerReplica<T>& value) const {
    std::vector<T> results;
    for (const T& component : value)
      results.push_back(with_leaves(component, on_host(flatten(component))));
    return results;
  }
  std::vector<Tensor> local_results(const Variable& variable,
                                    SourceLocation at = SourceLocation::current()) const {
    return variable.local_values(at);
  }
  template <Nest T>
  std::vector<T> local_results(const T& value) const {
    return {value};
  }

  int num_replicas_in_sync() const;
  std::size_t num_local_replicas() const;
  // The processes that train together; their chief writes checkpoints.
  WorkerGroup& workers() const;
  // Where the steps so far spent their time.
  telemetry::StepReport step_report() const;
  std::string describe() const;
  // For extensions and tests.
  const std::shared_ptr<StrategyInterface>& implementation() const { return implementation_; }

  friend bool operator==(const Strategy& a, const Strategy& b) {
    return a.implementation_ == b.implementation_;
  }

 private:
  template <class F, class... Args>
  auto run_step(const F& step, const Args&... args) const {
    using R = std::remove_cvref_t<
        std::invoke_result_t<const F&, const typename detail::Local<Args>::type&...>>;
    static_assert(
        !std::is_same_v<R, bool>,
        "the step function returns bool: return a Tensor, so that the step can be traced");
    (check_argument(args), ...);
    if constexpr (std::is_void_v<R>) {
      run_replicas(
          [&]([[maybe_unused]] int r) {
            step(detail::local_value(args, static_cast<std::size_t>(r))...);
          },
          rows_of(args...));
      return PerReplica<void>();
    } else {
      static_assert(Nest<R>, "the step function must return a nest of tensors, or nothing");
      std::vector<std::optional<R>> results(num_local_replicas());
      run_replicas(
          [&]([[maybe_unused]] int r) {
            results[static_cast<std::size_t>(r)].emplace(
                step(detail::local_value(args, static_cast<std::size_t>(r))...));
          },
          rows_of(args...));
      std::vector<R> values;
      values.reserve(results.size());
      for (auto& result : results) values.push_back(std::move(*result));
      const ReplicaKind kind = kind_of(values);
      return PerReplica<R>(std::move(values), kind);
    }
  }

  template <class T>
  DistributedDataset<T> distributed(detail::Dealing dealing, const data::Dataset<T>& dataset,
                                    SourceLocation at) const {
    return DistributedDataset<T>(
        detail::AnyDistributedDataset(implementation_, dealing, dataset.erased(), at),
        dataset.prototype());
  }
  void run_replicas(const std::function<void(int)>& replica_fn,
                    const std::optional<BatchRows>& rows) const;
  // One for each local replica.
  std::vector<ValueContext> value_contexts(SourceLocation at) const;
  InputContext input_context(SourceLocation at) const;
  // The same values as other objects.
  static std::vector<Tensor> separate(std::vector<Tensor> leaves);
  static std::vector<Tensor> on_host(std::vector<Tensor> leaves);
  // Per local replica its leaves; throws InvalidArgument naming path and sizes where structures
  // differ.
  template <class T>
  static std::vector<std::vector<Tensor>> flatten_all(const PerReplica<T>& value,
                                                      SourceLocation at) {
    std::vector<std::vector<Tensor>> leaves;
    for (const T& component : value) leaves.push_back(flatten(component));
    if constexpr (!data::FixedNest<T>)
      for (std::size_t r = 1; r < leaves.size(); ++r)
        check_structures(leaf_paths(value[0]), leaf_paths(value[r]), r, at);
    return leaves;
  }
  static void check_structures(const std::vector<std::string>& first,
                               const std::vector<std::string>& other, std::size_t replica,
                               SourceLocation at);
  template <class T>
  T reduce_nest(ReduceOp op, const PerReplica<T>& value, std::optional<int> axis,
                SourceLocation at) const {
    const auto leaves = reduce_leaves(op, flatten_all(value, at), value.kind(), axis, at);
    T result = with_leaves(value[0], leaves);
    if constexpr (!std::is_same_v<T, Tensor>) check_held(leaves, flatten(result), at);
    return result;
  }
  // Throws InvalidArgument where a plain integer was to hold a mean.
  static void check_held(const std::vector<Tensor>& reduced, const std::vector<Tensor>& held,
                         SourceLocation at);
  std::vector<Tensor> reduce_leaves(ReduceOp op, const std::vector<std::vector<Tensor>>& leaves,
                                    ReplicaKind kind, std::optional<int> axis,
                                    SourceLocation at) const;
  std::vector<Tensor> reduce_of_workers(ReduceOp op, std::vector<Tensor> leaves,
                                        SourceLocation at) const;
  template <class R>
  static ReplicaKind kind_of(const std::vector<R>& values) {
    if (values.size() < 2) return ReplicaKind::per_replica;
    std::vector<std::vector<Tensor>> leaves;
    if constexpr (std::is_arithmetic_v<R>) return ReplicaKind::per_replica;
    for (const R& value : values) leaves.push_back(flatten(value));
    return kind_of_leaves(leaves);
  }
  static ReplicaKind kind_of_leaves(const std::vector<std::vector<Tensor>>& leaves);

  // Throws FailedPrecondition in a step function, and for a variable of other replicas.
  void require_own(const Variable& variable, const char* op, SourceLocation at) const;

  template <class T>
  void check_argument(const T&) const {}
  template <class T>
  void check_argument(const PerReplica<T>& value) const {
    check_components(value.size(), value.rows());
  }
  // Throws InvalidArgument unless there is a component, and rows, for each local replica.
  void check_components(std::size_t count, const std::optional<BatchRows>& rows) const;

  // The rows of the first argument that is a distributed batch.
  template <class... Args>
  static const std::optional<BatchRows>& rows_of(const Args&... args) {
    static const std::optional<BatchRows> none;
    const std::optional<BatchRows>* rows = &none;
    (choose_rows(rows, args), ...);
    return *rows;
  }
  template <class T>
  static void choose_rows(const std::optional<BatchRows>*&, const T&) {}
  template <class T>
  static void choose_rows(const std::optional<BatchRows>*& rows, const PerReplica<T>& value) {
    if (!*rows) rows = &value.rows();
  }

  std::shared_ptr<StrategyInterface> implementation_;
};

// Keeps a strategy's scope open in the thread that opened it, which is to close it, outside step
// functions; scopes closed out of order end with those opened after them.
class [[nodiscard]] LOCKSTEP_EXPORT Strategy::Scope {
 public:
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  friend class Strategy;
  explicit Scope(const std::shared_ptr<StrategyInterface>& implementation);
  struct Opened;
  Opened* opened_;  // ends when it is closed, and not before
};

// The strategy of the calling thread's context: whose scope is the innermost, whose step it is in, or
// that of set_strategy; nothing without one.
LOCKSTEP_EXPORT std::optional<Strategy> get_strategy();

// Puts every thread that has no scope open into the strategy's cross-replica context, as its scope
// does, in place of an earlier one; nothing: into the default context again. Random ops outside
// replicas still draw from the thread's own state. Throws FailedPrecondition inside a scope, of the
// same strategy, too, and in a step function. Not while another thread uses lockstep: at the start of
// a program.
LOCKSTEP_EXPORT void set_strategy(const std::optional<Strategy>& strategy,
                                  SourceLocation at = SourceLocation::current());

// One replica per named device, in one process.
class LOCKSTEP_EXPORT MirroredStrategy : public Strategy {
 public:
  // Throws InvalidArgument for names that do not parse or repeat, Unavailable for devices that are
  // not there.
  explicit MirroredStrategy(const MirroredOptions& options = {},
                            SourceLocation at = SourceLocation::current());
};

// One replica: the same program without replication.
class LOCKSTEP_EXPORT OneDeviceStrategy : public Strategy {
 public:
  explicit OneDeviceStrategy(const OneDeviceOptions& options = {},
                             SourceLocation at = SourceLocation::current());
};

// A strategy chosen at run time: "one_device", "one_device:CPU:1", "mirrored", "mirrored:4" (four
// logical CPUs), "mirrored:CPU:0,CPU:2", and the same with "multi_worker", whose cluster TF_CONFIG
// tells; "tpu", "tpu:4" (four cores). Throws InvalidArgument for another text, naming these, and as the
// strategies' constructors.
LOCKSTEP_EXPORT Strategy make_strategy(std::string_view text,
                                       SourceLocation at = SourceLocation::current());

}  // namespace lockstep
