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

std::vector<Bucket> packs(std::vector<std::int64_t> sizes, int num_packs) {
  return Packing{.num_packs = num_packs}.group(sizes);
}

TEST(GroupByCount, CDO_07) {
  EXPECT_THAT(packs({3, 4}, 2), ElementsAre(Bucket{0, 1}, Bucket{1, 2}));
  EXPECT_THAT(packs({3, 4}, 0), ElementsAre(Bucket{0, 1}, Bucket{1, 2}));
  EXPECT_THROW(packs({3, 4}, -1), InvalidArgument);
}

TEST(GroupByCount, PacksAreOfAboutOneSize) {
  EXPECT_THAT(packs({3, 4}, 1), ElementsAre(Bucket{0, 2}));
  EXPECT_THAT(packs({10, 10, 10, 10, 10, 10}, 3),
              ElementsAre(Bucket{0, 2}, Bucket{2, 4}, Bucket{4, 6}));
  EXPECT_THAT(packs({100, 1, 1, 1}, 2), ElementsAre(Bucket{0, 1}, Bucket{1, 4}));
  EXPECT_THAT(packs({1, 1, 1, 100}, 2), ElementsAre(Bucket{0, 4}));
  EXPECT_THAT(packs({5, 5}, 7), ElementsAre(Bucket{0, 1}, Bucket{1, 2}));
  EXPECT_THAT(packs({0, 0}, 2), ElementsAre(Bucket{0, 1}, Bucket{1, 2}));
  EXPECT_THAT(packs({}, 2), IsEmpty());
  EXPECT_THROW(packs({-1}, 2), InvalidArgument);
}

}  // namespace
}  // namespace lockstep
