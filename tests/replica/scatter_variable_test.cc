// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/strategy.h>
#include <lockstep/ops/cast.h>
#include <lockstep/replica/context.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::name_of;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::Each;

using enum VariableAggregation;

IndexedSlices slices(const Tensor& values, std::initializer_list<std::int64_t> indices,
                     const Shape& shape) {
  return {.values = values, .indices = vec<std::int64_t>(indices), .shape = shape};
}

class ScatterVariable : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  MirroredStrategy make(int count) const { return replicas(count, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Modes, ScatterVariable, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(ScatterVariable, VAR05_RowsOfAllReplicasAreBroughtTogether) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable a(vec({0, 0, 0}), {.aggregation = mean});
  Variable b(vec<int>({0, 0, 0}), {.aggregation = sum}),
      c(vec<int>({1, 6, 1}), {.aggregation = sum});
  Variable d(vec({2, 1, 1}), {.aggregation = mean});
  strategy.run([&] {
    const int id = replica_index();
    const Tensor two(Shape{2}, {static_cast<float>(id), static_cast<float>(id + 1)});
    const Tensor one(Shape{1}, {static_cast<float>(id + 2)});
    EXPECT_THAT(a.scatter_sub(slices(two, {id, id + 1}, {3})), holds({0, -1, -1}));
    EXPECT_THAT(b.scatter_add(slices(cast(two, DType::i32), {id, id + 1}, {3})),
                holds<int>({0, 2, 2}));
    EXPECT_THAT(c.scatter_div(slices(cast(one, DType::i32), {id}, {3})), holds<int>({0, 2, 1}));
    EXPECT_THAT(d.scatter_mul(slices(one, {id}, {3})), holds({2, 1.5, 1}));
  });
  EXPECT_THAT(a.local_values(), Each(holds({0, -1, -1})));
  EXPECT_THAT(b.local_values(), Each(holds<int>({0, 2, 2})));
  EXPECT_THAT(c.local_values(), Each(holds<int>({0, 2, 1})));
  EXPECT_THAT(d.local_values(), Each(holds({2, 1.5, 1})));
}

TEST_P(ScatterVariable, WithoutAggregationConcernsTheReplicasComponent) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  Variable own(vec({1, 1})), first(vec({1, 1}), {.aggregation = only_first_replica});
  strategy.run([&] {
    const std::int64_t id = replica_index();
    const Tensor value(Shape{1}, {static_cast<float>(id + 5)});
    own.scatter_update(slices(value, {id}, {2}));
    first.scatter_max(slices(value, {id}, {2}));
  });
  EXPECT_THAT(own.local_values()[0], holds({5, 1}));
  EXPECT_THAT(own.local_values()[1], holds({1, 6}));
  EXPECT_THAT(first.local_values(), Each(holds({5, 1})));
}

TEST_P(ScatterVariable, OutsideReplicasEveryComponentChanges) {
  const auto strategy = make(3);
  const auto scope = strategy.scope();
  Variable v(zeros({3, 2}), {.aggregation = only_first_replica});
  const IndexedSlices rows = slices(Tensor(Shape{2, 2}, {1.0F, 2.0F, 3.0F, 4.0F}), {2, 2}, {3, 2});
  EXPECT_THAT(v.scatter_add(rows), holds({0, 0, 0, 0, 4, 6}));
  EXPECT_THAT(v.scatter_sub(slices(rows.values, {0, 2}, {3, 2})), holds({-1, -2, 0, 0, 1, 2}));
  EXPECT_THAT(v.scatter_min(slices(rows.values, {0, 2}, {3, 2})), holds({-1, -2, 0, 0, 1, 2}));
  EXPECT_THAT(v.scatter_max(slices(rows.values, {0, 1}, {3, 2})), holds({1, 2, 3, 4, 1, 2}));
  EXPECT_THAT(v.scatter_mul(rows), holds({1, 2, 3, 4, 3, 16})) << "by each that names a row";
  EXPECT_THAT(v.scatter_update(rows), holds({1, 2, 3, 4, 3, 4})) << "the last one stays";
  EXPECT_THAT(v.local_values(), Each(holds({1, 2, 3, 4, 3, 4})));
}

TEST(ScatterVariables, WithoutAStrategyAndOfEveryDType) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64}) {
    Variable v(cast(vec({8, 6}), dtype));
    const IndexedSlices by = slices(cast(vec({2, 2, 3}), dtype), {0, 0, 1}, {2});
    EXPECT_THAT(cast(v.scatter_div(by), DType::f64), holds<double>({2, 2})) << name_of(dtype);
    EXPECT_THAT(cast(v.scatter_add(by), DType::f64), holds<double>({6, 5})) << name_of(dtype);
  }
  Variable v(vec<int>({std::numeric_limits<int>::min()}));
  EXPECT_THAT(v.scatter_div(slices(vec<int>({-1}), {0}, {1})),
              holds<int>({std::numeric_limits<int>::min()}));
}

TEST_P(ScatterVariable, VAR11_RefusesWhatIsReadByReplica) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  for (const auto aggregation : {none, sum, mean, only_first_replica}) {
    Variable v(vec({0, 0}),
               {.synchronization = VariableSynchronization::on_read, .aggregation = aggregation});
    EXPECT_THAT([&] { strategy.run([&] { v.scatter_add(slices(vec({1}), {0}, {2})); }); },
                throws<Unimplemented>("[Variable::scatter_add]", "on_read"));
  }
}

TEST_P(ScatterVariable, PicksNothingFromWhatIsAdded) {
  const auto strategy = make(2);
  const auto scope = strategy.scope();
  for (const auto aggregation : {sum, mean}) {
    Variable v(vec({0, 0}), {.name = "v", .aggregation = aggregation});
    const IndexedSlices rows = slices(vec({1}), {0}, {2});
    EXPECT_THAT([&] { v.scatter_max(rows); },
                throws<Unimplemented>("[Variable::scatter_max]", "'v'", "only_first_replica"));
    EXPECT_THAT([&] { strategy.run([&] { v.scatter_update(rows); }); },
                throws<Unimplemented>("[Variable::scatter_update]"));
  }
}

TEST(ScatterVariables, RefuseWhatDoesNotFit) {
  Variable v(vec({0, 0})), whole(vec<int>({4}));
  EXPECT_THAT([&] { v.scatter_mul(slices(vec({1}), {2}, {2})); },
              throws<InvalidArgument>("[Variable::scatter_mul]", "index 2", "2 rows"));
  EXPECT_THAT([&] { v.scatter_add(slices(vec({1}), {0}, {3})); },
              throws<InvalidArgument>("[Variable::scatter_add]", "f32[2]", "[3]"));
  EXPECT_THAT([&] { v.scatter_add(slices(vec<double>({1}), {0}, {2})); },
              throws<InvalidArgument>("[Variable::scatter_add]", "f64"));
  EXPECT_THAT([&] { v.scatter_max({}); },
              throws<InvalidArgument>("[Variable::scatter_max]", "undefined"));
  EXPECT_THAT([&] { whole.scatter_div(slices(vec<int>({0}), {0}, {1})); },
              throws<InvalidArgument>("[Variable::scatter_div]", "other than 0"));
  EXPECT_THAT(v.read(), holds({0, 0}));
}

}  // namespace
}  // namespace lockstep
