// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/version.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Version, IsThreeNumbers) {
  int major = -1;
  int minor = -1;
  int patch = -1;
  ASSERT_EQ(std::sscanf(version().data(), "%d.%d.%d", &major, &minor, &patch), 3);
  EXPECT_GE(major, 0);
}

}  // namespace
}  // namespace lockstep
