// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/comm/bucket.h>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Bucket> group(std::vector<std::int64_t> bytes, std::int64_t bytes_per_pack) {
  return group_by_size(bytes, bytes_per_pack);
}

TEST(GroupBySize, CDO_05) {
  EXPECT_THAT(group({128, 32, 800, 4}, 200), ElementsAre(Bucket{0, 3}, Bucket{3, 4}));
  EXPECT_THAT(group({128, 32, 800, 4}, 0), ElementsAre(Bucket{0, 4}));
  EXPECT_THAT(group({128, -1, 800, 4}, 1), ElementsAre(Bucket{0, 4}));
}

TEST(GroupBySize, ABucketThatIsExactlyFullTakesOneMore) {
  EXPECT_THAT(group({100, 100, 1, 1}, 200), ElementsAre(Bucket{0, 3}, Bucket{3, 4}));
  EXPECT_THAT(group({201, 1, 1}, 200), ElementsAre(Bucket{0, 1}, Bucket{1, 3}));
}

TEST(GroupBySize, EmptyTensorsAndEmptyLists) {
  EXPECT_THAT(group({}, 200), IsEmpty());
  EXPECT_THAT(group({}, 0), IsEmpty());
  EXPECT_THAT(group({0, 0, 0}, 1), ElementsAre(Bucket{0, 3}));
}

TEST(GroupBySize, RefusesANegativeSizeOfPacks) { EXPECT_THROW(group({1}, -1), InvalidArgument); }

}  // namespace
}  // namespace lockstep
