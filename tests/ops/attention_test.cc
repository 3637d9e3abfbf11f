// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/attention.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/device/device.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <limits>

#include "ops/every_isa.h"
#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/values.h"

namespace lockstep {
namespace {

using testing::expect_gradients;
using testing::expect_second_gradients;
using testing::Noise;
using testing::throws;
using testing::under_each_isa;
using Tensors = std::vector<Tensor>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class MaskKind { none, flags, added };

struct Case {
  const char* name;
  Shape q, k, v;
  AttentionOptions options = {};
  MaskKind kind = MaskKind::none;
  Shape mask = {};
};

const Case kSmall[] = {
    {"one element", {1, 1}, {1, 1}, {1, 1}},
    {"one head", {3, 2}, {4, 2}, {4, 5}},
    {"heads", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 2}},
    {"causal", {2, 5, 3}, {2, 5, 3}, {2, 5, 3}, {.causal = true}},
    {"causal, fewer keys", {5, 3}, {3, 3}, {3, 2}, {.causal = true}},
    {"causal, more keys", {3, 2}, {6, 2}, {6, 2}, {.causal = true}},
    {"scaled", {3, 2}, {4, 2}, {4, 1}, {.scale = 0.3}},
    {"flags of keys", {2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 3}, {}, MaskKind::flags, {2, 1, 1, 4}},
    {"flags of queries", {2, 3, 2}, {2, 4, 2}, {2, 4, 3}, {}, MaskKind::flags, {3, 1}},
    {"flags and causal",
     {2, 4, 2},
     {2, 4, 2},
     {2, 4, 2},
     {.causal = true},
     MaskKind::flags,
     {4, 4}},
    {"added", {2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 3}, {}, MaskKind::added, {2, 2, 3, 4}},
    {"added to keys", {2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 3}, {}, MaskKind::added, {2, 1, 4}},
    {"added to queries",
     {2, 3, 2},
     {2, 4, 2},
     {2, 4, 3},
     {.causal = true},
     MaskKind::added,
     {3, 1}},
};

// More than is held at a time.
const Case kLarge[] = {
    {"blocks of queries", {2, 300, 16}, {2, 300, 16}, {2, 300, 8}},
    {"causal blocks", {2, 300, 16}, {2, 300, 16}, {2, 300, 8}, {.causal = true}},
    {"many keys", {1, 200, 5}, {1, 1000, 5}, {1, 1000, 3}, {.causal = true}},
    {"blocks of heads", {40, 50, 8}, {40, 60, 8}, {40, 60, 8}},
    {"masked blocks", {3, 200, 4}, {3, 400, 4}, {3, 400, 4}, {}, MaskKind::flags, {3, 200, 400}},
    {"added in blocks", {3, 200, 4}, {3, 400, 4}, {3, 400, 4}, {}, MaskKind::added, {200, 400}},
};

// Flags of which some rows have none, or numbers of which some are minus infinity.
Tensor mask_of(const Case& c) {
  if (c.kind == MaskKind::none) return {};
  const Tensor noise = Noise(5).tensor<double>(c.mask);
  if (c.kind == MaskKind::flags) return less(noise, 0.2);
  return select(less(noise, -0.6), Tensor(-kInfinity), noise);
}

struct Reference {
  std::vector<double> y, dq, dk, dv;
};

// What is added to the products, everywhere.
std::vector<double> added_everywhere(const Tensor& mask, const Shape& shape) {
  if (!mask.defined()) return std::vector<double>(static_cast<std::size_t>(shape.num_elements()));
  const Tensor added =
      mask.dtype() == DType::boolean ? select(mask, Tensor(0.0), Tensor(-kInfinity)) : mask;
  return broadcast_to(added, shape).to_vector<double>();
}

// The definition in double; its gradient by the chain rule through the softmax.
Reference reference(const Case& c, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& mask, const Tensor& dy) {
  const auto queries = static_cast<std::size_t>(q.dim(-2)),
             keys = static_cast<std::size_t>(k.dim(-2)), dim = static_cast<std::size_t>(q.dim(-1)),
             out = static_cast<std::size_t>(v.dim(-1));
  const std::size_t heads = static_cast<std::size_t>(q.num_elements()) / (queries * dim);
  const double scale = c.options.scale.value_or(1 / std::sqrt(static_cast<double>(dim)));
  const std::vector<double> added = added_everywhere(mask, q.shape().with_dim(-1, k.dim(-2)));
  Reference r;
  r.y.resize(heads * queries * out);
  r.dq.resize(heads * queries * dim);
  r.dk.resize(heads * keys * dim);
  r.dv.resize(heads * keys * out);
  const double *all_q = q.data<double>().data(), *all_k = k.data<double>().data(),
               *all_v = v.data<double>().data(), *all_dy = dy.data<double>().data();
  for (std::size_t row = 0; row < heads * queries; ++row) {
    const std::size_t first = row / queries * keys, i = row % queries;  // first key of the head
    const double* const d = all_dy + row * out;
    std::vector<double> p(keys), dp(keys);
    double sum = 0, dot = 0;
    for (std::size_t j = 0; j < keys && !(c.options.causal && j > i); ++j) {
      double s = 0;
      for (std::size_t e = 0; e < dim; ++e)
        s += all_q[row * dim + e] * all_k[(first + j) * dim + e];
      sum += p[j] = std::exp(s * scale + added[row * keys + j]);
    }
    for (double& each : p) each = sum > 0 ? each / sum : 0;
    for (std::size_t j = 0; j < keys; ++j)
      for (std::size_t o = 0; o < out; ++o) {
        const double value = all_v[(first + j) * out + o];
        r.y[row * out + o] += p[j] * value;
        r.dv[(first + j) * out + o] += p[j] * d[o];
        dp[j] += d[o] * value;
        dot += p[j] * d[o] * value;
      }
    for (std::size_t j = 0; j < keys; ++j)
      for (std::size_t e = 0; e < dim; ++e) {
        const double ds = scale * p[j] * (dp[j] - dot);
        r.dq[row * dim + e] += ds * all_k[(first + j) * dim + e];
        r.dk[(first + j) * dim + e] += ds * all_q[row * dim + e];
      }
  }
  return r;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = cast(found, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

Tensor in_dtype(const Tensor& mask, DType dtype) {
  return mask.defined() && mask.dtype() != DType::boolean ? cast(mask, dtype) : mask;
}

// Values and gradients of the case with arguments of `dtype` against the reference.
void expect_definition(const Case& c, DType dtype, double tolerance) {
  SCOPED_TRACE(std::string(c.name) + ", " + std::string(name_of(dtype)));
  const auto rounded = [&](const Tensor& t) { return cast(cast(t, dtype), DType::f64); };
  const Tensor q = rounded(Noise(1).tensor<double>(c.q, 2)),
               k = rounded(Noise(2).tensor<double>(c.k, 2)),
               v = rounded(Noise(3).tensor<double>(c.v));
  const Tensor mask = in_dtype(in_dtype(mask_of(c), dtype), DType::f64);
  const Shape shape = c.q.with_dim(-1, c.v.dim(-1));
  const Tensor dy = rounded(Noise(4).tensor<double>(shape));
  const Reference expected = reference(c, q, k, v, mask, dy);
  const Tensors in{cast(q, dtype), cast(k, dtype), cast(v, dtype)};
  GradientTape tape;
  for (const Tensor& each : in) tape.watch(each);
  const Tensor y =
      scaled_dot_product_attention(in[0], in[1], in[2], in_dtype(mask, dtype), c.options);
  ASSERT_EQ(y.shape(), shape);
  ASSERT_EQ(y.dtype(), dtype);
  expect_near(y, expected.y, tolerance);
  const Tensors gradients = tape.gradient(y, in, {.target_gradient = cast(dy, dtype)});
  expect_near(gradients[0], expected.dq, 4 * tolerance);
  expect_near(gradients[1], expected.dk, 4 * tolerance);
  expect_near(gradients[2], expected.dv, 4 * tolerance);
}

TEST(Attention, EqualsTheDefinition) {
  for (const Case& c : kSmall) {
    expect_definition(c, DType::f64, 1e-13);
    expect_definition(c, DType::f32, 3e-6);
    expect_definition(c, DType::bf16, 0.008);
    expect_definition(c, DType::f16, 0.002);
  }
}

TEST(Attention, EqualsTheDefinitionInBlocksUnderEachIsa) {
  under_each_isa([] {
    for (const Case& c : kLarge) {
      expect_definition(c, DType::f64, 1e-12);
      expect_definition(c, DType::f32, 1e-5);
    }
  });
}

TEST(Attention, GradientsEqualDifferences) {
  for (const Case& c : kSmall) {
    SCOPED_TRACE(c.name);
    Tensors in{Noise(1).tensor<double>(c.q), Noise(2).tensor<double>(c.k),
               Noise(3).tensor<double>(c.v)};
    const Tensor mask = mask_of(c);
    expect_gradients(
        [&](const Tensors& t) {
          return scaled_dot_product_attention(t[0], t[1], t[2], mask, c.options);
        },
        in);
    if (c.kind != MaskKind::added) continue;
    in.push_back(Noise(5).tensor<double>(c.mask));  // finite, as differences have to be
    expect_gradients(
        [&](const Tensors& t) {
          return scaled_dot_product_attention(t[0], t[1], t[2], t[3], c.options);
        },
        in);
  }
}

TEST(Attention, SecondGradientsEqualDifferences) {
  const Tensors in{Noise(1).tensor<double>({2, 3, 2}), Noise(2).tensor<double>({2, 3, 2}),
                   Noise(3).tensor<double>({2, 3, 1}), Noise(4).tensor<double>({3, 3})};
  const Tensor flags = less(Noise(5).tensor<double>({2, 3, 3}), 0.3);
  for (const bool causal : {false, true}) {
    expect_second_gradients(
        [=](const Tensors& t) {
          return square(scaled_dot_product_attention(t[0], t[1], t[2], t[3], {.causal = causal}));
        },
        in, 1e-4);
    expect_second_gradients(
        [=](const Tensors& t) {
          return square(scaled_dot_product_attention(t[0], t[1], t[2], flags, {.causal = causal}));
        },
        {in[0], in[1], in[2]}, 1e-4);
  }
}

TEST(Attention, AQueryThatSeesNoKeyGivesZeros) {
  const Tensor q = Noise(1).tensor<float>({2, 3, 4}), k = Noise(2).tensor<float>({2, 5, 4}),
               v = Noise(3).tensor<float>({2, 5, 2});
  const Tensor flags(Shape{3, 1}, {true, false, true});
  const Tensor numbers = select(flags, Tensor(0.5F), Tensor(static_cast<float>(-kInfinity)));
  for (const Tensor& mask : {flags, numbers}) {
    GradientTape tape;
    for (const Tensor* t : {&q, &k, &v}) tape.watch(*t);
    const Tensor y = scaled_dot_product_attention(q, k, v, mask);
    for (const std::size_t i : {2U, 3U, 8U, 9U}) EXPECT_EQ(y.data<float>()[i], 0) << i;
    EXPECT_NE(y.data<float>()[0], 0);
    for (const Tensor& gradient : tape.gradient(y, {q, k, v}))
      EXPECT_THAT(gradient.to_vector<float>(),
                  ::testing::Each(::testing::Truly([](float g) { return std::isfinite(g); })));
  }
}

TEST(Attention, LargeProductsDoNotOverflow) {
  const Tensor q(Shape{1, 1}, {1e4F}), k(Shape{2, 1}, {1.0F, -1.0F}), v(Shape{2, 1}, {3.0F, 5.0F});
  EXPECT_THAT(scaled_dot_product_attention(q, k, v), testing::holds({3.0F}));
  EXPECT_THAT(scaled_dot_product_attention(-q, k, v), testing::holds({5.0F}));
}

TEST(Attention, TakesNothing) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const auto run = [&](const Shape& q, const Shape& k, const Shape& v, bool causal) {
      const Tensors in{ones(q, dtype), ones(k, dtype), ones(v, dtype)};
      GradientTape tape;
      for (const Tensor& each : in) tape.watch(each);
      const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], {}, {.causal = causal});
      const Tensors gradients = tape.gradient(y, in);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(gradients[i].shape(), in[i].shape());
      return y;
    };
    for (const bool causal : {false, true}) {
      EXPECT_EQ(run({0, 3, 2}, {0, 4, 2}, {0, 4, 5}, causal).shape(), (Shape{0, 3, 5}));
      EXPECT_EQ(run({2, 0, 2}, {2, 4, 2}, {2, 4, 5}, causal).shape(), (Shape{2, 0, 5}));
      expect_near(run({1, 2, 2}, {1, 0, 2}, {1, 0, 2}, causal), {0, 0, 0, 0}, 0);
      EXPECT_EQ(run({2, 3, 2}, {2, 4, 2}, {2, 4, 0}, causal).shape(), (Shape{2, 3, 0}));
    }
    expect_near(run({1, 2, 0}, {1, 4, 0}, {1, 4, 1}, false), {1, 1}, 0.01);
  }
}

// The products of all heads would be 16 MiB.
TEST(Attention, KeepsNoProductsOfAllHeads) {
  const Tensor x = Noise(1).tensor<float>({16, 512, 8});
  const std::int64_t before = memory_stats(Device{}).in_use;
  set_memory_limit(Device{}, before + (4 << 20));
  {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = scaled_dot_product_attention(x, x, x);
    EXPECT_LT(memory_stats(Device{}).in_use - before, 1 << 20);
    EXPECT_TRUE(tape.gradient(y, {x})[0].defined());
  }
  set_memory_limit(Device{}, 0);
}

TEST(Attention, NamesWhatDoesNotFit) {
  const Tensor q = zeros({2, 3, 4}), k = zeros({2, 5, 4}), v = zeros({2, 5, 6});
  EXPECT_THAT(
      [&] {
        scaled_dot_product_attention(q, zeros({2, 5, 3}), v);
      },
      throws<InvalidArgument>("[scaled_dot_product_attention]", "[2, 3, 4]", "[2, 5, 3]"));
  EXPECT_THAT(
      [&] {
        scaled_dot_product_attention(q, k, zeros({2, 4, 6}));
      },
      throws<InvalidArgument>("[2, 5, 4]", "[2, 4, 6]"));
  EXPECT_THAT(
      [&] {
        scaled_dot_product_attention(q, zeros({1, 5, 4}), v);
      },
      throws<InvalidArgument>("[2, 3, 4]", "[1, 5, 4]"));
  EXPECT_THAT([&] { scaled_dot_product_attention(zeros({4}), zeros({4}), zeros({4})); },
              throws<InvalidArgument>("[4]"));
  EXPECT_THAT([&] { scaled_dot_product_attention(q, k, cast(v, DType::f64)); },
              throws<InvalidArgument>("f32", "f64[2, 5, 6]"));
  EXPECT_THAT(
      [&] {
        scaled_dot_product_attention(q, k, v, zeros({3, 4}));
      },
      throws<InvalidArgument>("mask", "[2, 3, 5]", "[3, 4]"));
  EXPECT_THAT(
      [&] {
        scaled_dot_product_attention(q, k, v, zeros({3, 5}, DType::f64));
      },
      throws<InvalidArgument>("mask", "f32", "f64[3, 5]"));
  EXPECT_THAT([&] { scaled_dot_product_attention(q, k, v, {}, {.scale = kInfinity}); },
              throws<InvalidArgument>("scale", "inf"));
  const Tensor i = zeros({2, 2}, DType::i32);
  EXPECT_THAT([&] { scaled_dot_product_attention(i, i, i); },
              throws<InvalidArgument>("[scaled_dot_product_attention]", "i32[2, 2]"));
}

}  // namespace
}  // namespace lockstep
