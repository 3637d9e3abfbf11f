// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/tensor/factory.h>

#include <ranges>

#include "data/helpers.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Example {
  Tensor image, label;
};

Example three_examples() {
  return {Tensor(Shape{3, 2}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}),
          Tensor(Shape{3}, {std::int64_t{7}, std::int64_t{8}, std::int64_t{9}})};
}

static_assert(std::ranges::input_range<const Dataset<Example>>);
static_assert(FixedNest<Example> && TensorNest<Example>);
static_assert(!FixedNest<std::vector<Tensor>> && TensorNest<std::vector<Tensor>>);
static_assert(FixedNest<std::tuple<Tensor, float>> && !TensorNest<std::tuple<Tensor, float>>);
static_assert(detail::leaf_count<std::array<Example, 3>>() == 6);

TEST(FromTensorSlices, YieldsRowsOfEachLeafAsViews) {
  const Example all = three_examples();
  std::int64_t row = 0;
  for (const Example& example : from_tensor_slices(all)) {
    EXPECT_EQ(example.image.shape(), Shape{2});
    EXPECT_THAT(example.image.to_vector<float>(), ElementsAre(2.f * row + 1, 2.f * row + 2));
    EXPECT_EQ(example.label.shape(), Shape{});
    EXPECT_EQ(example.label.item<int>(), 7 + row);
    EXPECT_TRUE(example.image.buffer().shares_allocation(all.image.buffer()));
    ++row;
  }
  EXPECT_EQ(row, 3);
}

TEST(FromTensorSlices, KeepsTuplesVectorsAndMaps) {
  const Example all = three_examples();
  for (const auto& [image, label] : from_tensor_slices(std::tuple(all.image, all.label)).batch(3))
    EXPECT_EQ(image.shape(), Shape({3, 2}));
  const std::map<std::string, std::vector<Tensor>> features = {{"a", {all.label, all.image}},
                                                               {"b", {all.label}}};
  for (const auto& element : from_tensor_slices(features).skip(2)) {
    EXPECT_EQ(element.at("a").at(0).item<int>(), 9);
    EXPECT_THAT(element.at("a").at(1).to_vector<float>(), ElementsAre(5, 6));
    EXPECT_EQ(element.at("b").at(0).item<int>(), 9);
  }
}

TEST(FromTensorSlices, RefusesWhatHasNoCommonRows) {
  EXPECT_THAT(
      [] { from_tensor_slices(Tensor(1.f)); },
      ThrowsMessage<InvalidArgument>(HasSubstr("[from_tensor_slices] expected tensors with rows")));
  EXPECT_THAT(
      [] {
        from_tensor_slices(std::pair(zeros({3}), zeros({4, 3})));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("[3] and [4, 3]")));
  EXPECT_THAT([] { from_tensor_slices(Tensor()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("undefined")));
  EXPECT_THAT([] { from_tensor_slices(std::vector<Tensor>()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("at least one tensor")));
}

TEST(FromTensorSlices, ErrorsNameTheCallersLine) {
  try {
    from_tensor_slices(Tensor(1.f));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.location().line, __LINE__ - 3);
    EXPECT_THAT(error.location().file, HasSubstr("sources_test.cc"));
  }
}

TEST(FromTensorSlices, WithoutRowsIsEmpty) {
  const auto empty = from_tensor_slices(zeros({0, 4}));
  EXPECT_EQ(empty.cardinality(), 0);
  EXPECT_FALSE(empty.iterator().next());
  EXPECT_FALSE(empty.shuffle().batch(3).iterator().next());
}

TEST(FromTensors, IsOneElement) {
  const auto dataset = from_tensors(three_examples());
  EXPECT_EQ(dataset.cardinality(), 1);
  auto iterator = dataset.iterator();
  EXPECT_EQ(iterator.next()->image.shape(), Shape({3, 2}));
  EXPECT_FALSE(iterator.next());
  const auto with_number = from_tensors(std::tuple(zeros({2}), 3.5f));
  EXPECT_EQ(std::get<float>(*with_number.iterator().next()), 3.5f);
}

TEST(Range, CountsLikeTheStandardExamples) {
  EXPECT_EQ(values_of(range(5)), iota(5));
  EXPECT_THAT(values_of(range(2, 11, 3)), ElementsAre(2, 5, 8));
  EXPECT_THAT(values_of(range(2, 12, 3)), ElementsAre(2, 5, 8, 11));
  EXPECT_THAT(values_of(range(3, -2, -2)), ElementsAre(3, 1, -1));
  EXPECT_THAT(values_of(range(3, 3)), ElementsAre());
  EXPECT_THAT(values_of(range(5, 2)), ElementsAre());
  EXPECT_EQ(range(std::int64_t{1} << 60).cardinality(), std::int64_t{1} << 60);
  EXPECT_EQ(range(INT64_MAX, INT64_MIN, INT64_MIN).cardinality(), 2);
  EXPECT_THROW(range(INT64_MIN, INT64_MAX), InvalidArgument);
  EXPECT_THROW(range(0, 5, 0), InvalidArgument);
}

TEST(FromGenerator, MakesAFreshGeneratorForEachEpoch) {
  auto made = std::make_shared<int>(0);
  const auto dataset = from_generator([made] {
    ++*made;
    return [i = std::int64_t{0}]() mutable -> std::optional<Tensor> {
      if (i == 3) return std::nullopt;
      return Tensor(i++);
    };
  });
  EXPECT_EQ(dataset.cardinality(), kUnknown);
  EXPECT_EQ(values_of(dataset), iota(3));
  EXPECT_EQ(values_of(dataset), iota(3));
  EXPECT_EQ(*made, 2);
}

TEST(FromGenerator, IsNotCalledAgainAfterItsEnd) {
  int calls = 0;
  const auto dataset = from_generator([&calls] {
    return [&calls]() -> std::optional<Example> {
      ++calls;
      return std::nullopt;
    };
  });
  auto iterator = dataset.shuffle().batch(2).iterator();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(iterator.next());
  EXPECT_EQ(calls, 1);
}

TEST(FromGenerator, TakesMoveOnlyGeneratorsAndNests) {
  const auto dataset = from_generator([] {
    return
        [left = std::make_unique<int>(2)]() mutable -> std::optional<std::tuple<Tensor, double>> {
          if (*left == 0) return std::nullopt;
          --*left;
          return std::tuple(zeros({2}), 0.5 * *left);
        };
  });
  std::vector<double> numbers;
  for (const auto& [tensor, number] : dataset) numbers.push_back(number);
  EXPECT_THAT(numbers, ElementsAre(0.5, 0));
}

TEST(FromGenerator, AnErrorComesOutOfNextEachTime) {
  const auto dataset = from_generator([] {
    return [i = 0]() mutable -> std::optional<Tensor> {
      if (i++ == 2) throw std::runtime_error("disk on fire");
      return Tensor(std::int64_t{i});
    };
  });
  auto iterator = dataset.iterator();
  EXPECT_TRUE(iterator.next());
  EXPECT_TRUE(iterator.next());
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT([&] { iterator.next(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("disk on fire")));
  EXPECT_EQ(iterator.position(), 2);
}

}  // namespace
}  // namespace lockstep::data
