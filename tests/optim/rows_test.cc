// SPDX-License-Identifier: Apache-2.0
// Gradients of tables of which steps read a few rows: what comes of them is what comes of dense ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>

#include <functional>
#include <memory>

#include "support/errors.h"
#include "support/replicas.h"

namespace lockstep::optim {
namespace {

using ::testing::ElementsAre;
using testing::name_of;
using testing::replica_index;
using testing::replicas;
using testing::throws;

constexpr std::int64_t kRows = 8192, kWidth = 16;

Tensor ids(std::vector<std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  return Tensor({count}, std::span<const std::int64_t>(rows));
}

// Rows that this replica reads in a step; some twice, some also by other replicas, none at times.
Tensor rows_of(int step) {
  const std::int64_t own = 10 * replica_index() + step;
  if (step == 2 && replica_index() == 1) return ids({});
  return ids({7, own, kRows - 1, own, own + 3});
}

struct Table {
  Variable rows{reshape(linspace(-1, 1, kRows* kWidth), {kRows, kWidth}), {.name = "table"}};
  Variable bias{zeros({kWidth}), {.name = "bias"}};
  std::vector<Variable> variables() const { return {rows, bias}; }
  Tensor loss(int step) const {
    return sum(square(gather(rows, rows_of(step)) + bias - 0.5f)) / 4.0f;
  }
};

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>()>;
using Values = std::vector<std::vector<float>>;

// All components of both variables after some steps.
Values trained(const Strategy& strategy, const MakeOptimizer& make,
               const std::function<void(Optimizer&, const Table&, int step)>& step) {
  const auto scope = strategy.scope();
  const Table table;
  const auto optimizer = make();
  for (int s = 0; s < 5; ++s) strategy.run([&] { step(*optimizer, table, s); });
  Values values;
  for (const Variable& variable : table.variables())
    for (const Tensor& component : variable.local_values())
      values.push_back(component.to_vector<float>());
  return values;
}

void by_rows(Optimizer& optimizer, const Table& table, int step) {
  GradientTape tape;
  const Tensor loss = table.loss(step);
  optimizer.minimize(loss, table.variables(), tape);
}

void dense(Optimizer& optimizer, const Table& table, int step) {
  GradientTape tape;
  const Tensor loss = table.loss(step);
  optimizer.apply_gradients(tape.gradient(loss, table.variables()), table.variables());
}

struct Case {
  const char* name;
  MakeOptimizer make;
};

const Case kCases[] = {
    {"Sgd", [] { return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1}); }},
    {"SgdClippedByNorm",
     [] { return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1, .clip = {.norm = 0.5}}); }},
    {"SgdClippedByValue",
     [] {
       return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1, .clip = {.value = 0.05}});
     }},
    {"SgdClippedByGlobalNorm",
     [] {
       return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1, .clip = {.global_norm = 0.5}});
     }},
    {"SgdThatDecays",
     [] { return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1, .weight_decay = 0.01}); }},
    {"SgdAveraged",
     [] { return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1, .ema = {.use = true}}); }},
    {"SgdAccumulating",
     [] {
       return std::make_unique<SGD>(
           SGDOptions{.learning_rate = 0.1, .gradient_accumulation_steps = 2});
     }},
    {"Momentum",
     [] { return std::make_unique<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.9}); }},
    {"Adagrad", [] { return std::make_unique<Adagrad>(AdagradOptions{.learning_rate = 0.1}); }},
    {"Adam", [] { return std::make_unique<Adam>(AdamOptions{.learning_rate = 0.1}); }},
    {"Lars", [] { return std::make_unique<Lars>(LarsOptions{.learning_rate = 0.1}); }},
};

class Rows : public ::testing::TestWithParam<std::tuple<int, ReplicaThreads>> {
 protected:
  MirroredStrategy make() const {
    return replicas(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(, Rows,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::ValuesIn(testing::kBothModes)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "_" +
                                  name_of(std::get<1>(info.param));
                         });

TEST_P(Rows, GiveTheWeightsThatDenseGradientsGive) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.name);
    const Values sparse = trained(make(), each.make, by_rows);
    const Values reference = trained(make(), each.make, dense);
    ASSERT_EQ(sparse.size(), reference.size());
    for (std::size_t i = 0; i < sparse.size(); ++i)
      // Norms are added up in another order.
      EXPECT_THAT(sparse[i], ::testing::Pointwise(::testing::FloatNear(2e-7f), reference[i]));
    const auto count = static_cast<std::size_t>(std::get<0>(GetParam()));
    for (std::size_t i = 1; i < count; ++i) EXPECT_EQ(sparse[i], sparse[0]);
  }
}

TEST_P(Rows, AreWhatAReductionGivesFromTheSecondOnWhereItIsWorthIt) {
  const auto strategy = make();
  const int count = std::get<0>(GetParam());
  const auto scope = strategy.scope();
  const Variable large(zeros({kRows, kWidth})), small(zeros({4, 2}));
  const std::vector<Variable> variables{large, small};
  for (int step = 0; step < 3; ++step)
    strategy.run([&] {
      const auto reduction =
          get_replica_context()->begin_gradient_reduction(variables, SourceLocation::current());
      const std::int64_t own = 5 - replica_index();
      const Tensor indices = ids({9, own, 9});
      reduction->ready(0, IndexedSlices{ones({3, kWidth}), indices, {kRows, kWidth}});
      reduction->ready(1, IndexedSlices{ones({3, 2}), ids({1, 2, 1}), {4, 2}});
      const ReducedGradients reduced = reduction->finish();
      const auto n = static_cast<float>(count);
      EXPECT_EQ(reduced.gradients[1].to_vector<float>(),
                (std::vector<float>{0, 0, 2 * n, 2 * n, n, n, 0, 0}));
      EXPECT_FALSE(reduced.rows[1].defined());
      if (step == 0 && count > 1) {
        EXPECT_FALSE(reduced.rows[0].defined());
        EXPECT_EQ(sum(reduced.gradients[0]).item<float>(), 3 * n * kWidth);
        return;
      }
      std::vector<std::int64_t> expected;
      for (std::int64_t row = 6 - count; row <= 5; ++row) expected.push_back(row);
      expected.push_back(9);
      EXPECT_EQ(reduced.rows[0].to_vector<std::int64_t>(), expected);
      EXPECT_EQ(reduced.gradients[0].shape(), Shape({count + 1, kWidth}));
      EXPECT_EQ(reduced.gradients[0].to_vector<float>().back(), 2 * n);
      EXPECT_EQ(reduced.gradients[0].to_vector<float>().front(), 1);
    });
}

TEST_P(Rows, AndWholeTablesMeet) {
  // What the first step found in replica 0 need not stay so.
  const auto strategy = make();
  const int count = std::get<0>(GetParam());
  const auto scope = strategy.scope();
  const Variable table(zeros({kRows, kWidth}));
  for (int step = 0; step < 4; ++step)
    strategy.run([&] {
      const auto reduction =
          get_replica_context()->begin_gradient_reduction({&table, 1}, SourceLocation::current());
      const bool all = step == 2 && replica_index() == count - 1;
      if (step == 3)
        reduction->ready(0, Tensor());
      else if (all)
        reduction->ready(0, full({kRows, kWidth}, 2));
      else
        reduction->ready(0, IndexedSlices{ones({1, kWidth}), ids({3}), {kRows, kWidth}});
      const ReducedGradients reduced = reduction->finish();
      if (step == 3) {
        EXPECT_FALSE(reduced.gradients[0].defined());
        return;
      }
      const double expected =
          step == 2 ? kWidth * (2.0 * kRows + count - 1) : static_cast<double>(kWidth * count);
      EXPECT_EQ(sum(cast(reduced.gradients[0], DType::f64)).item<double>(), expected);
    });
}

TEST_P(Rows, ThatDoNotFitTheVariableAreRefused) {
  const auto strategy = make();
  const auto scope = strategy.scope();
  const Variable table(zeros({kRows, kWidth}), {.name = "t"});
  const auto hand_over = [&](const IndexedSlices& gradient) {
    return [&, gradient] {
      strategy.run([&] {
        get_replica_context()
            ->begin_gradient_reduction({&table, 1}, SourceLocation::current())
            ->ready(0, gradient);
      });
    };
  };
  EXPECT_THAT(hand_over({ones({1, kWidth}), ids({1}), {kRows, kWidth + 1}}),
              throws<InvalidArgument>("variable 't'", "[8192, 16]", "[8192, 17]"));
  EXPECT_THAT(hand_over({ones({1, 3}), ids({1}), {kRows, 3}}),
              throws<InvalidArgument>("variable 't'", "[8192, 16]", "[8192, 3]"));
  EXPECT_THAT(hand_over({ones({1, kWidth}), ids({kRows}), {kRows, kWidth}}),
              throws<InvalidArgument>("index 8192", "8192 rows"));
}

TEST_P(Rows, WhoseScaledGradientsOverflowAreSkippedByAll) {
  const auto strategy = make();
  const auto scope = strategy.scope();
  const Table table;
  SGD sgd({.learning_rate = 0.1});
  LossScaleOptimizer optimizer(sgd, {.initial_scale = 4.0});
  const auto before = table.rows.read().to_vector<float>();
  for (int step = 0; step < 3; ++step)
    strategy.run([&] {
      GradientTape tape;
      const bool bad = step == 1 && replica_index() == 0;
      const Tensor loss = table.loss(step) * (bad ? INFINITY : 1.0f);
      optimizer.minimize(loss, table.variables(), tape);
      EXPECT_EQ(sgd.iterations().read().item<std::int64_t>(), step == 0 ? 1 : step);
    });
  EXPECT_NE(table.rows.read().to_vector<float>(), before);
  EXPECT_EQ(optimizer.scale().read().item<float>(), 2);
}

}  // namespace
}  // namespace lockstep::optim
