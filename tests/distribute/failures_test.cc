// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/base/log.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/distribute/testing.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/process.h"
#include "support/quiet_log.h"
#include "support/replicas.h"
#include "support/sanitizers.h"
#include "support/sgd.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::name_of;
using lockstep::testing::Noise;
using lockstep::testing::num_threads;
using lockstep::testing::QuietLog;
using lockstep::testing::replica_index;

// Where in a step one replica fails.
enum class Phase {
  at_start,     // before any collective
  in_forward,   // between two collectives of the step function
  in_backward,  // some buckets are submitted, others are not
  at_commit,    // all buckets are submitted, the verdict is not
  in_update,    // some variables are updated
  in_merge,     // in the function of merge_call, which replica 0 runs for all
  after         // behind the last collective
};
constexpr Phase kPhases[] = {Phase::at_start,  Phase::in_forward, Phase::in_backward,
                             Phase::at_commit, Phase::in_update,  Phase::in_merge,
                             Phase::after};
constexpr const char* kPhaseNames[] = {"at_start",  "in_forward", "in_backward", "at_commit",
                                       "in_update", "in_merge",   "after"};

enum class Kind { lockstep_error, integer };

struct Case {
  ReplicaThreads threads;
  Phase phase;
};

[[noreturn]] void throw_as(Kind kind) {
  if (kind == Kind::integer) throw 1;
  throw ResourceExhausted("[test] out of paper");
}

// y = x; its gradient rule fails when told to.
Tensor failing_in_backward(const Tensor& x, bool fails, Kind kind) {
  const Tensor y = x.with_identity(new_tensor_key(), false);
  record("failing", {&x}, y, [fails, kind](const Tensor& dy, GradientSink& sink) {
    if (fails) throw_as(kind);
    sink.put(0, [&] { return dy; });
  });
  return y;
}

// A training job of three layers, small buckets, and a fault on order.
class Job {
 public:
  Job(int count, ReplicaThreads threads) : strategy(testing::replicas(count, threads, 64)) {
    const auto scope = strategy.scope();
    Noise noise(1);
    for (int layer = 0; layer < 3; ++layer) {
      variables.emplace_back(noise.tensor<float>({8, 8}, 0.3));
      variables.emplace_back(zeros({8}));
    }
    for (int r = 0; r < count; ++r) inputs.push_back(noise.tensor<float>({4, 8}));
  }

  // One step in which `victim` fails in `phase`; no phase, no fault.
  void step(std::optional<Phase> phase = {}, int victim = 0, Kind kind = Kind::integer) const {
    strategy.run([&] {
      const bool mine = phase && replica_index() == victim;
      ReplicaContext& context = *get_replica_context();
      if (mine && phase == Phase::at_start) throw_as(kind);
      const Tensor& x = inputs[static_cast<std::size_t>(replica_index())];
      GradientTape tape;
      Tensor h = x;
      for (std::size_t layer = 0; layer < 3; ++layer) {
        h = dense(h, variables[2 * layer], variables[2 * layer + 1], Activation::tanh);
        if (layer == 1) h = failing_in_backward(h, mine && phase == Phase::in_backward, kind);
      }
      context.all_reduce(ReduceOp::sum, Tensor(1.0f));
      if (mine && phase == Phase::in_forward) throw_as(kind);
      context.all_reduce(ReduceOp::sum, Tensor(2.0f));
      update(sum(square(h)), tape, phase, mine, kind);
      context.merge_call([&] {
        if (phase == Phase::in_merge) throw_as(kind);
      });
      if (mine && phase == Phase::after) throw_as(kind);
    });
  }

  const MirroredStrategy strategy;
  std::vector<Variable> variables;
  std::vector<Tensor> inputs;

 private:
  void update(const Tensor& loss, GradientTape& tape, std::optional<Phase> phase, bool mine,
              Kind kind) const {
    const auto reduction =
        get_replica_context()->begin_gradient_reduction(variables, SourceLocation::current());
    tape.gradient(loss, variables,
                  {.on_ready = [&](std::size_t i, const Tensor& g) { reduction->ready(i, g); },
                   .place = [&](std::size_t i) { return reduction->place(i); }});
    if (mine && phase == Phase::at_commit) throw_as(kind);
    const ReducedGradients reduced = reduction->finish();
    for (std::size_t i = 0; i < variables.size(); ++i) {
      Variable variable = variables[i];
      if (mine && phase == Phase::in_update && i == 3) throw_as(kind);
      variable.assign_sub(mul(reduced.gradients[i], 0.01));
    }
  }
};

// What the fault must do: come out of run, with the replica that failed.
void expect_fault(const Job& job, Phase phase, int victim, Kind kind) {
  const int culprit = phase == Phase::in_merge ? 0 : victim;
  try {
    job.step(phase, victim, kind);
    ADD_FAILURE() << "nothing thrown";
  } catch (const ResourceExhausted& error) {
    EXPECT_EQ(kind, Kind::lockstep_error);
    EXPECT_EQ(error.context().replica, culprit);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("out of paper"));
  } catch (int number) {
    EXPECT_EQ(kind, Kind::integer);
    EXPECT_EQ(number, 1);
  }
}

std::int64_t bytes_in_use(int count) {
  std::int64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += memory_stats({DeviceKind::cpu, i}).in_use;
  return bytes;
}

class Failures : public ::testing::TestWithParam<std::tuple<ReplicaThreads, Phase>> {
 protected:
  ReplicaThreads threads() const { return std::get<0>(GetParam()); }
  Phase phase() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(All, Failures,
                         ::testing::Combine(::testing::ValuesIn(testing::kBothModes),
                                            ::testing::ValuesIn(kPhases)),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) + "_" +
                                  kPhaseNames[static_cast<int>(std::get<1>(info.param))];
                         });

TEST_P(Failures, AThousandTimes) {
  const QuietLog quiet;
  constexpr int kReplicas = 3, kRuns = testing::kSanitized ? 200 : 1000;
  const Job job(kReplicas, threads());
  // The same job undisturbed: a step that fails before the update must leave no trace.
  const Job reference(kReplicas, threads());
  for (int i = 0; i < 3; ++i) {
    job.step();
    reference.step();
  }
  const int threads_before = num_threads();
  const std::int64_t bytes_before = bytes_in_use(kReplicas);
  const bool equal_afterwards = phase() != Phase::in_update;
  const bool updated = phase() == Phase::after || phase() == Phase::in_merge;
  for (int i = 0; i < kRuns && !HasFailure(); ++i) {
    expect_fault(job, phase(), i % kReplicas, i % 2 ? Kind::integer : Kind::lockstep_error);
    if (equal_afterwards) testing::require_equal_replicas(job.variables);
    if (i % 50 != 0) continue;
    EXPECT_EQ(bytes_in_use(kReplicas), bytes_before);
    if (!equal_afterwards) continue;
    job.step();  // the strategy goes on as if nothing had been
    for (int step = 0; step < (updated ? (i ? 51 : 2) : 1); ++step) reference.step();
    for (std::size_t v = 0; v < job.variables.size(); ++v)
      EXPECT_EQ(job.variables[v].read().to_vector<float>(),
                reference.variables[v].read().to_vector<float>());
  }
  EXPECT_EQ(num_threads(), threads_before);
  job.step();
}

TEST_P(Failures, OnEveryReplicaAtOnce) {
  const QuietLog quiet;
  const Job job(2, threads());
  job.step();
  for (int i = 0; i < 100; ++i) EXPECT_THROW(job.strategy.run([&] { throw replica_index(); }), int);
  job.step();
  testing::require_equal_replicas(job.variables);
}

TEST(FailureInUpdate, LeavesTheReplicasApartWhichTheCheckFinds) {
  // Nothing can be promised once some weights are updated: the strategy works on, the weights have
  // to be restored.
  const QuietLog quiet;
  const Job job(2, ReplicaThreads::concurrent);
  job.step();
  expect_fault(job, Phase::in_update, 1, Kind::integer);
  EXPECT_THAT([&] { testing::require_equal_replicas(job.variables); },
              testing::throws<InternalError>("replica 1"));
  for (Variable variable : job.variables) variable.assign(variable.read());
  job.step();
  testing::require_equal_replicas(job.variables);
}

TEST(FailureLog, NamesTheReplicaOfAnExceptionThatCannotCarryIt) {
  std::vector<std::string> lines;
  logging::set_sink([&](logging::Level, std::string_view line) { lines.emplace_back(line); });
  EXPECT_THROW(testing::replicas(3).run([] {
    if (replica_index() == 2) throw 1;
  }),
               int);
  logging::set_sink({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], ::testing::HasSubstr("replica 2"));
}

TEST(FailureTimeout, AReplicaThatDoesNotComeIsNamed) {
  using namespace std::chrono_literals;
  const MirroredStrategy strategy(
      {.devices = testing::cpus(2), .communication = {.timeout = 100ms}});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(
      [&] {
        strategy.run([] {
          if (replica_index() == 1) std::this_thread::sleep_for(400ms);
          get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f));
        });
      },
      testing::throws<DeadlineExceeded>("rank 1", "all_reduce"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  strategy.run([] { get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f)); });
}

}  // namespace
}  // namespace lockstep
