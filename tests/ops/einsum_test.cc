// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/einsum.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/tensor/factory.h>

#include <map>

#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using testing::expect_gradients;
using testing::expect_second_gradients;
using testing::Noise;
using testing::throws;
using Tensors = std::vector<Tensor>;

// `plain` is the equation with letters for "..." and the result written out; axes of operands that
// broadcast have extent 1.
struct Case {
  const char* equation;
  const char* plain;
  std::vector<Shape> shapes;
  Shape result;
};

const Case kCases[] = {
    {"i->i", "i->i", {{3}}, {3}},
    {"ij->ji", "ij->ji", {{2, 3}}, {3, 2}},
    {"ba", "ba->ab", {{2, 3}}, {3, 2}},
    {"ijk->k", "ijk->k", {{2, 3, 4}}, {4}},
    {"ijk->", "ijk->", {{2, 3, 4}}, {}},
    {"ii->i", "ii->i", {{4, 4}}, {4}},
    {"ii", "ii->", {{3, 3}}, {}},
    {"iji->ji", "iji->ji", {{2, 3, 2}}, {3, 2}},
    {"iii->i", "iii->i", {{3, 3, 3}}, {3}},
    {"...i->i...", "abi->iab", {{2, 3, 4}}, {4, 2, 3}},
    {"ij,jk->ik", "ij,jk->ik", {{2, 3}, {3, 4}}, {2, 4}},
    {" ij , jk -> ki ", "ij,jk->ki", {{2, 3}, {3, 4}}, {4, 2}},
    {"ij,jk", "ij,jk->ik", {{2, 3}, {3, 4}}, {2, 4}},
    {"ji,jk->ik", "ji,jk->ik", {{3, 2}, {3, 4}}, {2, 4}},
    {"ij,kj->ik", "ij,kj->ik", {{2, 3}, {4, 3}}, {2, 4}},
    {"i,i->", "i,i->", {{5}, {5}}, {}},
    {"i,j->ij", "i,j->ij", {{2}, {3}}, {2, 3}},
    {"i,ij->ij", "i,ij->ij", {{2}, {2, 3}}, {2, 3}},
    {"ij,ij->i", "ij,ij->i", {{2, 3}, {2, 3}}, {2}},
    {"ij,kl->jl", "ij,kl->jl", {{2, 3}, {4, 2}}, {3, 2}},
    {"ij,->ij", "ij,->ij", {{2, 3}, {}}, {2, 3}},
    {"bij,bjk->bik", "bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}, {2, 3, 5}},
    {"bijd,bkjd->bijk", "bijd,bkjd->bijk", {{2, 3, 4, 5}, {2, 3, 4, 5}}, {2, 3, 4, 3}},
    {"bthd,bshd->bhts", "bthd,bshd->bhts", {{2, 3, 2, 4}, {2, 5, 2, 4}}, {2, 2, 3, 5}},
    {"bhts,bshd->bthd", "bhts,bshd->bthd", {{2, 2, 3, 5}, {2, 5, 2, 4}}, {2, 3, 2, 4}},
    {"aij,ajk,k->ai", "aij,ajk,k->ai", {{2, 3, 4}, {2, 4, 2}, {2}}, {2, 3}},
    {"ii,ij->j", "ii,ij->j", {{3, 3}, {3, 2}}, {2}},
    {"...ij,...jk->...ik", "abij,abjk->abik", {{2, 3, 2, 4}, {3, 4, 2}}, {2, 3, 2, 2}},
    {"...ij,jk", "abij,jk->abik", {{2, 3, 2, 4}, {4, 2}}, {2, 3, 2, 2}},
    {"...i,...i->...", "abi,abi->ab", {{2, 1, 4}, {1, 3, 4}}, {2, 3}},
};

// The sum over all letters, one product at a time. Operands lack axes at the front that broadcast.
std::vector<double> reference(const Case& c, const Tensors& operands) {
  const std::string plain = c.plain;
  std::vector<std::string> labels(1);
  for (const char letter : plain.substr(0, plain.find("->"))) {
    if (letter == ',')
      labels.emplace_back();
    else
      labels.back() += letter;
  }
  const std::string result = plain.substr(plain.find("->") + 2);
  std::map<char, std::int64_t> extents;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    labels[k] = labels[k].substr(labels[k].size() - static_cast<std::size_t>(operands[k].rank()));
    for (int axis = 0; axis < operands[k].rank(); ++axis) {
      std::int64_t& extent = extents[labels[k][static_cast<std::size_t>(axis)]];
      extent = std::max(extent, operands[k].dim(axis));
    }
  }
  std::map<char, std::int64_t> index;
  std::int64_t total = 1, count = 1;
  for (const auto& [letter, extent] : extents) total *= extent;
  for (const char letter : result) count *= extents[letter];
  std::vector<double> sums(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i;
    for (const auto& [letter, extent] : extents) {
      index[letter] = rest % extent;
      rest /= extent;
    }
    double product = 1;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::int64_t at = 0;
      for (int axis = 0; axis < operands[k].rank(); ++axis) {
        const std::int64_t extent = operands[k].dim(axis);
        at = at * extent + (extent == 1 ? 0 : index[labels[k][static_cast<std::size_t>(axis)]]);
      }
      product *= operands[k].data<double>()[static_cast<std::size_t>(at)];
    }
    std::int64_t to = 0;
    for (const char letter : result) to = to * extents[letter] + index[letter];
    sums[static_cast<std::size_t>(to)] += product;
  }
  return sums;
}

Tensors operands_of(const Case& c) {
  Tensors operands;
  for (const Shape& shape : c.shapes)
    operands.push_back(Noise(operands.size() + 1).tensor<double>(shape));
  return operands;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = cast(found, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

TEST(Einsum, EqualsTheDefinition) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.equation);
    const Tensors operands = operands_of(c);
    const std::vector<double> expected = reference(c, operands);
    const auto in = [&](DType dtype) {
      Tensors narrow;
      for (const Tensor& operand : operands) narrow.push_back(cast(operand, dtype));
      return einsum(c.equation, narrow);
    };
    EXPECT_EQ(in(DType::f64).shape(), c.result);
    expect_near(in(DType::f64), expected, 1e-13);
    expect_near(in(DType::f32), expected, 2e-6);
    expect_near(in(DType::bf16), expected, 0.05);
  }
}

TEST(Einsum, GradientsEqualDifferences) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.equation);
    expect_gradients([&](const Tensors& t) { return einsum(c.equation, t); }, operands_of(c));
  }
}

TEST(Einsum, SecondGradientsEqualDifferences) {
  for (const char* equation : {"ij,jk->ik", "ji,jk->ki", "ij,ij->i"})
    expect_second_gradients([&](const Tensors& t) { return square(einsum(equation, t)); },
                            {Noise(1).tensor<double>({2, 2}), Noise(2).tensor<double>({2, 2})});
  expect_second_gradients([](const Tensors& t) { return square(einsum("ii->i", t)); },
                          {Noise(1).tensor<double>({3, 3})});
}

TEST(Einsum, MultipliesIntegers) {
  const Tensor a(Shape{2, 2}, {1, -2, 3, 4});
  EXPECT_THAT(einsum("ij,jk->ik", {a, a}), testing::holds<std::int32_t>({-5, -10, 15, 10}));
  EXPECT_THAT(einsum("ij->j", {a}), testing::holds<std::int32_t>({4, 2}));
  EXPECT_THAT(einsum("ij,ij->ij", {a, a}), testing::holds<std::int32_t>({1, 4, 9, 16}));
}

TEST(Einsum, TakesNothing) {
  EXPECT_EQ(einsum("ij,jk->ik", {zeros({0, 3}), zeros({3, 4})}).shape(), (Shape{0, 4}));
  expect_near(einsum("ij,jk->ik", {zeros({2, 0}), zeros({0, 1})}), {0, 0}, 0);
  expect_near(einsum("ij->", {zeros({0, 2})}), {0}, 0);
  EXPECT_EQ(einsum("ii->i", {zeros({0, 0})}).shape(), (Shape{0}));
  EXPECT_EQ(einsum("...i,i->...", {zeros({0, 1, 3}), zeros({3})}).shape(), (Shape{0, 1}));
}

TEST(Einsum, GivesATensorOfItsOwn) {
  const Tensor x = Noise(1).tensor<double>({2, 3});
  EXPECT_NE(einsum("ij->ij", {x}).key(), x.key());
}

TEST(Einsum, NamesWhatCannotBeRead) {
  const Tensor a = zeros({2, 3}), b = zeros({4, 5});
  const auto fails = [](const char* equation, const Tensors& operands, const char* hint) {
    EXPECT_THAT([&] { einsum(equation, operands); },
                throws<InvalidArgument>("[einsum]", equation, hint));
  };
  fails("ij,jk->ik", {a, b}, "3 and 4");
  fails("ij,jk->ik", {a, b}, "[2, 3], [4, 5]");
  fails("ij,jk->ik", {a}, "expected 2 operands, got 1");
  fails("ij", {a, b}, "expected 1 operands, got 2");
  fails("ijk->i", {a}, "another rank");
  fails("i->i", {a}, "another rank");
  fails("ij->ii", {a}, "axis i twice");
  fails("ij->ik", {a}, "no operand has axis k");
  fails("i1->i", {a}, "'1'");
  fails("......->", {a}, "'.'");
  fails("...j->j", {a}, "lacks the \"...\"");
  EXPECT_THAT(
      [&] {
        einsum("ij,ij->ij", {a, cast(a, DType::f64)});
      },
      throws<InvalidArgument>("[einsum]", "f32[2, 3]", "f64[2, 3]"));
  EXPECT_THAT(
      [&] {
        einsum("ij->ji", {zeros({2, 2}, DType::u8)});
      },
      throws<InvalidArgument>("[einsum]", "u8[2, 2]"));
  EXPECT_THAT([&] { einsum("", {}); }, throws<InvalidArgument>("[einsum]", "none"));
}

}  // namespace
}  // namespace lockstep
