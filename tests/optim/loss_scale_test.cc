// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <utility>

#include "support/errors.h"
#include "support/strategies.h"
#include "support/values.h"

namespace lockstep::optim {
namespace {

using testing::caught;
using testing::Noise;
using testing::throws;

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(LossScaleOptimizer, RefusesOptionsThatCannotBe) {
  SGD sgd;
  const auto refused = [&](const LossScaleOptions& options) {
    EXPECT_THROW(LossScaleOptimizer(sgd, options), InvalidArgument);
  };
  refused({.initial_scale = 0});
  refused({.initial_scale = -2});
  refused({.initial_scale = 1e300});
  refused({.growth_steps = 0});
  refused({.min_scale = 0});
  refused({.min_scale = 0x1p-127});
  refused({.dynamic = false, .initial_scale = 0x1p-127});
  refused({.initial_scale = 2, .min_scale = 4});
  refused({.max_consecutive_skips = -1});
  refused({.dynamic = false});
  refused({.dynamic = false, .initial_scale = 8, .growth_steps = 5});
  {
    LossScaleOptimizer first(sgd);
    EXPECT_THAT([&] { LossScaleOptimizer second(sgd); },
                throws<InvalidArgument>("[LossScaleOptimizer]", "already"));
  }
  LossScaleOptimizer again(sgd);
  EXPECT_THAT(
      [&] {
        again.scale_loss(Tensor({2}, {1, 2}));
      },
      throws<InvalidArgument>("[LossScaleOptimizer::scale_loss]"));
}

// What is logged while f runs.
std::vector<std::string> logged(const std::function<void()>& f) {
  std::vector<std::string> lines;
  logging::set_sink([&](logging::Level, std::string_view line) { lines.emplace_back(line); });
  f();
  logging::set_sink({});
  return lines;
}

TEST(WithoutLossScale, AnOptimizerWarnsOnceOfLayersInF16) {
  using ::testing::AllOf;
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  using ::testing::IsEmpty;
  const MirroredStrategy strategy = testing::replicas(2);
  const auto scope = strategy.scope();
  const auto steps = [&](const nn::PrecisionPolicy& policy, bool wrapped, bool scaled) {
    const nn::Dense layer(2, 1, {.dtype = policy});
    SGD sgd;
    std::optional<LossScaleOptimizer> optimizer;
    if (wrapped) optimizer.emplace(sgd);
    for (int step = 0; step < 2; ++step)
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = sum(cast(layer(lockstep::ones({1, 2})), DType::f32));
        if (scaled)
          optimizer->minimize(loss, layer.trainable_variables(), tape);
        else
          sgd.apply_gradients(tape.gradient(loss, layer.trainable_variables()),
                              layer.trainable_variables());
      });
  };
  EXPECT_THAT(logged([&] { steps(nn::mixed_float16, false, false); }),
              ElementsAre(AllOf(HasSubstr("[Optimizer::apply_gradients] variable 'dense/kernel'"),
                                HasSubstr("f16"), HasSubstr("make an optim::LossScaleOptimizer"))));
  EXPECT_THAT(logged([&] { steps(nn::mixed_float16, true, false); }),
              ElementsAre(HasSubstr("apply_gradients of the LossScaleOptimizer")));
  EXPECT_THAT(logged([&] {
                steps(nn::mixed_float16, true, true);
                steps(nn::mixed_bfloat16, false, false);
                steps(nn::float32, true, false);
              }),
              IsEmpty());
}

TEST(LossScaleOptimizer, ScalesTheLossOfTheLongForm) {
  Variable w(Tensor(3.0f));
  SGD sgd({.learning_rate = 1});
  LossScaleOptimizer optimizer(sgd, {.initial_scale = 8});
  GradientTape tape;
  const Tensor loss = optimizer.scale_loss(square(w));
  EXPECT_EQ(loss.item<float>(), 72);
  const auto gradients = tape.gradient(loss, std::vector{w});
  EXPECT_EQ(gradients[0].item<float>(), 48);
  optimizer.apply_gradients(gradients, std::vector{w});
  EXPECT_EQ(w.read().item<float>(), 3 - 6);
}

TEST(LossScaleOptimizer, AFixedScaleStays) {
  Variable w(Tensor(0.0f));
  SGD sgd({.learning_rate = 1});
  LossScaleOptimizer optimizer(sgd, {.dynamic = false, .initial_scale = 1000});
  optimizer.apply_gradients({Tensor(3000.0f)}, {w});
  optimizer.apply_gradients({Tensor(kInf)}, {w});
  EXPECT_NEAR(w.read().item<float>(), -3, 1e-6);
  EXPECT_EQ(optimizer.scale().read().item<float>(), 1000);
  EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 1);
}

TEST(LossScaleOptimizer, AVoteIsNoOverflow) {
  Variable w(Tensor(0.0f));
  SGD sgd({.learning_rate = 1});
  LossScaleOptimizer optimizer(sgd, {.initial_scale = 4, .growth_steps = 2});
  const auto step = [&](float gradient, bool vote) {
    get_replica_context()->vote_skip(Tensor(vote));
    optimizer.apply_gradients({Tensor(gradient)}, {w});
    return std::pair(optimizer.scale().read().item<float>(),
                     optimizer.good_steps().read().item<int>());
  };
  EXPECT_EQ(step(4, false), std::pair(4.0f, 1));
  EXPECT_EQ(step(4, true), std::pair(4.0f, 1));
  EXPECT_EQ(step(kInf, true), std::pair(4.0f, 1)) << "as if it had not been";
  EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 0);
  EXPECT_EQ(w.read().item<float>(), -1);
}

TEST(LossScaleOptimizer, AVotedOverflowLeavesWhatAccumulatedAtItsScale) {
  Variable w(Tensor(0.0f));
  SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
  LossScaleOptimizer optimizer(sgd, {.initial_scale = 8});
  for (const float gradient : {8.0f, kInf, 8.0f}) {
    get_replica_context()->vote_skip(Tensor(std::isinf(gradient)));
    optimizer.apply_gradients({Tensor(gradient)}, {w});
  }
  EXPECT_EQ(w.read().item<float>(), -1);
}

TEST(LossScaleOptimizer, AnOverflowOfTheNormIsOne) {
  Variable w(lockstep::zeros({4})), v(lockstep::zeros({4}));
  SGD sgd({.learning_rate = 1, .clip = {.global_norm = 1}});
  LossScaleOptimizer optimizer(sgd, {.initial_scale = 2});
  const Tensor huge = full({4}, 3e38);
  optimizer.apply_gradients({huge, huge}, {w, v});
  EXPECT_EQ(w.read().to_vector<float>(), std::vector<float>(4, 0.0f)) << "and not NaN";
  EXPECT_EQ(optimizer.scale().read().item<float>(), 1);
}

TEST(LossScaleOptimizer, TrainingThatOnlySkipsIsAnError) {
  Variable w(Tensor(2.0f));
  SGD sgd({.learning_rate = 1});
  LossScaleOptimizer optimizer(sgd, {.max_consecutive_skips = 3});
  const Tensor inf(kInf), one(1.0f);
  for (int i = 0; i < 2; ++i) optimizer.apply_gradients({inf}, {w});
  optimizer.apply_gradients({one}, {w});
  for (int i = 0; i < 3; ++i) optimizer.apply_gradients({inf}, {w});
  const int attempted = optimizer.steps_attempted().read().item<int>();
  for (int i = 0; i < 2; ++i) {
    const auto error = caught<FailedPrecondition>([&] { optimizer.apply_gradients({one}, {w}); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message(), ::testing::HasSubstr("last 3 steps"));
    EXPECT_THAT(error->location().file, ::testing::HasSubstr("loss_scale_test.cc"));
  }
  EXPECT_THAT([&] { optimizer.check_progress(); }, throws<FailedPrecondition>("min_scale"));
  EXPECT_EQ(optimizer.steps_attempted().read().item<int>(), attempted);
  EXPECT_TRUE(w.valid());
}

TEST(LossScaleOptimizer, KeepsItsStateWithTheInnerOptimizers) {
  SGD sgd;
  LossScaleOptimizer optimizer(sgd);
  struct Names final : StateVisitor {
    void visit(std::string_view name, Tensor&) override { names.emplace_back(name); }
    void visit(std::string_view, std::int64_t&) override {}
    std::vector<std::string> names;
  } visitor;
  optimizer.visit_state(visitor);
  EXPECT_THAT(visitor.names, ::testing::IsSupersetOf({"iterations", "loss_scale", "good_steps",
                                                      "skipped_steps", "consecutive_skips"}));
}

// XLA rewrites products of constants, of which a check is not to be one.
TEST(LossScaleXla, SeesWhatOverflowsInTheLastProduct) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 1});
  const auto scope = strategy.scope();
  const Variable w(Tensor(1.0f)), huge(Tensor(3e38f), {.trainable = false});
  SGD sgd({.learning_rate = 1});
  LossScaleOptimizer optimizer(sgd, {.initial_scale = 2});
  strategy.run([&] { optimizer.apply_gradients({huge.read() * 2.0}, {w}); });
  EXPECT_EQ(w.read().item<float>(), 1);
  EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 1);
}

// ---- a fake overflow on replica k at step s

class Overflows : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(Overflows);

struct State {
  std::vector<std::vector<float>> values;  // of weights and slots
  double scale = 0;
  int updates = 0, skipped = 0;
};

std::unique_ptr<Optimizer> make(bool adam) {
  if (adam)
    return std::make_unique<Adam>(
        AdamOptions{.learning_rate = 0.1, .clip = {.global_norm = 1}, .ema = {.use = true}});
  return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.5});
}

struct Fault {
  int step = -1, replica = 0;
  float value = kInf;
};

// Six steps of a regression, of which the one with the fault is left out where there is no loss scale.
State train(const Strategy& strategy, bool adam, bool scaled, const Fault& fault) {
  const auto scope = strategy.scope();
  const Variable w(Noise(1).tensor<float>({5, 2})), b(Noise(2).tensor<float>({2}));
  const std::vector<Variable> variables{w, b};
  const auto inner = make(adam);
  LossScaleOptimizer outer(*inner);
  Noise noise(3);
  for (int step = 0; step < 6; ++step) {
    const Tensor x = noise.tensor<float>({8, 5}), y = noise.tensor<float>({8, 2});
    if (step == fault.step && !scaled) continue;
    strategy.run([&] {
      const ReplicaContext& context = *get_replica_context();
      const auto mine = rows_of_part(8, context.num_replicas_in_sync(), context.replica_index());
      GradientTape tape;
      Tensor loss = sum(square(dense(slice_rows(x, mine), w, b) - slice_rows(y, mine))) / 8.0;
      const Tensor faulty =
          equal(context.replica_id_in_sync_group(), step == fault.step ? fault.replica : -1);
      loss = loss * select(faulty, fault.value, Tensor(1.0f));
      if (scaled)
        outer.minimize(loss, variables, tape);
      else
        inner->minimize(loss, variables, tape);
    });
  }
  std::vector<Variable> all = variables;
  for (const Variable& variable : variables)
    for (const char* slot : {"velocity", "m", "v", "average"}) try {
        all.push_back(inner->slot(variable, slot));
      } catch (const InvalidArgument&) {
      }
  State state;
  testing::require_equal_replicas(all);
  for (const Variable& variable : all) state.values.push_back(variable.read().to_vector<float>());
  state.scale = outer.scale().read().item<double>();
  state.updates = inner->iterations().read().item<int>();
  state.skipped = outer.skipped_steps().read().item<int>();
  return state;
}

// A scale that is a power of two changes no bit, so that what is left is the training without the
// step; but XLA rounds otherwise when it fuses another program.
TEST_P(Overflows, AnywhereLeaveTheTrainingWithoutThatStep) {
  std::vector<Fault> faults{{2, 0, std::nanf("")}};
  if (!traced()) faults.insert(faults.end(), {{0, 1, kInf}, {3, 3, -kInf}, {5, 2, kInf}});
  for (const bool adam : {false, true})
    for (const Fault fault : faults)
      run(4, [&](const Strategy& strategy) {
        SCOPED_TRACE(std::to_string(fault.step) + " on replica " + std::to_string(fault.replica));
        const State expected = train(strategy, adam, false, fault);
        const State got = train(strategy, adam, true, fault);
        ASSERT_EQ(got.values.size(), expected.values.size());
        for (std::size_t i = 0; i < got.values.size(); ++i)
          EXPECT_THAT(got.values[i],
                      ::testing::Pointwise(::testing::FloatNear(traced() ? 1e-6f : 0.0f),
                                           expected.values[i]));
        EXPECT_EQ(got.updates, 5);
        EXPECT_EQ(got.skipped, 1);
        EXPECT_EQ(got.scale, 16384);
      });
}

TEST_P(Overflows, AreAgreedOnWithoutAggregation) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(1.0f));
    SGD sgd({.learning_rate = 1});
    LossScaleOptimizer optimizer(sgd, {.initial_scale = 4});
    for (const int faulty : {-1, 1})
      strategy.run([&] {
        const Tensor id = get_replica_context()->replica_id_in_sync_group();
        const Tensor gradient = select(equal(id, faulty), kInf, cast(id, DType::f32) * 4.0);
        optimizer.apply_gradients({gradient}, {w}, {.aggregate = false});
      });
    testing::require_equal_replicas(std::vector{optimizer.scale()});
    EXPECT_EQ(optimizer.scale().read().item<float>(), 2);
    EXPECT_EQ(optimizer.iterations().read().item<int>(), 1);
    for (const Tensor& value : w.local_values()) EXPECT_TRUE(std::isfinite(value.item<float>()));
  });
}

TEST_P(Overflows, AloneMoveTheScaleWhereVotesAreOfOneReplica) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(Tensor(1.0f));
    SGD sgd({.learning_rate = 1});
    LossScaleOptimizer optimizer(sgd, {.initial_scale = 4, .growth_steps = 2});
    for (const int voter : {1, -1, -1})
      strategy.run([&] {
        const Tensor id = get_replica_context()->replica_id_in_sync_group();
        get_replica_context()->vote_skip(equal(id, voter));
        optimizer.apply_gradients({Tensor(4.0f)}, {w}, {.aggregate = false});
      });
    testing::require_equal_replicas(std::vector{optimizer.scale(), optimizer.good_steps()});
    EXPECT_EQ(optimizer.scale().read().item<float>(), 8);
    EXPECT_EQ(optimizer.good_steps().read().item<int>(), 1);
  });
}

// What the contracts say of votes, overflows and accumulation, step by step on the host.
struct ByTheContract {
  bool aggregate;
  std::int64_t calls, growth_steps;
  std::vector<float> weights, sums = std::vector<float>(weights.size());
  float scale = 64;
  std::int64_t waiting = 0, good = 0, skipped = 0, in_a_row = 0;

  void step(std::vector<float> gradients, const std::vector<bool>& votes) {
    const auto voted = [&](std::size_t r) { return votes[r]; };
    const auto replicas = std::views::iota(std::size_t{0}, weights.size());
    if (aggregate && std::ranges::any_of(replicas, voted)) return;
    for (const std::size_t r : replicas) sums[r] += calls > 1 && voted(r) ? 0 : gradients[r];
    if (++waiting < calls) return;
    waiting = 0;
    const std::vector<float> all = std::exchange(sums, std::vector<float>(weights.size()));
    if (std::ranges::any_of(all, [](float x) { return !std::isfinite(x); })) {
      scale = std::max(scale / 2, 1.0f);
      good = 0;
      ++skipped;
      ++in_a_row;
      return;
    }
    for (const std::size_t r : replicas)
      if (aggregate || calls > 1 || !voted(r))
        weights[r] -= (aggregate ? std::accumulate(all.begin(), all.end(), 0.0f) : all[r]) /
                      (scale * static_cast<float>(calls));
    in_a_row = 0;
    if (++good < growth_steps) return;
    good = 0;
    scale *= 2;
  }
};

TEST_P(Overflows, AndVotesDoWhatTheContractsSay) {
  run(4, [](const Strategy& strategy) {
    std::mt19937 random(7);
    const auto one_in = [&](std::uint32_t n) { return random() % n == 0; };
    for (const bool aggregate : {true, false})
      for (const std::int64_t calls : {1, 2}) {
        const auto scope = strategy.scope();
        const Variable w(Tensor(0.0f));
        SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = calls});
        LossScaleOptimizer optimizer(sgd, {.initial_scale = 64, .growth_steps = 3});
        ByTheContract expected{aggregate, calls, 3, std::vector<float>(4)};
        for (int step = 0; step < 40; ++step) {
          std::vector<float> gradients;
          std::vector<bool> votes;
          for (int r = 0; r < 4; ++r) {
            gradients.push_back(one_in(12) ? kInf : static_cast<float>(random() % 8));
            votes.push_back(one_in(12));
          }
          const std::vector<float> as_numbers(votes.begin(), votes.end());
          const Tensor of_replicas({4}, std::span<const float>(gradients)),
              voters({4}, std::span<const float>(as_numbers));
          strategy.run([&] {
            ReplicaContext& replica = *get_replica_context();
            const auto own = [&](const Tensor& x) {
              return reshape(gather(x, reshape(replica.replica_id_in_sync_group(), {1})), {});
            };
            replica.vote_skip(greater(own(voters), 0));
            optimizer.apply_gradients({own(of_replicas)}, {w}, {.aggregate = aggregate});
          });
          expected.step(gradients, votes);
          const auto count = [](const Variable& v) { return v.read().item<std::int64_t>(); };
          std::vector<float> weights;
          for (const Tensor& component : w.local_values())
            weights.push_back(component.item<float>());
          const auto first = static_cast<std::size_t>(strategy.workers().rank()) * weights.size();
          ASSERT_EQ(weights, std::vector(expected.weights.begin() + first,
                                         expected.weights.begin() + first + weights.size()))
              << "step " << step << ", " << calls << " calls, aggregate " << aggregate;
          ASSERT_EQ(optimizer.scale().read().item<float>(), expected.scale) << step;
          ASSERT_EQ(count(optimizer.good_steps()), expected.good)
              << "step " << step << ", " << calls << " calls, aggregate " << aggregate;
          ASSERT_EQ(count(optimizer.skipped_steps()), expected.skipped) << step;
          ASSERT_EQ(count(optimizer.consecutive_skips()), expected.in_a_row) << step;
          ASSERT_EQ(count(sgd.steps_attempted()), step + 1);
          testing::require_equal_replicas(std::vector{optimizer.scale(), optimizer.good_steps(),
                                                      optimizer.skipped_steps(),
                                                      optimizer.consecutive_skips()});
        }
      }
  });
}

// 8 * 2^126 is more than f32 holds, 2^-100 * 2^126 is not.
TEST_P(Overflows, AreAlsoThoseOfTheDivisionByTheScale) {
  run(2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable w(lockstep::zeros({2}));
    SGD sgd({.learning_rate = 0x1p-26});
    LossScaleOptimizer optimizer(sgd, {.initial_scale = 0x1p-125, .min_scale = 0x1p-126});
    const auto step = [&](float gradient) {
      strategy.run([&] { optimizer.apply_gradients({full({2}, gradient)}, {w}); });
    };
    step(8);
    EXPECT_EQ(w.read().to_vector<float>(), std::vector<float>(2, 0.0f));
    EXPECT_EQ(optimizer.skipped_steps().read().item<int>(), 1);
    EXPECT_EQ(optimizer.scale().read().item<double>(), 0x1p-126);
    step(0x1p-101f);  // on each of two replicas
    EXPECT_EQ(w.read().to_vector<float>(), std::vector<float>(2, -1.0f));
    EXPECT_EQ(optimizer.good_steps().read().item<int>(), 1);
  });
}

// ---- what it is for

class Underflow : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(Underflow);

// The loss of a linear regression in f16 whose gradients are around 1e-8, less than f16 holds; and
// whether any weight moved.
std::pair<double, bool> regression(const Strategy& strategy, const nn::PrecisionPolicy& policy,
                                   bool scaled) {
  constexpr double kSmall = 1e-7;
  const auto scope = strategy.scope();
  const nn::Dense layer(4, 1, {.kernel_initializer = nn::zeros, .dtype = policy});
  SGD sgd({.learning_rate = 0.2 / kSmall});
  LossScaleOptimizer optimizer(sgd, {.growth_steps = 10});
  const Tensor x = Noise(4).tensor<float>({16, 4});
  const Tensor y = matmul(x, Tensor({4, 1}, {0.5f, -0.25f, 0.75f, 1.0f})) + 0.5f;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    const auto losses = strategy.run([&] {
      const ReplicaContext& context = *get_replica_context();
      const auto mine = rows_of_part(16, context.num_replicas_in_sync(), context.replica_index());
      GradientTape tape;
      const Tensor error = cast(layer(slice_rows(x, mine)), DType::f32) - slice_rows(y, mine);
      const Tensor loss = sum(square(error)) * (kSmall / 16);
      if (scaled)
        optimizer.minimize(loss, layer.trainable_variables(), tape);
      else
        sgd.minimize(loss, layer.trainable_variables(), tape);
      return loss;
    });
    last = strategy.reduce(ReduceOp::sum, losses).item<double>() / kSmall;
  }
  testing::require_equal_replicas(layer.variables());
  const std::vector<float> kernel = layer.kernel().read().to_vector<float>();
  return {last, kernel != std::vector<float>(4, 0.0f)};
}

TEST_P(Underflow, InF16IsWhatLossScalingMends) {
  run(2, [](const Strategy& strategy) {
    const auto [wide, wide_moved] = regression(strategy, nn::float32, false);
    EXPECT_TRUE(wide_moved);
    EXPECT_LT(wide, 1e-3);
    const auto [narrow, narrow_moved] = regression(strategy, nn::mixed_float16, false);
    EXPECT_FALSE(narrow_moved);
    EXPECT_GT(narrow, 0.3);
    const auto [scaled, scaled_moved] = regression(strategy, nn::mixed_float16, true);
    EXPECT_TRUE(scaled_moved);
    EXPECT_LT(scaled, 2e-3);
  });
}

}  // namespace
}  // namespace lockstep::optim
