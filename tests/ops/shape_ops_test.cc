// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <numeric>

#include "support/by_index.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

// 0, 1, 2, ... in the given shape.
Tensor counted(const Shape& shape, DType dtype = DType::f64) {
  return reshape(range(0, shape.num_elements(), 1, dtype), shape);
}

TEST(Reshape, IsAView) {
  const Tensor x = counted({2, 6});
  const Tensor y = reshape(x, {3, -1});
  EXPECT_EQ(y.shape(), (Shape{3, 4}));
  EXPECT_EQ(y.raw_data(), x.raw_data());
  EXPECT_NE(y.key(), x.key());
  EXPECT_EQ(reshape(x, {-1}).shape(), (Shape{12}));
  EXPECT_EQ(reshape(x, Shape{12, 1}).shape(), (Shape{12, 1}));
  EXPECT_EQ(reshape(Tensor(1.0f), {1, 1}).shape(), (Shape{1, 1}));
  EXPECT_EQ(reshape(zeros({0, 3}), {3, -1}).shape(), (Shape{3, 0}));
}

TEST(Reshape, NamesBothShapes) {
  const Tensor x = counted({2, 6});
  EXPECT_THAT([&] { reshape(x, Shape{5}); }, throws<InvalidArgument>("[2, 6]", "[5]"));
  EXPECT_THAT([&] { reshape(x, {5, -1}); }, throws<InvalidArgument>("[2, 6]", "[5, -1]"));
  EXPECT_THAT([&] { reshape(x, {-1, -1}); }, throws<InvalidArgument>("at most one"));
  EXPECT_THAT([&] { reshape(x, {-2, 6}); }, throws<InvalidArgument>("[-2, 6]"));
  EXPECT_THAT([&] { reshape(zeros({0}), {0, -1}); }, throws<InvalidArgument>("does not divide"));
}

TEST(Views, InsertRemoveAndMergeAxes) {
  const Tensor x = counted({2, 1, 3});
  EXPECT_EQ(expand_dims(x, 0).shape(), (Shape{1, 2, 1, 3}));
  EXPECT_EQ(expand_dims(x, -1).shape(), (Shape{2, 1, 3, 1}));
  EXPECT_EQ(squeeze(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(x, {1}).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(zeros({1, 1})).shape(), (Shape{}));
  EXPECT_EQ(flatten_from(zeros({4, 2, 3, 5})).shape(), (Shape{4, 30}));
  EXPECT_EQ(flatten_from(zeros({4, 2, 3}), 0).shape(), (Shape{24}));
  EXPECT_EQ(flatten_from(zeros({4, 2, 3}), -1).shape(), (Shape{4, 2, 3}));
  EXPECT_THAT([&] { expand_dims(x, 4); }, throws<InvalidArgument>("axis 4", "[2, 1, 3]"));
  EXPECT_THAT([&] { squeeze(x, {0}); }, throws<InvalidArgument>("axis 0", "extent 2"));
  EXPECT_THAT([&] { flatten_from(x, 3); }, throws<InvalidArgument>("axis 3"));
}

// x transposed, one element at a time.
std::vector<double> transposed_by_hand(const Tensor& x, const std::vector<int>& permutation) {
  const int rank = x.rank();
  std::vector<std::int64_t> stride(static_cast<std::size_t>(rank), 1);
  for (int axis = rank - 2; axis >= 0; --axis)
    stride[static_cast<std::size_t>(axis)] =
        stride[static_cast<std::size_t>(axis) + 1] * x.dim(axis + 1);
  std::vector<double> y;
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    std::int64_t rest = i, from = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int source = permutation[static_cast<std::size_t>(axis)];
      from += rest % x.dim(source) * stride[static_cast<std::size_t>(source)];
      rest /= x.dim(source);
    }
    y.push_back(x.data<double>()[static_cast<std::size_t>(from)]);
  }
  return y;
}

TEST(Transpose, EveryPermutationOfFourAxes) {
  const Tensor x = counted({3, 4, 2, 5});
  std::vector<int> permutation(4);
  std::iota(permutation.begin(), permutation.end(), 0);
  do {
    const Tensor y = transpose(x, permutation);
    for (int axis = 0; axis < 4; ++axis)
      EXPECT_EQ(y.dim(axis), x.dim(permutation[static_cast<std::size_t>(axis)]));
    EXPECT_THAT(y, holds<double>(transposed_by_hand(x, permutation)));
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST(Transpose, MatricesOfOddSizesAndAllElementSizes) {
  for (const Shape& shape : {Shape{1, 7}, Shape{33, 65}, Shape{100, 3}, Shape{64, 64}}) {
    const Tensor x = mod(counted(shape), 251);
    const std::vector<double> expected = transposed_by_hand(x, {1, 0});
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8})
      EXPECT_THAT(cast(transpose(cast(x, dtype)), DType::f64), holds<double>(expected))
          << name_of(dtype);
  }
  EXPECT_EQ(transpose(zeros({0, 3})).shape(), (Shape{3, 0}));
  EXPECT_EQ(transpose(Tensor(4.0f)).item<float>(), 4);
}

TEST(Transpose, ChecksThePermutation) {
  const Tensor x = counted({2, 3});
  EXPECT_THAT([&] { transpose(x, {0}); }, throws<InvalidArgument>("[2, 3]"));
  EXPECT_THAT([&] { transpose(x, {0, 0}); }, throws<InvalidArgument>("axis 0", "twice"));
  EXPECT_THAT([&] { transpose(x, {0, 2}); }, throws<InvalidArgument>("axis 2"));
  EXPECT_EQ(transpose(x, {-1, 0}).shape(), (Shape{3, 2}));
}

TEST(BroadcastTo, RepeatsAxes) {
  EXPECT_THAT(broadcast_to(Tensor(2.0f), Shape{3}), holds<float>({2, 2, 2}));
  EXPECT_THAT(broadcast_to(counted({3}), Shape{2, 3}), holds<double>({0, 1, 2, 0, 1, 2}));
  EXPECT_THAT(broadcast_to(counted({2, 1}), Shape{2, 3}), holds<double>({0, 0, 0, 1, 1, 1}));
  EXPECT_THAT(broadcast_to(counted({2, 1, 2}), Shape{2, 2, 2, 2}),
              holds<double>({0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_THAT(broadcast_to(vec<bool>({true}), Shape{2}), holds<bool>({true, true}));
  EXPECT_EQ(broadcast_to(zeros({1, 3}), Shape{0, 3}).shape(), (Shape{0, 3}));
  EXPECT_THAT([] { broadcast_to(zeros({2}), Shape{3}); }, throws<InvalidArgument>("[2]", "[3]"));
  EXPECT_THAT(
      [] {
        broadcast_to(zeros({1, 2}), Shape{2});
      },
      throws<InvalidArgument>("[1, 2]", "[2]"));
}

TEST(Concat, AlongEveryAxis) {
  const Tensor a = counted({2, 2}), b = counted({2, 2}) + 10;
  EXPECT_THAT(concat({a, b}, 0), holds<double>({0, 1, 2, 3, 10, 11, 12, 13}));
  EXPECT_THAT(concat({a, b}, 1), holds<double>({0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_THAT(concat({a, b}, -1), holds<double>({0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_THAT(concat({counted({1, 2}), zeros({0, 2}, DType::f64), a}, 0),
              holds<double>({0, 1, 0, 1, 2, 3}));
  EXPECT_THAT(concat({counted({1, 1, 2}), counted({1, 2, 2})}, 1),
              holds<double>({0, 1, 0, 1, 2, 3}));
  EXPECT_THAT(concat({a}, 0), holds<double>({0, 1, 2, 3}));
}

TEST(Concat, ChecksItsParts) {
  EXPECT_THAT([] { concat({}, 0); }, throws<InvalidArgument>("at least one"));
  EXPECT_THAT(
      [] {
        concat({zeros({2, 2}), zeros({3, 3})}, 0);
      },
      throws<InvalidArgument>("[2, 2]", "[3, 3]"));
  EXPECT_THAT(
      [] {
        concat({zeros({2}), zeros({2, 1})}, 0);
      },
      throws<InvalidArgument>("[2]", "[2, 1]"));
  EXPECT_THAT(
      [] {
        concat({zeros({2}), zeros({2}, DType::i32)}, 0);
      },
      throws<InvalidArgument>("f32", "i32"));
  EXPECT_THAT([] { concat({zeros({2})}, 1); }, throws<InvalidArgument>("axis 1"));
  EXPECT_THAT([] { concat({zeros({2}), Tensor()}, 0); }, throws<InvalidArgument>("undefined"));
}

TEST(Stack, AddsAnAxis) {
  const Tensor a = counted({2}), b = a + 5;
  EXPECT_THAT(stack({a, b}), holds<double>({0, 1, 5, 6}));
  EXPECT_THAT(stack({a, b}, 1), holds<double>({0, 5, 1, 6}));
  EXPECT_EQ(stack({a, b}, -1).shape(), (Shape{2, 2}));
  EXPECT_EQ(stack({Tensor(1.0f), Tensor(2.0f)}).shape(), (Shape{2}));
  EXPECT_THAT([&] { stack({a, counted({3})}); }, throws<InvalidArgument>("[2]", "[3]"));
}

TEST(Split, UndoesConcat) {
  const Tensor x = counted({2, 5});
  const std::vector<Tensor> parts = split(x, {2, 0, 3}, 1);
  EXPECT_EQ(parts.size(), 3u);
  EXPECT_THAT(parts[0], holds<double>({0, 1, 5, 6}));
  EXPECT_EQ(parts[1].shape(), (Shape{2, 0}));
  EXPECT_THAT(parts[2], holds<double>({2, 3, 4, 7, 8, 9}));
  EXPECT_THAT(concat(parts, 1), holds<double>(x.to_vector<double>()));
  const std::vector<Tensor> rows = split(counted({4, 2}), 2, 0);
  EXPECT_THAT(rows[1], holds<double>({4, 5, 6, 7}));
  EXPECT_THAT([&] { split(x, {2, 2}, 1); }, throws<InvalidArgument>("add up to 4", "[2, 5]"));
  EXPECT_THAT([&] { split(x, 2, 1); }, throws<InvalidArgument>("2 equal parts", "[2, 5]"));
}

TEST(Split, TakesPartsOfManyRows) {
  const Tensor x = counted({3, 400, 7});
  for (const DType dtype : {DType::f64, DType::f16, DType::u8}) {
    const Tensor given = cast(x - 128 * floor(x / 128), dtype);
    const std::vector<Tensor> parts = split(given, {150, 0, 250}, 1);
    for (const auto& [part, begin] : {std::pair{0u, 0}, std::pair{2u, 150}})
      EXPECT_THAT(cast(parts[part], DType::f64),
                  holds<double>(by_index(parts[part].shape(), [&](const Place& p) {
                    return double((p[0] * 2800 + (p[1] + begin) * 7 + p[2]) % 128);
                  })));
    const std::vector<Tensor> columns = split(given, {1, 4, 2}, 2);
    EXPECT_THAT(cast(concat(columns, 2), DType::f64),
                holds<double>(cast(given, DType::f64).to_vector<double>()));
    EXPECT_THAT(cast(concat(parts, 1), DType::f64),
                holds<double>(cast(given, DType::f64).to_vector<double>()));
  }
}

TEST(Split, PartsThatAreNotUsedHaveNoGradient) {
  const Tensor x = counted({2, 5});
  expect_second_gradients(
      [](const auto& xs) {
        return square(split(xs[0], {1, 3, 1}, 1)[1]);
      },
      {x});
  expect_second_gradients([](const auto& xs) { return square(unstack(xs[0])[1]); }, {x});
}

TEST(Slice, CutsABox) {
  const Tensor x = counted({3, 4});
  EXPECT_THAT(slice(x, {1, 1}, {2, 2}), holds<double>({5, 6, 9, 10}));
  EXPECT_THAT(slice(x, {0, 3}, {-1, -1}), holds<double>({3, 7, 11}));
  EXPECT_EQ(slice(x, {1, 1}, {0, 2}).shape(), (Shape{0, 2}));
  EXPECT_EQ(slice(Tensor(3.0f), {}, {}).item<float>(), 3);
  const Tensor rows = slice(x, {1, 0}, {2, 4});
  EXPECT_THAT(rows, holds<double>({4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(rows.raw_data(), x.data<double>().data() + 4) << "whole rows are a view";
  EXPECT_THAT(
      [&] {
        slice(x, {1, 1}, {3, 2});
      },
      throws<InvalidArgument>("begin 1", "extent 3", "axis 0", "[3, 4]"));
  EXPECT_THAT([&] { slice(x, {-1, 1}, {1, 2}); }, throws<InvalidArgument>("axis 0"));
  EXPECT_THAT([&] { slice(x, {1}, {1}); }, throws<InvalidArgument>("[3, 4]"));
}

TEST(Pad, SurroundsWithZeros) {
  EXPECT_THAT(pad(vec<float>({1, 2}), {1}, {2}), holds<float>({0, 1, 2, 0, 0}));
  EXPECT_THAT(pad(counted({1, 2}), {1, 0}, {0, 1}), holds<double>({0, 0, 0, 0, 1, 0}));
  EXPECT_THAT(pad(zeros({0}), {1}, {1}), holds<float>({0, 0}));
  EXPECT_THAT([] { pad(zeros({2}), {-1}, {0}); }, throws<InvalidArgument>("-1"));
  EXPECT_THAT([] { pad(zeros({2}), {}, {}); }, throws<InvalidArgument>("[2]"));
}

// Sums and products of extents that do not fit into 64 bits are refused, not wrapped.
TEST(ShapeOps, ExtentsThatOverflowAreRefused) {
  constexpr std::int64_t kMax = INT64_MAX;
  const Tensor x = counted({2, 3}), none = counted({2, 0});
  EXPECT_THAT([&] { pad(x, {kMax, 0}, {kMax, 0}); }, throws<InvalidArgument>("[pad]", "[2, 3]"));
  EXPECT_THAT([&] { pad(x, {kMax - 2, 0}, {0, 0}); }, throws<InvalidArgument>("[pad]"));
  EXPECT_THAT([&] { pad(x, {1 << 30, 1 << 30}, {0, 0}); }, throws<InvalidArgument>("[pad]"));
  EXPECT_THAT([&] { slice(x, {kMax, 0}, {kMax, 3}); }, throws<InvalidArgument>("[slice]"));
  EXPECT_THAT([&] { slice(x, {INT64_MIN, 0}, {-1, 3}); }, throws<InvalidArgument>("[slice]"));
  EXPECT_THAT([&] { split(x, {kMax, kMax, 4}, 0); }, throws<InvalidArgument>("[split]"));
  EXPECT_THAT([&] { reshape(x, {kMax, kMax, -1}); }, throws<InvalidArgument>("[reshape]"));
  EXPECT_THAT(
      [&] {
        reshape(x, {std::int64_t{1} << 33, std::int64_t{1} << 33});
      },
      throws<InvalidArgument>("[reshape]", "[2, 3]"));
  EXPECT_THAT([&] { broadcast_to(none, {kMax / 64, 0}); }, throws<InvalidArgument>("do"));
  const Tensor long_column = reshape(none, {std::int64_t{1} << 58, 0});
  EXPECT_THAT(
      [&] {
        concat({long_column, long_column, long_column}, 0);
      },
      throws<InvalidArgument>("[concat]"));
}

TEST(ShapeOps, ScalarsHaveNoAxisToName) {
  EXPECT_THAT([] { concat({Tensor(1.0)}, 0); }, throws<InvalidArgument>("[concat]", "has no axes"));
  EXPECT_THAT([] { argmax(Tensor(1.0)); }, throws<InvalidArgument>("[argmax]", "has no axes"));
}

TEST(ShapeOps, GradientsAreCentralDifferences) {
  const Tensor x = Noise(1).tensor<double>({2, 3, 2}), y = Noise(2).tensor<double>({2, 1, 2});
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> ops[] = {
      {"reshape",
       [](const Tensor& t) {
         return reshape(t, {4, -1});
       }},
      {"expand_dims", [](const Tensor& t) { return expand_dims(t, 1); }},
      {"flatten_from", [](const Tensor& t) { return flatten_from(t, 1); }},
      {"transpose",
       [](const Tensor& t) {
         return transpose(t, {2, 0, 1});
       }},
      {"broadcast_to",
       [](const Tensor& t) {
         return broadcast_to(t, Shape{3, 2, 3, 2});
       }},
      {"slice",
       [](const Tensor& t) {
         return slice(t, {0, 1, 0}, {2, 2, 1});
       }},
      {"rows",
       [](const Tensor& t) {
         return slice(t, {1, 0, 0}, {1, -1, -1});
       }},
      {"pad",
       [](const Tensor& t) {
         return pad(t, {0, 1, 2}, {1, 0, 0});
       }},
      {"one part",
       [](const Tensor& t) {
         return split(t, {1, 2}, 1)[1];
       }},
      {"parts",
       [](const Tensor& t) {
         const auto p = split(t, 3, 1);
         return p[0] * p[2];
       }},
      {"stack",
       [](const Tensor& t) {
         return stack({t, square(t)}, 1);
       }},
  };
  for (const auto& [name, op] : ops) {
    SCOPED_TRACE(name);
    expect_gradients([&](const std::vector<Tensor>& xs) { return op(xs[0]); }, {x});
    expect_second_gradients([&](const std::vector<Tensor>& xs) { return square(op(xs[0])); }, {x});
  }
  expect_gradients([](const std::vector<Tensor>& xs) { return concat(xs, 1); }, {x, y});
  expect_second_gradients([](const std::vector<Tensor>& xs) { return square(concat(xs, 1)); },
                          {x, y});
  expect_gradients([](const std::vector<Tensor>& xs) { return squeeze(xs[0]); }, {y});
}

TEST(ShapeOps, ConcatGivesNoGradientToUnwatchedParts) {
  const Tensor a = vec<double>({1, 2}), b = vec<double>({3});
  GradientTape tape;
  tape.watch(b);
  EXPECT_THAT(tape.gradient(square(concat({a, b}, 0)), {b})[0], holds<double>({6}));
}

}  // namespace
}  // namespace lockstep
