// SPDX-License-Identifier: Apache-2.0
#include <lockstep/replica/variable.h>

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/state_log.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include "device/xla/trace.h"
#include "replica/default_context.h"
#include "replica/mirrored_key.h"
#include "replica/sum_components.h"

namespace lockstep {

struct Variable::State : std::enable_shared_from_this<Variable::State> {
  // Components of different replicas are written by different threads: one cache line each.
  struct alignas(64) Component {
    Tensor value;
    bool valid = true;
  };
  // A component owned by no replica's thread (no group) may be used from several: locked.
  struct Lock {
    explicit Lock(State& state) : guard(state.mutex, std::defer_lock) {
      if (!state.group) guard.lock();
    }
    std::unique_lock<std::mutex> guard;
  };

  std::string name;
  DType dtype;
  std::optional<DType> compute_dtype;
  Shape shape;
  bool trainable = false;
  VariableSynchronization synchronization = VariableSynchronization::on_write;
  VariableAggregation aggregation = VariableAggregation::none;
  std::uint64_t key = new_tensor_key();  // of its value on every replica, unless on_read
  std::shared_ptr<ReplicaGroup> group;
  std::vector<Component> components;
  std::int64_t number = -1;
  std::size_t num_invalid = 0;  // components; changes between runs only
  std::string failure;          // why
  std::mutex mutex;

  bool on_read() const { return synchronization == VariableSynchronization::on_read; }

  void join(std::shared_ptr<ReplicaGroup> replicas) {
    group = std::move(replicas);
    if (group) key = new_mirrored_key();
    components.resize(group ? group->local_devices().size() : 1);
  }

  // One key on all replicas tells that values are mirrored, which those of on_read variables are not.
  Tensor identified(Tensor value) const {
    if (on_read() || value.key() == key) return value;
    return value.with_identity(key, trainable);
  }
  void check_value(const Tensor& value, const char* op, SourceLocation at) const {
    require(value.defined() && value.dtype() == dtype && value.shape() == shape, at, op,
            "variable '", name, "' is ", name_of(dtype), shape, ", got ", value);
  }
  // These three with the lock held, once other threads may know the variable.
  void check_valid(const char* op, SourceLocation at) const {
    if (num_invalid == 0) [[likely]]
      return;
    throw FailedPrecondition(
        message(op, "variable '", name, "' is invalid: ", failure,
                "; restore a checkpoint or assign() it outside run, with all that the update "
                "concerned"),
        at);
  }
  void set(std::size_t i, const Tensor& value) {
    Component& component = components[i];
    component.value =
        identified(copy_to(value, group ? group->local_devices()[i] : value.device()));
    if (!std::exchange(component.valid, true)) --num_invalid;
  }
  void set_all(const Tensor& value) {
    for (std::size_t i = 0; i < components.size(); ++i) set(i, value);
  }
  // Of a dtype that cannot be divided: the first replica has it all.
  void set_all_to_sum_to(const Tensor& value) {
    set_all(lockstep::zeros(shape, dtype));
    if (group->workers().is_chief()) set(0, value);
  }
};

namespace {

// A component that a step on a TPU wrote to, as it was before.
class Before final : public xla::Overwritten {
 public:
  Before(Variable::State& state, std::size_t component)
      : state_(state.shared_from_this()), component_(component) {
    value_ = state.components[component].value;
  }
  const Buffer& old_value() const override { return value_.buffer(); }
  bool sole_holder() const override { return value_.unique(); }
  void restore() noexcept override { state_->components[component_].value = std::move(value_); }

 private:
  std::shared_ptr<Variable::State> state_;
  std::size_t component_;
  Tensor value_;
};

// Before a component is written to in a step that is being traced: once it was, its value is the
// trace's own.
void keep_for_restoring(Variable::State& state, std::size_t component) {
  xla::Trace* const trace = xla::current_trace();
  const Tensor& value = state.components[component].value;
  if (!trace || !value.defined() || value.device().kind != DeviceKind::xla) return;
  if (xla::value_of(value.buffer()).trace == nullptr)
    trace->overwritten(std::make_unique<Before>(state, component));
}

// Outside replicas values of TPUs are looked at and computed with on the host.
Tensor on_host(const Variable::State& state, const Tensor& value) {
  return value.device().kind == DeviceKind::xla ? state.identified(copy_to(value, Device{}))
                                                : value;
}

// The replica context whose component is meant: null outside replicas.
ReplicaContext* owning_replica(const Variable::State& state, const char* op, SourceLocation at) {
  if (!state.group) return nullptr;
  require_step(op, at);
  const auto& current = current_replica_group();
  if (current && current != state.group)
    throw FailedPrecondition(
        message(op, "variable '", state.name,
                "' belongs to another strategy than the one whose scope or replica "
                "this is; do not mix strategies"),
        at);
  if (current)
    if (ReplicaContext* replica = get_replica_context()) return replica;
  if (state.group->run_active() && !inside_run())
    throw FailedPrecondition(
        message(op, "variable '", state.name,
                "' was used while a run of its strategy is active, from a thread that "
                "is no replica; use it in the step function, or after run"),
        at);
  return nullptr;
}

// The component that a replica, or an update, is limited to; nothing: all of them are meant.
std::optional<std::size_t> own_component(const Variable::State& state,
                                         const ReplicaContext* replica) {
  if (!state.group) return std::nullopt;
  return replica ? static_cast<std::size_t>(replica->local_index()) : updated_component();
}

// The components of all workers' replicas, in replica order.
std::vector<Tensor> all_components(Variable::State& state, SourceLocation at) {
  std::vector<std::byte> bytes;
  for (const auto& component : state.components) {
    const Tensor here = component.value.to_host();
    const auto* data = static_cast<const std::byte*>(here.raw_data());
    bytes.insert(bytes.end(), data, data + here.bytes());
  }
  std::vector<Tensor> all;
  const std::size_t each = bytes.size() / state.components.size();
  const std::string call =
      "read of variable " + std::to_string(state.number) + ", '" + state.name + "'";
  for (const auto& part : state.group->workers().all_gather(call, std::move(bytes), at))
    for (std::size_t i = 0; i < state.components.size(); ++i) {
      Buffer buffer = Buffer::allocate(current_host_device(), each);
      if (each) std::memcpy(buffer.data(), part.data() + i * each, each);
      all.emplace_back(std::move(buffer), state.dtype, state.shape);
    }
  return all;
}

Tensor read_combined(Variable::State& state, SourceLocation at) {
  require(state.aggregation != VariableAggregation::none, at, "Variable::read", "variable '",
          state.name,
          "' is on_read with aggregation none: outside a replica its components cannot be "
          "combined; give it "
          "an aggregation or use local_values()");
  const RecorderScope suspended(nullptr);
  std::vector<Tensor> parts = all_components(state, at);
  if (state.aggregation == VariableAggregation::only_first_replica) return parts[0];
  if (state.aggregation == VariableAggregation::sum) return sum_components(parts);
  // 16-bit sums may be out of range where the mean is not.
  const DType dtype = size_of(state.dtype) == 2 ? DType::f32 : state.dtype;
  for (Tensor& part : parts) part = cast(part, dtype);
  return cast(div(sum_components(parts), static_cast<double>(parts.size())), state.dtype);
}

// What may be added to any value without a trace: x + -0 is x, be it 0 or -0.
Tensor nothing_like(const Tensor& value) {
  return full(value.shape(), is_floating(value.dtype()) ? -0.0 : 0.0, value.dtype());
}

// What an assignment in a replica writes: the value all replicas agree on, or their own.
Tensor combined(ReplicaContext& replica, const Variable::State& state, const Tensor& value,
                SourceLocation at) {
  if (state.on_read()) return value;
  switch (state.aggregation) {
    case VariableAggregation::none:
      return value;
    case VariableAggregation::sum:
      return replica.all_reduce(ReduceOp::sum, value, at);
    case VariableAggregation::mean:
      return replica.all_reduce(ReduceOp::mean, value, at);
    case VariableAggregation::only_first_replica:
      return replica.all_reduce(ReduceOp::sum,
                                replica.replica_index() == 0 ? value : nothing_like(value), at);
  }
  throw InternalError("[Variable] unknown aggregation");
}

using Combine = Tensor (*)(const Tensor& old_value, const Tensor& value);

Tensor assign_now(Variable::State& state, const Tensor& value, Combine combine, const char* op,
                  SourceLocation at) {
  state.check_value(value, op, at);
  const RecorderScope suspended(nullptr);
  ReplicaContext* const replica = owning_replica(state, op, at);
  if (const auto own = own_component(state, replica)) {
    state.check_valid(op, at);
    Tensor& component = state.components[*own].value;
    const Tensor agreed = replica ? combined(*replica, state, value, at) : value;
    keep_for_restoring(state, *own);
    const Tensor next =
        combine ? combine(replica ? component : on_host(state, component), agreed) : agreed;
    component = state.identified(copy_to(next, component.device()));
    return replica ? component : on_host(state, component);
  }
  const bool divides =
      state.on_read() && state.aggregation == VariableAggregation::sum && state.group;
  require(!(divides && combine), at, op, "variable '", state.name,
          "' is on_read with aggregation sum: outside replicas only assign is defined");
  const Variable::State::Lock lock(state);
  if (!combine) {
    if (!divides)
      state.set_all(value);
    else if (is_floating(state.dtype))
      state.set_all(div(value, static_cast<double>(state.group->num_replicas_in_sync())));
    else
      state.set_all_to_sum_to(value);
  } else {
    state.check_valid(op, at);
    for (auto& component : state.components)
      component.value = state.identified(
          copy_to(combine(on_host(state, component.value), value), component.value.device()));
  }
  return state.on_read() && state.group ? Tensor() : on_host(state, state.components[0].value);
}

Tensor assign_with(Variable::State& state, const Tensor& value, Combine combine, const char* op,
                   SourceLocation at) {
  return logged_access(state.key, [&] { return assign_now(state, value, combine, op, at); });
}

Tensor read_now(Variable::State& state, SourceLocation at) {
  const ReplicaContext* replica = owning_replica(state, "Variable::read", at);
  const Variable::State::Lock lock(state);
  state.check_valid("Variable::read", at);
  const auto own = own_component(state, replica);
  if (state.group && !own && state.on_read()) return read_combined(state, at);
  const Tensor& value = state.components[own.value_or(0)].value;
  return replica ? value : on_host(state, value);
}

// A name without the number that tells variables of one name apart: "dense" of "dense_1".
std::string_view canonical(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool numbered =
      last != std::string_view::npos && last + 1 < name.size() && name[last] == '_';
  return numbered ? name.substr(0, last) : name;
}

// What one replica asks for where all make a variable, and what they get.
struct Wanted {
  const Tensor& initial;
  const VariableOptions& options;
  std::shared_ptr<Variable::State> made = nullptr;
};

void require_same(const Wanted& first, const Wanted& other, SourceLocation at) {
  const VariableOptions &a = first.options, &b = other.options;
  if (canonical(a.name) != canonical(b.name))
    throw FailedPrecondition(
        message("Variable", "replicas make variables with mismatching names, '", a.name, "' and '",
                b.name, "'; make the same ones in the same order on every replica"),
        at);
  require(first.initial.dtype() == other.initial.dtype() &&
              first.initial.shape() == other.initial.shape() && a.trainable == b.trainable &&
              a.synchronization == b.synchronization && a.aggregation == b.aggregation &&
              a.compute_dtype == b.compute_dtype,
          at, "Variable", "replicas make variable '", a.name,
          "' with different options, or of different values: ", first.initial, " and ",
          other.initial);
}

// One variable for all replicas that are in a step, by `make` on replica 0 of each worker.
std::shared_ptr<Variable::State> made_by_replicas(
    ReplicaContext& replica, const Tensor& initial, const VariableOptions& options,
    const std::function<std::shared_ptr<Variable::State>()>& make, SourceLocation at) {
  const RecorderScope suspended(nullptr);
  Wanted wanted{initial, options};
  replica.merge_all(
      [&](std::span<void* const> all) {
        for (void* const other : all) require_same(wanted, *static_cast<const Wanted*>(other), at);
        const auto made = make();
        for (void* const each : all) static_cast<Wanted*>(each)->made = made;
      },
      &wanted, at);
  return wanted.made;
}

Tensor plus(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor minus(const Tensor& a, const Tensor& b) { return sub(a, b); }

}  // namespace

Variable::Variable(Tensor initial, VariableOptions options, SourceLocation at) {
  require(initial.defined(), at, "Variable", "expected an initial value, got an undefined tensor");
  require(options.synchronization != VariableSynchronization::none, at, "Variable",
          "synchronization none is not offered; use automatic, on_write or on_read");
  require(options.synchronization <= VariableSynchronization::on_read, at, "Variable",
          "expected a synchronization that exists, got number ",
          static_cast<int>(options.synchronization));
  require(options.aggregation <= VariableAggregation::only_first_replica, at, "Variable",
          "expected an aggregation that exists, got number ",
          static_cast<int>(options.aggregation));
  require(options.aggregation != VariableAggregation::mean || is_floating(initial.dtype()), at,
          "Variable", "aggregation mean needs a floating dtype, got ", name_of(initial.dtype()));
  if (options.synchronization == VariableSynchronization::automatic)
    options.synchronization = VariableSynchronization::on_write;
  const auto make = [&] {
    const auto& group = current_replica_group();
    auto state = std::make_shared<State>();
    state->name = options.name;
    state->dtype = initial.dtype();
    state->compute_dtype = options.compute_dtype;
    state->shape = initial.shape();
    state->synchronization = options.synchronization;
    state->aggregation = options.aggregation;
    state->trainable = options.trainable && !state->on_read() && is_floating(initial.dtype());
    state->join(group);
    if (group) state->number = group->next_variable_number();
    const RecorderScope suspended(nullptr);
    state->set_all(group ? group->broadcast_initial_value(state->name, initial, at) : initial);
    return state;
  };
  ReplicaContext* const replica = current_replica_group() ? get_replica_context() : nullptr;
  if (replica && xla::current_trace())
    throw FailedPrecondition(
        message(
            "Variable", "variable '", options.name,
            "' is made in a replica of a TPU; make variables in the strategy's scope, before run"),
        at);
  state_ = replica ? made_by_replicas(*replica, initial, options, make, at) : make();
}

Variable Variable::zeros_like(const Variable& like, std::string name) {
  return slot_of(like, like.shape(), like.dtype(), 0, std::move(name));
}

Variable Variable::slot_of(const Variable& variable, const Shape& shape, DType dtype, double start,
                           std::string name, bool summed) {
  auto state = std::make_shared<State>();
  if (summed) {
    state->synchronization = VariableSynchronization::on_read;
    state->aggregation = VariableAggregation::sum;
  }
  state->name = std::move(name);
  state->dtype = dtype;
  state->shape = shape;
  state->join(variable.group());
  const xla::TraceScope untraced(nullptr);  // of all replicas, whichever comes first
  state->set_all(lockstep::full(shape, start, dtype));
  return Variable(std::move(state));
}

const std::string& Variable::name() const { return state_->name; }
void Variable::rename(std::string name) { state_->name = std::move(name); }
DType Variable::dtype() const { return state_->dtype; }
DType Variable::compute_dtype() const { return state_->compute_dtype.value_or(state_->dtype); }
const Shape& Variable::shape() const { return state_->shape; }
bool Variable::trainable() const { return state_->trainable; }
VariableSynchronization Variable::synchronization() const { return state_->synchronization; }
VariableAggregation Variable::aggregation() const { return state_->aggregation; }
std::uint64_t Variable::key() const { return state_->key; }
std::int64_t Variable::number() const { return state_->number; }
const std::shared_ptr<ReplicaGroup>& Variable::group() const { return state_->group; }

Tensor Variable::read(SourceLocation at) const {
  return logged_access(state_->key, [&] { return read_now(*state_, at); });
}

Tensor Variable::assign(const Tensor& value, SourceLocation at) {
  return assign_with(*state_, value, nullptr, "Variable::assign", at);
}
Tensor Variable::assign_add(const Tensor& value, SourceLocation at) {
  return assign_with(*state_, value, plus, "Variable::assign_add", at);
}
Tensor Variable::assign_sub(const Tensor& value, SourceLocation at) {
  return assign_with(*state_, value, minus, "Variable::assign_sub", at);
}

std::vector<Tensor> Variable::local_values(SourceLocation at) const {
  if (state_->group && state_->group->run_active())
    throw FailedPrecondition(
        message("Variable::local_values", "a run is active; call it after run"), at);
  const State::Lock lock(*state_);
  std::vector<Tensor> values;
  for (const auto& component : state_->components)
    values.push_back(on_host(*state_, component.value));
  return values;
}

void Variable::set_local_value(std::size_t local_replica, const Tensor& value) {
  require(local_replica < state_->components.size(), SourceLocation{}, "Variable::set_local_value",
          "variable '", state_->name, "' has ", state_->components.size(),
          " local components, got number ", local_replica);
  state_->check_value(value, "Variable::set_local_value", SourceLocation{});
  const State::Lock lock(*state_);
  state_->set(local_replica, value);
}

void Variable::invalidate(const std::string& reason) {
  const State::Lock lock(*state_);
  if (state_->num_invalid == 0) state_->failure = reason;
  for (auto& component : state_->components) component.valid = false;
  state_->num_invalid = state_->components.size();
}

bool Variable::valid() const {
  const State::Lock lock(*state_);
  return state_->num_invalid == 0;
}

void Variable::visit_state(StateVisitor& visitor) {
  // Restoring makes an invalid variable valid, so it must get as far as the visitor.
  Tensor value = valid() ? read() : local_values()[0];
  const std::uint64_t before = value.key();
  visitor.visit(name(), value);
  if (value.key() != before)
    assign(value);
  else if (!valid())
    read();
}

void Variable::require_distinct(std::span<const Variable> variables, SourceLocation at) {
  for (std::size_t i = 1; i < variables.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      require(!(variables[i] == variables[k]), at, "update_values", "variable '",
              variables[i].name(), "' is listed twice; list each variable once");
}

Tensor Variable::take(SourceLocation at) const {
  const ReplicaContext* replica = owning_replica(*state_, "update", at);
  if (!state_->group && has_strategy())
    throw FailedPrecondition(
        message("update", "variable '", state_->name,
                "' was made outside the strategy's scope; make the model and the "
                "optimizer after `auto scope = strategy.scope();`"),
        at);
  if (current_state_log())
    throw FailedPrecondition(
        message("update", "variable '", state_->name,
                "' is updated in a function given to recompute, which runs twice; update it after "
                "the gradients are there"),
        at);
  const State::Lock lock(*state_);
  state_->check_valid("update", at);
  const std::size_t component = own_component(*state_, replica).value_or(0);
  keep_for_restoring(*state_, component);
  return std::exchange(state_->components[component].value, Tensor());
}

void Variable::put(Tensor value) const {
  if (!value.defined()) return;
  const ReplicaContext* replica = state_->group ? get_replica_context() : nullptr;
  const State::Lock lock(*state_);
  state_->components[own_component(*state_, replica).value_or(0)].value =
      state_->identified(std::move(value));
}

}  // namespace lockstep
