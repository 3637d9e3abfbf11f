// SPDX-License-Identifier: Apache-2.0
#include "distribute/verify_trial.h"

#include <lockstep/base/deadline.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/replica/context.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

namespace lockstep::testing {
namespace {

// A step may update its variables once in so many calls: gradients accumulate, a loss scale is found.
constexpr int kMaxCalls = 32;
// What a replica that begins is ahead of the one that begins after it.
constexpr std::chrono::milliseconds kAhead{10};

void append(Numbers& numbers, const Tensor& values) {
  const std::vector<double> more = cast(values, DType::f64).to_vector<double>();
  numbers.insert(numbers.end(), more.begin(), more.end());
}

Numbers numbers_of(const Tensor& values) {
  Numbers numbers;
  if (values.defined()) append(numbers, values);
  return numbers;
}

Numbers numbers_of(const std::vector<Variable>& variables) {
  Numbers numbers;
  for (const Variable& variable : variables) append(numbers, variable.read());
  return numbers;
}

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 2e-16;
    case DType::f32:
      return 1e-7;
    case DType::f16:
      return 1e-3;
    case DType::bf16:
      return 8e-3;
    default:
      return 0;
  }
}

void describe_error(Outcome& outcome) {
  try {
    throw;
  } catch (const PeerError& error) {
    outcome.missed = true;
    outcome.error = error.what();
  } catch (const DeadlineExceeded& error) {
    outcome.missed = true;
    outcome.error = error.what();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  } catch (...) {
    outcome.error = "something that is no std::exception";
  }
}

// Lets replicas begin one after the other, the last one first.
class Turnstile {
 public:
  Turnstile(int replicas, std::chrono::milliseconds patience)
      : replicas_(replicas), deadline_(Deadline::after(patience)) {}
  void pass(int replica) {
    const int before = replicas_ - 1 - replica;
    while (begun_ < before && !deadline_.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (before > 0) std::this_thread::sleep_for(kAhead);
    ++begun_;
  }

 private:
  const int replicas_;
  const Deadline deadline_;
  std::atomic<int> begun_{0};
};

}  // namespace

Strategy Trials::strategy(const Trial& trial) const {
  MirroredOptions options{.replica_threads = trial.threads,
                          .communication = {.timeout = options_.deadline},
                          .seed = options_.seed};
  for (int i = 0; i < trial.replicas; ++i) options.devices.push_back("CPU:" + std::to_string(i));
  return options_.make_strategy ? options_.make_strategy(options) : MirroredStrategy(options);
}

std::vector<Tensor> Trials::rows(const Trial& trial) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(trial.rows.size()));
  std::iota(order.begin(), order.end(), trial.rows.begin);
  if (trial.rows_reversed) std::reverse(order.begin(), order.end());
  std::vector<Tensor> chosen;
  chosen.reserve(leaves_.size());
  for (const Tensor& leaf : leaves_) chosen.push_back(gather_rows(leaf, order));
  return chosen;
}

Outcome Trials::run(const Trial& trial) const {
  Outcome outcome;
  const Strategy strategy = this->strategy(trial);
  const auto batches = strategy.distribute_dataset(data::from_tensors(rows(trial)));
  const auto scope = strategy.scope();
  const std::unique_ptr<detail::AnyProgram> program = make_();
  const std::vector<Variable> variables = program->variables();
  for (const Variable& variable : variables)
    outcome.spans.push_back({variable.name(), static_cast<std::size_t>(variable.num_elements()),
                             rounding_of(variable.dtype())});
  outcome.before = outcome.after = numbers_of(variables);
  std::vector<Tensor> losses(strategy.num_local_replicas());
  std::atomic<bool> random{false};
  std::optional<Turnstile> turnstile;
  const auto step = [&](const std::vector<Tensor>& leaves) {
    const int replica = get_replica_context()->local_index();
    if (turnstile) turnstile->pass(replica);
    RandomState& state = current_random_state();
    if (trial.as_replica) state.stream = static_cast<std::uint64_t>(trial.as_replica);
    const std::uint64_t drawn = state.counter;
    losses[static_cast<std::size_t>(replica)] = program->step(leaves);
    if (state.counter != drawn) random = true;
  };
  try {
    for (int call = 0; call < kMaxCalls && outcome.after == outcome.before; ++call) {
      if (trial.last_enters_first) turnstile.emplace(trial.replicas, options_.deadline);
      strategy.run(step, *batches.iterator().next());
      outcome.after = numbers_of(variables);
    }
    for (const Tensor& loss : losses)
      if (loss.defined()) outcome.losses.push_back(numbers_of(loss));
    outcome.metric = numbers_of(program->metric());
  } catch (...) {
    if (trial.replicas == 1) throw;
    describe_error(outcome);
    return outcome;
  }
  outcome.random = random;
  try {
    require_equal_replicas(variables);
  } catch (const InternalError& error) {
    outcome.apart = error.message();
  }
  return outcome;
}

}  // namespace lockstep::testing
