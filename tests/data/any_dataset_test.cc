// SPDX-License-Identifier: Apache-2.0
// What strategies ask of a dataset: specs, batch sizes, parts of batches.
#include <gmock/gmock.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/tensor/factory.h>

#include "data/helpers.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::ThrowsMessage;

const auto same = [](const Tensor& x) { return x; };

Dataset<std::pair<Tensor, Tensor>> pairs(std::int64_t rows) {
  return from_tensor_slices(std::pair(zeros({rows, 3}), lockstep::range(0, rows)));
}

TEST(ElementSpec, IsKnownWithoutReading) {
  EXPECT_THAT(pairs(10).erased().element_spec(),
              Optional(ElementSpec{{DType::f32, {3}}, {DType::i64, {}}}));
  EXPECT_THAT(pairs(10).shuffle().batch(4).prefetch(2).erased().element_spec(),
              Optional(ElementSpec{{DType::f32, {-1, 3}}, {DType::i64, {-1}}}));
  EXPECT_THAT(pairs(10).batch(4, {.drop_remainder = true}).erased().element_spec(),
              Optional(ElementSpec{{DType::f32, {4, 3}}, {DType::i64, {4}}}));
  EXPECT_THAT(pairs(12).batch(4).erased().element_spec(),
              Optional(ElementSpec{{DType::f32, {4, 3}}, {DType::i64, {4}}}));
  EXPECT_THAT(range(3).repeat().batch(4).erased().element_spec(),
              Optional(ElementSpec{{DType::i64, {4}}}));
  EXPECT_THAT(from_tensors(zeros({2, 5})).erased().element_spec(),
              Optional(ElementSpec{{DType::f32, {2, 5}}}));
  EXPECT_EQ(range(3).map(same).erased().element_spec(), std::nullopt);
  EXPECT_EQ(to_string(LeafSpec{DType::f32, {-1, 64}}), "f32[?, 64]");
}

TEST(BatchSize, IsThatOfTheLastBatchBehindStepsThatKeepElements) {
  EXPECT_THAT(range(10).map(same).batch(4).erased().batch_size(), Optional(4));
  EXPECT_THAT(range(10)
                  .batch(4)
                  .shuffle()
                  .repeat(2)
                  .skip(1)
                  .take(9)
                  .shard(2, 0)
                  .prefetch(1)
                  .erased()
                  .batch_size(),
              Optional(4));
  EXPECT_EQ(range(10).batch(4).map(same).erased().batch_size(), std::nullopt);
  EXPECT_EQ(range(10).erased().batch_size(), std::nullopt);
}

TEST(BatchSize, IsTheFirstDimensionWhereTheSpecFixesIt) {
  EXPECT_THAT(from_tensor_slices(zeros({5, 32, 2})).erased().batch_size(), Optional(32));
  EXPECT_THAT(from_tensors(std::pair(zeros({6, 1}), zeros({6}))).erased().batch_size(),
              Optional(6));
  EXPECT_EQ(from_tensors(std::pair(zeros({6, 1}), zeros({5}))).erased().batch_size(), std::nullopt);
}

TEST(RequireBatched, SaysToCallBatch) {
  const SourceLocation here = SourceLocation::current();
  EXPECT_THAT(
      [&] { pairs(5).shuffle().erased().require_batched("Strategy::distribute_dataset", here); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("[Strategy::distribute_dataset]"),
                                           HasSubstr("tensor 1"), HasSubstr("i64[]"),
                                           HasSubstr("call batch(global_batch_size) first"),
                                           HasSubstr("from_tensor_slices(5) > shuffle(seed 0)"))));
  EXPECT_NO_THROW(pairs(5).batch(2).erased().require_batched("op", here));
  EXPECT_NO_THROW(range(5).map(same).erased().require_batched("op", here));  // not known
}

// The elements of one of `parts` dealt rows, and the row counts that come with them.
struct Dealt {
  std::vector<Integers> elements;
  Integers rows;
};

Dealt dealt(const AnyDataset& dataset, int parts, int part) {
  AnyIterator iterator =
      dataset.deal([=](std::int64_t rows) { return rows_of_part(rows, parts, part); }).iterator();
  Dealt result;
  while (const std::optional<Leaves> leaves = iterator.next()) {
    EXPECT_EQ(leaves->size(), 2u);
    result.elements.push_back(leaves->at(0).to_vector<std::int64_t>());
    result.rows.push_back(leaves->at(1).item<std::int64_t>());
  }
  return result;
}

// INP-02: range(8).batch(4) over 3, range(9).batch(4) and range(10).batch(4) over 2.
TEST(Deal, CutsEachBatchByTheGivenRule) {
  const auto of_eight = [](int part) { return dealt(range(8).batch(4).erased(), 3, part); };
  EXPECT_THAT(of_eight(0).elements, ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5)));
  EXPECT_THAT(of_eight(1).elements, ElementsAre(ElementsAre(2, 3), ElementsAre(6, 7)));
  EXPECT_THAT(of_eight(2).elements, ElementsAre(ElementsAre(), ElementsAre()));
  EXPECT_THAT(of_eight(2).rows, ElementsAre(4, 4));

  const Dealt nine_0 = dealt(range(9).batch(4).erased(), 2, 0);
  const Dealt nine_1 = dealt(range(9).batch(4).erased(), 2, 1);
  EXPECT_THAT(nine_0.elements, ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5), ElementsAre(8)));
  EXPECT_THAT(nine_1.elements, ElementsAre(ElementsAre(2, 3), ElementsAre(6, 7), ElementsAre()));
  EXPECT_THAT(nine_1.rows, ElementsAre(4, 4, 1));

  const Dealt ten_1 = dealt(range(10).batch(4).erased(), 2, 1);
  EXPECT_THAT(ten_1.elements, ElementsAre(ElementsAre(2, 3), ElementsAre(6, 7), ElementsAre(9)));
}

TEST(Deal, IsTheSameWhereverTheCutIsMade) {
  const auto shuffled = range(23).shuffle({.seed = 5});
  for (int part = 0; part < 3; ++part) {
    const Dealt in_batch = dealt(shuffled.batch(5).prefetch(1).erased(), 3, part);
    const Dealt of_mapped_elements = dealt(shuffled.map(same).batch(5).repeat(1).erased(), 3, part);
    const Dealt after_a_map = dealt(shuffled.batch(5).map(same).prefetch(2).erased(), 3, part);
    EXPECT_EQ(in_batch.elements, of_mapped_elements.elements);
    EXPECT_EQ(in_batch.elements, after_a_map.elements);
    EXPECT_EQ(in_batch.rows, of_mapped_elements.rows);
    EXPECT_EQ(in_batch.rows, after_a_map.rows);
  }
}

TEST(Deal, ReadsNoRowsOfOthers) {
  const auto seen = std::make_shared<Integers>();
  const auto noted = range(10).map([seen](const Tensor& x) {
    seen->push_back(x.item<std::int64_t>());
    return x;
  });
  dealt(noted.batch(4).erased(), 2, 1);
  EXPECT_THAT(*seen, ElementsAre(2, 3, 6, 7, 9));
}

TEST(Deal, OfNoRowsKeepsDtypesAndShapes) {
  const auto mapped = pairs(3).map([](const std::pair<Tensor, Tensor>& x) { return x; });
  for (const AnyDataset& dataset :
       {pairs(3).shuffle().batch(3).erased(), mapped.batch(3).erased(),
        pairs(3).batch(3).map([](const auto& x) { return x; }).erased()}) {
    const auto none = dataset.deal([](std::int64_t rows) { return RowRange{rows, rows}; });
    const Leaves leaves = *none.iterator().next();
    EXPECT_EQ(leaves[0].shape(), Shape({0, 3}));
    EXPECT_EQ(leaves[0].dtype(), DType::f32);
    EXPECT_EQ(leaves[1].shape(), Shape{0});
    EXPECT_EQ(leaves[1].dtype(), DType::i64);
    EXPECT_EQ(leaves[2].item<int>(), 3);
  }
}

TEST(Deal, SpecHasTheRowCountAtItsEnd) {
  const auto whole = [](std::int64_t rows) { return RowRange{0, rows}; };
  EXPECT_THAT(pairs(8).batch(4).erased().deal(whole).element_spec(),
              Optional(ElementSpec{{DType::f32, {-1, 3}}, {DType::i64, {-1}}, {DType::i64, {}}}));
}

TEST(Deal, OfUnbatchedElementsSaysToBatch) {
  const auto part = [](std::int64_t rows) { return RowRange{0, rows}; };
  AnyIterator iterator = range(4).map(same).erased().deal(part).iterator();
  EXPECT_THAT([&] { iterator.next(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("call batch(global_batch_size)")));
}

}  // namespace
}  // namespace lockstep::data
