// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "device/pool.h"
#include "support/process.h"

namespace lockstep {
namespace {

struct Block {
  unsigned char* data;
  std::size_t bytes;
  unsigned char mark;
};

Block take(MemorySource& memory, std::size_t bytes, unsigned char mark) {
  auto* data = static_cast<unsigned char*>(memory.allocate(bytes));
  EXPECT_NE(data, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
  memory.handed_out(data, bytes);
  std::memset(data, mark, bytes);
  return {data, bytes, mark};
}

bool untouched(const Block& block) {
  return std::all_of(block.data, block.data + block.bytes,
                     [&](unsigned char byte) { return byte == block.mark; });
}

TEST(HostMemory, BlocksOfAllSizesAreApart) {
  const auto memory = host_memory();
  std::minstd_rand random(1);
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (i % 3 == 2) {
      const std::size_t at = random() % blocks.size();
      ASSERT_TRUE(untouched(blocks[at]));
      memory->free(blocks[at].data, blocks[at].bytes);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
    }
    // 64 bytes to 4 MiB, which are blocks of slabs and of their own
    const std::size_t bytes = std::size_t{64} << random() % (i % 50 == 0 ? 17 : 10);
    blocks.push_back(take(*memory, bytes, static_cast<unsigned char>(i)));
  }
  for (const Block& block : blocks) {
    ASSERT_TRUE(untouched(block));
    memory->free(block.data, block.bytes);
  }
}

TEST(HostMemory, GoesBackToTheSystem) {
  const auto memory = host_memory();
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto before = testing::resident_bytes();
  for (int round = 0; round < 30; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(take(*memory, kBytes, 1));
    for (const Block& block : blocks) memory->free(block.data, block.bytes);
  }
  // 1.2 GiB were taken; sanitizers hold some hundred MiB back.
  EXPECT_LT(testing::resident_bytes() - before, std::int64_t{600} << 20);
}

}  // namespace
}  // namespace lockstep
