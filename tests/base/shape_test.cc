// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/base/shape.h>

namespace lockstep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ(Shape({2, 3, 4}).num_elements(), 24);
  EXPECT_EQ(Shape({2, 0, 4}).num_elements(), 0);
}

TEST(Shape, AxesCountFromBothEnds) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.dim(0), 2);
  EXPECT_EQ(shape.dim(-1), 4);
  EXPECT_EQ(shape.dim(-3), 2);
  EXPECT_EQ(shape[1], 3);
  EXPECT_THAT([&] { shape.dim(3); },
              ThrowsMessage<InvalidArgument>(HasSubstr("[Shape::dim] axis 3 is "
                                                       "out of range for shape "
                                                       "[2, 3, 4]")));
  EXPECT_THROW(shape.dim(-4), InvalidArgument);
  EXPECT_THROW(Shape{}.dim(0), InvalidArgument);
}

TEST(Shape, ReplacesRemovesAndInsertsAxes) {
  const Shape shape{2, 3};
  EXPECT_EQ(shape.with_dim(1, 7), Shape({2, 7}));
  EXPECT_EQ(shape.with_dim(-2, 0), Shape({0, 3}));
  EXPECT_EQ(shape.without_axis(0), Shape{3});
  EXPECT_EQ(shape.without_axis(-1), Shape{2});
  EXPECT_EQ(shape.with_axis(0), Shape({1, 2, 3}));
  EXPECT_EQ(shape.with_axis(1, 5), Shape({2, 5, 3}));
  EXPECT_EQ(shape.with_axis(-1, 5), Shape({2, 3, 5}));
  EXPECT_EQ(Shape{}.with_axis(0, 4), Shape{4});
  EXPECT_THROW(shape.without_axis(2), InvalidArgument);
  EXPECT_THROW(shape.with_axis(3), InvalidArgument);
}

TEST(Shape, EqualsByRankAndExtents) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape{2}, Shape({2, 1}));
  EXPECT_NE(Shape{}, Shape{0});
  EXPECT_EQ(Shape({2, 3, 4}).without_axis(2), Shape({2, 3})) << "what was removed leaves no trace";
}

TEST(Shape, ShowsItself) {
  EXPECT_EQ(Shape{}.to_string(), "[]");
  EXPECT_EQ(Shape({2, 0, 10}).to_string(), "[2, 0, 10]");
  EXPECT_THAT(Shape({4, 5}).dims(), ElementsAre(4, 5));
}

TEST(Shape, RefusesNegativeExtentsHoweverItIsMade) {
  EXPECT_THAT([] { Shape({2, -1}); }, ThrowsMessage<InvalidArgument>(HasSubstr("got [2, -1]")));
  EXPECT_THROW(Shape{2}.with_dim(0, -1), InvalidArgument);
  EXPECT_THROW(Shape{2}.with_axis(0, -1), InvalidArgument);
}

TEST(Shape, RefusesMoreThanTheLargestRank) {
  const Shape eight{1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(eight.rank(), Shape::kMaxRank);
  EXPECT_THAT(
      [] {
        Shape({1, 1, 1, 1, 1, 1, 1, 1, 1});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("rank 9"), HasSubstr("limit of 8"))));
  EXPECT_THROW(eight.with_axis(0), InvalidArgument);
}

// 2^62 elements of 4 bytes are 2^64 bytes, which is 0 to a careless multiplication.
TEST(Shape, RefusesExtentsWhoseBytesCannotBeCounted) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 31;
  EXPECT_THROW(Shape({kLarge, kLarge}), InvalidArgument);
  EXPECT_THROW(Shape({kLarge, kLarge, kLarge, kLarge}), InvalidArgument);
  EXPECT_THROW(Shape({0, kLarge, kLarge}), InvalidArgument);
  EXPECT_THROW(Shape({kLarge, 1}).with_dim(1, kLarge), InvalidArgument);
  EXPECT_THROW(Shape{INT64_MAX}, InvalidArgument);
  EXPECT_EQ(Shape({kLarge, 1 << 20}).num_elements(), std::int64_t{1} << 51);
}

// The line on which a shape is written, also where it is an argument of something else.
TEST(Shape, ErrorsNameTheCallersLine) {
  const auto line_of = [](auto&& f) {
    try {
      f();
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.location().file, HasSubstr("shape_test.cc"));
      return error.location().line;
    }
    return 0;
  };
  const auto take = [](const Shape&) {};
  EXPECT_EQ(line_of([&] { take({2, -1}); }), __LINE__);
  EXPECT_EQ(line_of([&] { Shape{3}.dim(1); }), __LINE__);
  EXPECT_EQ(line_of([&] { Shape{3}.with_dim(0, -1); }), __LINE__);
  EXPECT_EQ(line_of([&] { Shape{3}.without_axis(1); }), __LINE__);
  EXPECT_EQ(line_of([&] { Shape{3}.with_axis(2); }), __LINE__);
  EXPECT_THAT([] { Shape({-1}, SourceLocation::current(), "call"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("[call] extents")));
}

TEST(Shape, OfAScalarHasNoAxisToName) {
  EXPECT_THAT([] { Shape{}.dim(0); },
              ThrowsMessage<InvalidArgument>(HasSubstr("shape [] has no axes")));
}

TEST(BroadcastShapes, FollowsNumPy) {
  const auto broadcast = [](const Shape& a, const Shape& b) {
    return broadcast_shapes(a, b, "op");
  };
  EXPECT_EQ(broadcast({8, 1, 6, 1}, {7, 1, 5}), Shape({8, 7, 6, 5}));  // NumPy's own examples
  EXPECT_EQ(broadcast({256, 256, 3}, {3}), Shape({256, 256, 3}));
  EXPECT_EQ(broadcast({}, {2, 3}), Shape({2, 3}));
  EXPECT_EQ(broadcast({}, {}), Shape{});
  EXPECT_EQ(broadcast({1}, {0}), Shape{0});
  EXPECT_EQ(broadcast({0, 3}, {1, 3}), Shape({0, 3}));
}

TEST(BroadcastShapes, NamesTheOpAndBothShapes) {
  EXPECT_THAT(
      [] {
        broadcast_shapes({2, 3}, {2, 4}, "add");
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("[add]"), HasSubstr("[2, 3] and [2, 4]"), HasSubstr("extents 3 and 4"))));
  EXPECT_THROW(broadcast_shapes({0}, {2}, "add"), InvalidArgument);
}

}  // namespace
}  // namespace lockstep
