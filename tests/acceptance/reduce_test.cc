// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::name_of;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::vec;

class ReduceSemantics : public ::testing::TestWithParam<ReplicaThreads> {};
INSTANTIATE_TEST_SUITE_P(Modes, ReduceSemantics, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(ReduceSemantics, S04_Scalars) {
  const auto strategy = replicas(4, GetParam());
  const float values[] = {1, 2, 3, 6};
  const auto results = strategy.run([&] { return Tensor(values[replica_index()]); });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, results).item<float>(), 12);
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, results).item<float>(), 3);
}

TEST_P(ReduceSemantics, S04_VectorsOverAnAxis) {
  const auto strategy = replicas(2, GetParam());
  const auto results = strategy.run([] {
    return replica_index() == 0 ? vec({1, 2, 3}) : vec({5});
  });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, results, 0).item<float>(), 11);
  EXPECT_EQ(strategy.reduce(ReduceOp::mean, results, 0).item<float>(), 2.75)
      << "3.5 would be the mean of the means";
}

TEST_P(ReduceSemantics, S04_LargeIntegersSumExactly) {
  const auto strategy = replicas(4, GetParam());
  constexpr std::int64_t large = std::int64_t{1} << 53;  // large + 1 is no double
  const std::int64_t values[] = {large, 1, large + 1, 1};
  const auto results = strategy.run([&] { return Tensor(values[replica_index()]); });
  const Tensor total = strategy.reduce(ReduceOp::sum, results);
  EXPECT_EQ(total.dtype(), DType::i64);
  EXPECT_EQ(total.item<std::int64_t>(), 2 * large + 3);
  const auto rows = strategy.run([&] { return vec<std::int64_t>({values[replica_index()], 0}); });
  EXPECT_EQ(strategy.reduce(ReduceOp::sum, rows, 0).item<std::int64_t>(), 2 * large + 3);
  const auto in_step = strategy.run([&] {
    return get_replica_context()->all_reduce(ReduceOp::sum, Tensor(values[replica_index()]));
  });
  for (const Tensor& sum : in_step) EXPECT_EQ(sum.item<std::int64_t>(), 2 * large + 3);
}

}  // namespace
}  // namespace lockstep
