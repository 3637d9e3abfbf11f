// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/tensor/factory.h>

#include "data/helpers.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Dataset<Tensor> rows_of_two(std::int64_t rows) {
  return from_tensor_slices(lockstep::range(0, 2 * rows).with_shape({rows, 2}));
}

TEST(Batch, StacksConsecutiveElements) {
  auto iterator = rows_of_two(5).batch(2).iterator();
  const Tensor first = *iterator.next();
  EXPECT_EQ(first.shape(), Shape({2, 2}));
  EXPECT_THAT(first.to_vector<std::int64_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(iterator.next()->to_vector<std::int64_t>(), ElementsAre(4, 5, 6, 7));
  const Tensor last = *iterator.next();
  EXPECT_EQ(last.shape(), Shape({1, 2}));
  EXPECT_THAT(last.to_vector<std::int64_t>(), ElementsAre(8, 9));
  EXPECT_FALSE(iterator.next());
}

TEST(Batch, DropsAShortRemainderOnRequest) {
  EXPECT_THAT(elements_of(range(5).batch(2, {.drop_remainder = true})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(elements_of(range(4).batch(2, {.drop_remainder = true})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(elements_of(range(1).batch(2, {.drop_remainder = true})), ElementsAre());
}

TEST(Batch, OfScalarsMakesVectorsAndOfBatchesMatrices) {
  EXPECT_EQ(range(6).batch(3).iterator().next()->shape(), Shape{3});
  const Tensor twice = *range(6).batch(3).batch(2).iterator().next();
  EXPECT_EQ(twice.shape(), Shape({2, 3}));
  EXPECT_EQ(twice.to_vector<std::int64_t>(), iota(6));
}

TEST(Batch, SpansRoundsOfARepeat) {
  EXPECT_THAT(elements_of(range(3).repeat(2).batch(4)),
              ElementsAre(ElementsAre(0, 1, 2, 0), ElementsAre(1, 2)));
}

TEST(Batch, OfConsecutiveRowsIsAView) {
  const Tensor table = zeros({8, 3});
  for (const Tensor& batch : from_tensor_slices(table).skip(1).batch(4))
    EXPECT_TRUE(batch.buffer().shares_allocation(table.buffer()));
}

TEST(Batch, OfShuffledRowsKeepsLeavesTogether) {
  const Tensor x = lockstep::range(0, 100), y = lockstep::range(1000, 1100);
  for (const auto& [a, b] : from_tensor_slices(std::pair(x, y)).shuffle().batch(7)) {
    const Integers left = a.to_vector<std::int64_t>(), right = b.to_vector<std::int64_t>();
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i] + 1000, right[i]);
  }
}

TEST(Batch, ThroughAMapIsTheBatchOfMappedElements) {
  const auto doubled =
      range(5).map([](const Tensor& x) { return Tensor(2 * x.item<std::int64_t>()); });
  EXPECT_THAT(elements_of(doubled.batch(3)), ElementsAre(ElementsAre(0, 2, 4), ElementsAre(6, 8)));
}

TEST(Batch, RefusesElementsThatDiffer) {
  const auto ragged = range(3).map([](const Tensor& x) { return zeros({x.item<int>() / 2 + 1}); });
  try {
    ragged.batch(3).iterator().next();
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("[Dataset::batch]"));
    EXPECT_THAT(error.what(), HasSubstr("f32[1] in one and f32[2] in another"));
    EXPECT_EQ(error.location().line, __LINE__ - 5);
  }
}

TEST(Batch, RefusesSizesBelowOne) {
  EXPECT_THAT([] { range(3).batch(0); }, ThrowsMessage<InvalidArgument>(HasSubstr("got 0")));
  EXPECT_THROW(range(3).batch(-4), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::data
