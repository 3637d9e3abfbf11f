// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/rows.h>

namespace lockstep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

std::vector<std::pair<std::int64_t, std::int64_t>> dealt(std::int64_t rows, int parts) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (int part = 0; part < parts; ++part) {
    const RowRange range = rows_of_part(rows, parts, part);
    ranges.emplace_back(range.begin, range.end);
  }
  return ranges;
}

// INP-02, batch by batch: 4 rows over 3; 4, 4 and 2 over 2; 1 over 2.
TEST(RowsOfPart, IsTensorFlowsPerBatchRule) {
  EXPECT_THAT(dealt(4, 3), ElementsAre(Pair(0, 2), Pair(2, 4), Pair(4, 4)));
  EXPECT_THAT(dealt(4, 2), ElementsAre(Pair(0, 2), Pair(2, 4)));
  EXPECT_THAT(dealt(2, 2), ElementsAre(Pair(0, 1), Pair(1, 2)));
  EXPECT_THAT(dealt(1, 2), ElementsAre(Pair(0, 1), Pair(1, 1)));
}

// The 13 rows in batches of 6 of the documentation's 2 x 2 example, before they are interleaved.
TEST(RowsOfPart, LastPartsAreShortOrEmpty) {
  EXPECT_THAT(dealt(6, 4), ElementsAre(Pair(0, 2), Pair(2, 4), Pair(4, 6), Pair(6, 6)));
  EXPECT_THAT(dealt(1, 4), ElementsAre(Pair(0, 1), Pair(1, 1), Pair(1, 1), Pair(1, 1)));
  EXPECT_THAT(dealt(0, 2), ElementsAre(Pair(0, 0), Pair(0, 0)));
  EXPECT_THAT(dealt(7, 1), ElementsAre(Pair(0, 7)));
}

TEST(RowsOfPart, DealsEveryRowOnceInParts) {
  for (std::int64_t rows = 0; rows < 40; ++rows)
    for (int parts = 1; parts < 10; ++parts) {
      std::int64_t next = 0;
      for (const auto& [begin, end] : dealt(rows, parts)) {
        EXPECT_EQ(begin, next);
        EXPECT_LE(end - begin, (rows + parts - 1) / parts);
        next = end;
      }
      EXPECT_EQ(next, rows);
    }
}

Tensor table() { return Tensor(Shape{4, 2}, {0, 1, 10, 11, 20, 21, 30, 31}); }

TEST(SliceRows, IsAView) {
  const Tensor x = table();
  const Tensor middle = slice_rows(x, {1, 3});
  EXPECT_EQ(middle.shape(), Shape({2, 2}));
  EXPECT_THAT(middle.to_vector<int>(), ElementsAre(10, 11, 20, 21));
  EXPECT_TRUE(middle.buffer().shares_allocation(x.buffer()));
  EXPECT_NE(middle.key(), x.key());
  EXPECT_EQ(slice_rows(x, {4, 4}).shape(), Shape({0, 2}));
  EXPECT_EQ(slice_rows(slice_rows(x, {1, 4}), {2, 3}).to_vector<int>(), (std::vector{30, 31}));
  EXPECT_EQ(slice_rows(zeros({3, 0}), {1, 2}).shape(), Shape({1, 0}));
}

TEST(SliceRows, RefusesWhatIsOutside) {
  for (const RowRange range : {RowRange{-1, 2}, RowRange{2, 5}, RowRange{3, 2}})
    EXPECT_THAT(
        [&] { slice_rows(table(), range); },
        ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("[slice_rows]"), HasSubstr("[4, 2]"))));
  EXPECT_THAT(
      [] {
        slice_rows(Tensor(1.f), {0, 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("batch the dataset first")));
}

TEST(GatherRows, CopiesInTheGivenOrder) {
  const std::int64_t rows[] = {3, 0, 3};
  const Tensor gathered = gather_rows(table(), rows);
  EXPECT_EQ(gathered.shape(), Shape({3, 2}));
  EXPECT_THAT(gathered.to_vector<int>(), ElementsAre(30, 31, 0, 1, 30, 31));
  EXPECT_EQ(gather_rows(table(), {}).shape(), Shape({0, 2}));
  const std::int64_t outside[] = {0, 4}, negative[] = {-1};
  EXPECT_THAT([&] { gather_rows(table(), outside); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("row 4"), HasSubstr("[4, 2]"))));
  EXPECT_THROW(gather_rows(table(), negative), InvalidArgument);
}

TEST(ConcatRows, PutsRowsAfterEachOther) {
  const std::vector<Tensor> parts = {slice_rows(table(), {2, 3}), slice_rows(table(), {0, 0}),
                                     slice_rows(table(), {0, 2})};
  const Tensor all = concat_rows(parts);
  EXPECT_EQ(all.shape(), Shape({3, 2}));
  EXPECT_THAT(all.to_vector<int>(), ElementsAre(20, 21, 0, 1, 10, 11));
}

TEST(StackRows, MakesARowOfEachTensor) {
  const std::vector<Tensor> rows = {Tensor(Shape{2}, {1.f, 2.f}), Tensor(Shape{2}, {3.f, 4.f})};
  EXPECT_EQ(stack_rows(rows).shape(), Shape({2, 2}));
  EXPECT_THAT(stack_rows(rows).to_vector<float>(), ElementsAre(1, 2, 3, 4));
  const std::vector<Tensor> scalars = {Tensor(true), Tensor(false), Tensor(true)};
  EXPECT_EQ(stack_rows(scalars).shape(), Shape{3});
  EXPECT_THAT(stack_rows(scalars).to_vector<bool>(), ElementsAre(true, false, true));
}

TEST(ConcatAndStackRows, RefuseWhatIsNotAlike) {
  const std::vector<Tensor> shapes = {zeros({2, 3}), zeros({2, 4})}, none;
  const std::vector<Tensor> dtypes = {zeros({2}), zeros({2}, DType::f64)};
  EXPECT_THAT([&] { concat_rows(shapes); },
              ThrowsMessage<InvalidArgument>(HasSubstr("expected rows of f32[3], got f32[4]")));
  EXPECT_THAT(
      [&] { stack_rows(shapes); },
      ThrowsMessage<InvalidArgument>(HasSubstr("expected rows of f32[2, 3], got f32[2, 4]")));
  EXPECT_THROW(concat_rows(dtypes), InvalidArgument);
  EXPECT_THROW(stack_rows(dtypes), InvalidArgument);
  EXPECT_THROW(concat_rows(none), InvalidArgument);
  EXPECT_THROW(stack_rows(none), InvalidArgument);
  EXPECT_THROW(concat_rows(std::vector<Tensor>{Tensor(1.f)}), InvalidArgument);
}

TEST(NumRows, IsWhatAllLeavesHave) {
  EXPECT_EQ(num_rows(std::pair(zeros({5, 2}), zeros({5}))), 5);
  EXPECT_THAT(
      [] {
        num_rows(std::pair(zeros({5, 2}), zeros({4})));
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("[5, 2] and [4]"))));
  EXPECT_THROW(num_rows(std::pair(zeros({5, 2}), Tensor(1.f))), InvalidArgument);
  EXPECT_THROW(num_rows(std::vector<Tensor>()), InvalidArgument);
}

}  // namespace
}  // namespace lockstep
