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

TEST(Linspace, EndsExactly) {
  EXPECT_THAT(linspace(0, 1, 5).to_vector<float>(), ElementsAre(0, 0.25f, 0.5f, 0.75f, 1));
  EXPECT_THAT(linspace(2, -1, 4, DType::f64).to_vector<double>(), ElementsAre(2, 1, 0, -1));
  EXPECT_THAT(linspace(3, 9, 1).to_vector<float>(), ElementsAre(3));
  EXPECT_EQ(linspace(3, 9, 0).shape(), Shape({0}));
  const auto thirds = linspace(0.1, 0.7, 1000, DType::f64).to_vector<double>();
  EXPECT_EQ(thirds.back(), 0.7);
  for (std::size_t i = 0; i < thirds.size(); ++i)
    EXPECT_NEAR(thirds[i], 0.1 + 0.6 * static_cast<double>(i) / 999, 1e-15);
  EXPECT_THAT([] { linspace(0, 1, -1); }, throws<InvalidArgument>("[linspace]", "-1"));
  EXPECT_THAT([] { linspace(0, 1, 3, DType::i32); }, throws<InvalidArgument>("[linspace]", "i32"));
}

TEST(Eye, MarksTheDiagonal) {
  EXPECT_THAT(eye(2).to_vector<float>(), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(eye(2, 3, DType::i64).to_vector<std::int64_t>(), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(eye(3, 2, DType::boolean).to_vector<bool>(),
              ElementsAre(true, false, false, true, false, false));
  EXPECT_EQ(eye(0).shape(), Shape({0, 0}));
  EXPECT_EQ(eye(2, 0).shape(), Shape({2, 0}));
  EXPECT_THAT([] { eye(-1); }, throws<InvalidArgument>("[eye]", "-1"));
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
