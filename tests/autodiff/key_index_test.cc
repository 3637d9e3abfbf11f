// SPDX-License-Identifier: Apache-2.0
#include "autodiff/key_index.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(KeyIndex, NumbersKeysInTheOrderOfInsertion) {
  KeyIndex index;
  EXPECT_EQ(index.find(7), KeyIndex::kAbsent);
  EXPECT_EQ(index.insert(7), 0);
  EXPECT_EQ(index.insert(1000), 1);
  EXPECT_EQ(index.insert(7), 0);
  EXPECT_EQ(index.find(1000), 1);
  EXPECT_EQ(index.find(8), KeyIndex::kAbsent);
  EXPECT_EQ(index.size(), 2u);
}

TEST(KeyIndex, KeepsManyKeysApart) {
  // Neighbours, as tensors get them, and keys that differ in high bits only.
  KeyIndex index;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 1; i <= 3000; ++i) keys.push_back(i);
  for (std::uint64_t i = 1; i <= 3000; ++i) keys.push_back(i << 40);
  for (std::size_t i = 0; i < keys.size(); ++i)
    ASSERT_EQ(index.insert(keys[i]), static_cast<std::int32_t>(i));
  for (std::size_t i = 0; i < keys.size(); ++i)
    ASSERT_EQ(index.find(keys[i]), static_cast<std::int32_t>(i));
}

}  // namespace
}  // namespace lockstep
