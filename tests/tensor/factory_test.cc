// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/factory.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/errors.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using testing::throws;
using Int64 = std::numeric_limits<std::int64_t>;

TEST(Full, IntegersSaturateAndNanIsZero) {
  EXPECT_THAT(full({1}, NAN, DType::i32).to_vector<std::int32_t>(), ElementsAre(0));
  EXPECT_THAT(full({1}, 1e30, DType::i32).to_vector<std::int32_t>(),
              ElementsAre(std::numeric_limits<std::int32_t>::max()));
  EXPECT_THAT(full({1}, -1e30, DType::i64).to_vector<std::int64_t>(), ElementsAre(Int64::min()));
  EXPECT_THAT(full({1}, 300, DType::u8).to_vector<std::uint8_t>(), ElementsAre(255));
}

TEST(Range, CountsStepsOfAnySize) {
  EXPECT_THAT(range(0, 5).to_vector<std::int64_t>(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(range(5, -1, -2).to_vector<std::int64_t>(), ElementsAre(5, 3, 1));
  EXPECT_EQ(range(3, 3).num_elements(), 0);
  EXPECT_EQ(range(3, 0).num_elements(), 0);
  const std::int64_t far = Int64::max() - 2;
  EXPECT_THAT(range(far, Int64::max()).to_vector<std::int64_t>(), ElementsAre(far, far + 1));
  EXPECT_THAT(range(Int64::min(), Int64::max(), Int64::max()).to_vector<std::int64_t>(),
              ElementsAre(Int64::min(), -1, Int64::max() - 1));
  EXPECT_THAT([] { range(Int64::min(), Int64::max()); }, throws<InvalidArgument>("[range]"));
  EXPECT_THAT([] { range(0, 5, 0); }, throws<InvalidArgument>("[range]", "step"));
}

}  // namespace
}  // namespace lockstep
