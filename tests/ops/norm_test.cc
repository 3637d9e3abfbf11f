// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/norm.h>

#include <gtest/gtest.h>
#include <lockstep/base/half.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

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

constexpr double kEpsilon = 1e-3;

// A normalisation of x, seen as [samples, rows, groups, size].
struct Case {
  const char* name;
  Shape x, parameters;
  std::int64_t samples, rows, groups, size;
  bool centred;
  std::function<Tensor(const Tensor& x, const Tensor& scale, const Tensor& offset)> run;
};

Case layer(const char* name, const Shape& x, int axis, std::int64_t rows, const Shape& parameters) {
  return {name,
          x,
          parameters,
          rows,
          1,
          1,
          x.num_elements() / rows,
          true,
          [=](const Tensor& in, const Tensor& scale, const Tensor& offset) {
            return layer_norm(in, scale, offset, {.axis = axis, .epsilon = kEpsilon});
          }};
}
Case rms(const char* name, const Shape& x, int axis, std::int64_t rows, const Shape& parameters) {
  return {name,
          x,
          parameters,
          rows,
          1,
          1,
          x.num_elements() / rows,
          false,
          [=](const Tensor& in, const Tensor& scale, const Tensor&) {
            return rms_norm(in, scale, {.axis = axis, .epsilon = kEpsilon});
          }};
}
Case group(const char* name, const Shape& x, std::int64_t groups) {
  const std::int64_t channels = x.dim(-1);
  return {name,
          x,
          {channels},
          x[0],
          x.num_elements() / (x[0] * channels),
          groups,
          channels / groups,
          true,
          [=](const Tensor& in, const Tensor& scale, const Tensor& offset) {
            return group_norm(in, scale, offset, {.groups = groups, .epsilon = kEpsilon});
          }};
}
Case batch(const char* name, const Shape& x) {
  const std::int64_t channels = x.dim(-1);
  return {name,
          x,
          {channels},
          1,
          x.num_elements() / channels,
          channels,
          1,
          true,
          [=](const Tensor& in, const Tensor& scale, const Tensor& offset) {
            return batch_norm(in, scale, offset, {.epsilon = kEpsilon}).y;
          }};
}

const std::vector<Case>& small_cases() {
  static const std::vector<Case> cases{
      layer("layer, one element", {1, 1}, -1, 1, {1}),
      layer("layer, one row", {7}, 0, 1, {7}),
      layer("layer, odd", {2, 3, 5}, -1, 6, {5}),
      layer("layer, two axes", {3, 2, 4}, 1, 3, {2, 4}),
      rms("rms, odd", {3, 5}, -1, 3, {5}),
      rms("rms, two axes", {2, 2, 3}, -2, 2, {2, 3}),
      group("group, odd", {2, 3, 6}, 3),
      group("group, images", {2, 2, 3, 4}, 2),
      group("group, one group", {3, 4}, 1),
      group("group, instances", {2, 5, 3}, 3),
      batch("batch, one row", {1, 3}),
      batch("batch, rows", {5, 3}),
      batch("batch, images", {2, 3, 2, 2}),
  };
  return cases;
}

// Extents around those at which kernels cut their work.
const std::vector<Case>& large_cases() {
  static const std::vector<Case> cases{
      layer("layer 3 x 64", {3, 64}, -1, 3, {64}),
      layer("layer 130 x 67", {130, 67}, -1, 130, {67}),
      layer("layer 2 x 5000", {2, 5000}, -1, 2, {5000}),
      rms("rms 66 x 513", {66, 513}, -1, 66, {513}),
      group("group of 33 channels", {3, 41, 66}, 2),
      group("group of 600 channels", {2, 17, 600}, 4),
      batch("batch 1030 x 1", {1030, 1}),
      batch("batch 70 x 511", {70, 511}),
      batch("batch 70 x 512", {70, 512}),
      batch("batch 9 x 1500", {9, 1500}),
      batch("batch 4 x 40 x 40 x 16", {4, 40, 40, 16}),
  };
  return cases;
}

struct Reference {
  std::vector<double> y, mean, variance, dx, dscale, doffset;
};

// The definition and its gradient (the chain rule through mean and variance), in double.
Reference reference(const Case& c, const std::vector<double>& x, const std::vector<double>& scale,
                    const std::vector<double>& offset, const std::vector<double>& dy) {
  Reference r;
  r.y = r.dx = std::vector<double>(x.size());
  const auto channels = static_cast<std::size_t>(c.groups * c.size);
  r.dscale = r.doffset = std::vector<double>(channels);
  const double count = static_cast<double>(c.rows * c.size);
  for (std::int64_t s = 0; s < c.samples; ++s)
    for (std::int64_t g = 0; g < c.groups; ++g) {
      const auto each = [&](auto&& f) {
        for (std::int64_t i = 0; i < c.rows; ++i)
          for (std::int64_t k = 0; k < c.size; ++k)
            f(static_cast<std::size_t>(((s * c.rows + i) * c.groups + g) * c.size + k),
              static_cast<std::size_t>(g * c.size + k));
      };
      double mean = 0, variance = 0, sum = 0, product = 0;
      if (c.centred) each([&](std::size_t i, std::size_t) { mean += x[i] / count; });
      each([&](std::size_t i, std::size_t) { variance += (x[i] - mean) * (x[i] - mean) / count; });
      const double factor = 1 / std::sqrt(variance + kEpsilon);
      each([&](std::size_t i, std::size_t k) {
        const double normal = (x[i] - mean) * factor;
        r.y[i] = normal * scale[k] + offset[k];
        r.dscale[k] += dy[i] * normal;
        r.doffset[k] += dy[i];
        sum += dy[i] * scale[k] / count;
        product += dy[i] * scale[k] * normal / count;
      });
      each([&](std::size_t i, std::size_t k) {
        const double normal = (x[i] - mean) * factor;
        r.dx[i] = factor * (dy[i] * scale[k] - (c.centred ? sum : 0) - normal * product);
      });
      r.mean.push_back(mean);
      r.variance.push_back(variance);
    }
  return r;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = cast(found, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

// Values and gradients of the case with arguments of `dtype` against the reference.
void expect_definition(const Case& c, DType dtype, double tolerance) {
  SCOPED_TRACE(std::string(c.name) + ", " + std::string(name_of(dtype)));
  const auto rounded = [&](const Tensor& t) { return cast(cast(t, dtype), DType::f64); };
  const Tensor x = rounded(Noise(1).tensor<double>(c.x) + 0.5);
  const Tensor scale = rounded(Noise(2).tensor<double>(c.parameters) + 1.5);
  const Tensor offset =
      c.centred ? rounded(Noise(3).tensor<double>(c.parameters)) : zeros(c.parameters, DType::f64);
  const Tensor dy = rounded(Noise(4).tensor<double>(c.x));
  const Reference expected = reference(c, x.to_vector<double>(), scale.to_vector<double>(),
                                       offset.to_vector<double>(), dy.to_vector<double>());
  const Tensors in{cast(x, dtype), cast(scale, dtype), cast(offset, dtype)};
  GradientTape tape;
  for (const Tensor& each : in) tape.watch(each);
  const Tensor y = c.run(in[0], in[1], in[2]);
  ASSERT_EQ(y.shape(), c.x);
  ASSERT_EQ(y.dtype(), dtype);
  expect_near(y, expected.y, tolerance);
  const Tensors gradients = tape.gradient(y, in, {.target_gradient = cast(dy, dtype)});
  expect_near(gradients[0], expected.dx, 2 * tolerance);
  const double rows = static_cast<double>(x.num_elements() / c.parameters.num_elements());
  expect_near(gradients[1], expected.dscale, tolerance * std::sqrt(rows));
  if (c.centred) expect_near(gradients[2], expected.doffset, tolerance * std::sqrt(rows));
}

TEST(Norm, EqualsTheDefinition) {
  for (const Case& c : small_cases()) {
    expect_definition(c, DType::f64, 1e-12);
    expect_definition(c, DType::f32, 2e-5);
    expect_definition(c, DType::bf16, 0.01);
    expect_definition(c, DType::f16, 0.002);
  }
}

TEST(Norm, EqualsTheDefinitionUnderEachIsa) {
  under_each_isa([] {
    for (const Case& c : large_cases()) {
      expect_definition(c, DType::f64, 1e-12);
      expect_definition(c, DType::f32, 1e-5);
    }
  });
}

TEST(Norm, HasTheSameBitsUnderEachIsa) {
  for (const Case& c : large_cases()) {
    SCOPED_TRACE(c.name);
    const Tensors in{Noise(1).tensor<float>(c.x), Noise(2).tensor<float>(c.parameters),
                     Noise(3).tensor<float>(c.parameters)};
    std::vector<std::vector<float>> first;
    under_each_isa([&] {
      GradientTape tape;
      for (const Tensor& each : in) tape.watch(each);
      const Tensor y = c.run(in[0], in[1], in[2]);
      std::vector<std::vector<float>> bits{y.to_vector<float>()};
      for (const Tensor& gradient : tape.gradient(square(y), in))
        if (gradient.defined()) bits.push_back(gradient.to_vector<float>());
      if (first.empty()) first = bits;
      EXPECT_EQ(bits, first);
    });
  }
}

TEST(Norm, GradientsEqualDifferences) {
  for (const Case& c : small_cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = Noise(1).tensor<double>(c.x), scale = Noise(2).tensor<double>(c.parameters),
                 offset = Noise(3).tensor<double>(c.parameters);
    Tensors in{x, scale};
    if (c.centred) in.push_back(offset);
    expect_gradients([&](const Tensors& t) { return c.run(t[0], t[1], c.centred ? t[2] : offset); },
                     in);
    expect_gradients([&](const Tensors& t) { return c.run(t[0], Tensor(), Tensor()); }, {x});
  }
}

TEST(Norm, SecondGradientsEqualDifferences) {
  for (const Case& c : small_cases()) {
    if (c.x.num_elements() > 15 || c.x.num_elements() == 1) continue;
    SCOPED_TRACE(c.name);
    const Tensor x = Noise(1).tensor<double>(c.x), scale = Noise(2).tensor<double>(c.parameters),
                 offset = Noise(3).tensor<double>(c.parameters);
    expect_second_gradients(
        [&](const Tensors& t) { return square(c.run(t[0], t[1], offset + t[1])); }, {x, scale},
        1e-4);
  }
}

TEST(Norm, ManyRowsFarFromZeroKeepTheirVariance) {
  const Tensor x = Noise(1).tensor<float>({20000, 3}) + 1000;
  const auto [y, mean, variance] = batch_norm(x, {}, {}, {.epsilon = 0});
  const Tensor deviation = lockstep::mean(square(y), {.axes = {0}});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(mean.data<float>()[i], 1000, 0.01);
    EXPECT_NEAR(variance.data<float>()[i], 1.0 / 3, 0.01);
    EXPECT_NEAR(deviation.data<float>()[i], 1, 1e-3);
  }
  const Tensor rows = layer_norm(Noise(2).tensor<float>({2, 20000}) + 1000, {}, {}, {.epsilon = 0});
  EXPECT_THAT(lockstep::mean(square(rows), {.axes = {1}}).to_vector<float>(),
              ::testing::Each(::testing::FloatNear(1, 1e-3F)));
}

TEST(Norm, TakesParametersInFloatBesideSixteenBits) {
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const Case& c : small_cases()) {
      SCOPED_TRACE(c.name);
      const Tensor x = cast(Noise(1).tensor<float>(c.x), dtype);
      const Tensor scale = Noise(2).tensor<float>(c.parameters), offset = zeros(c.parameters);
      GradientTape tape;
      tape.watch(scale);
      const Tensor y = c.run(x, scale, offset);
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_EQ(tape.gradient(y, {scale})[0].dtype(), DType::f32);
      expect_near(y,
                  cast(c.run(cast(x, DType::f32), scale, offset), DType::f64).to_vector<double>(),
                  dtype == DType::f16 ? 1.0 / 1024 : 1.0 / 128);
    }
}

TEST(Norm, GradientOfTheScaleIsWrittenInPlace) {
  const Tensor x = Noise(1).tensor<float>({4, 3}), scale = Noise(2).tensor<float>({3});
  const Buffer place = Buffer::allocate(Device{}, 3 * sizeof(float));
  GradientTape tape;
  tape.watch(scale);
  const Tensor y = layer_norm(x, scale, {});
  const Tensor gradient =
      tape.gradient(y, {scale}, {.place = [&](std::size_t) { return place; }})[0];
  EXPECT_EQ(gradient.raw_data(), place.data());
}

TEST(Norm, TakesNothing) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = zeros({0, 4}, dtype), scale = ones({4}, dtype), offset = zeros({4}, dtype);
    GradientTape tape({.persistent = true});
    for (const Tensor* t : {&x, &scale, &offset}) tape.watch(*t);
    const BatchNormResult normal = batch_norm(x, scale, offset);
    expect_near(normal.mean, {0, 0, 0, 0}, 0);
    expect_near(normal.variance, {0, 0, 0, 0}, 0);
    for (const Tensor& y : {layer_norm(x, scale, offset), rms_norm(x, scale) + offset,
                            group_norm(x, scale, offset, {.groups = 2}), normal.y,
                            batch_norm_inference(x, scale, scale, scale, offset)}) {
      EXPECT_EQ(y.shape(), x.shape());
      const Tensors gradients = tape.gradient(y, {x, scale, offset});
      EXPECT_EQ(gradients[0].shape(), x.shape());
      expect_near(gradients[1], {0, 0, 0, 0}, 0);
      expect_near(gradients[2], {0, 0, 0, 0}, 0);
    }
  }
  EXPECT_EQ(layer_norm(zeros({5, 0}), zeros({0}), {}).shape(), (Shape{5, 0}));
  EXPECT_EQ(batch_norm(zeros({5, 0}), {}, {}).mean.shape(), (Shape{0}));
}

// ---- statistics

TEST(BatchNorm, GivesMeanAndVarianceOfTheBatch) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor x = cast(Noise(1).tensor<double>({6, 5, 3}), dtype);
    const BatchNormResult normal = batch_norm(x, {}, {});
    const Tensor wide = cast(x, DType::f64), mean = lockstep::mean(wide, {.axes = {0, 1}});
    const double tolerance = dtype == DType::f64 ? 1e-14 : 1e-6;
    EXPECT_EQ(normal.mean.dtype(), dtype == DType::f64 ? DType::f64 : DType::f32);
    expect_near(normal.mean, mean.to_vector<double>(), tolerance);
    expect_near(normal.variance,
                lockstep::mean(square(wide - mean), {.axes = {0, 1}}).to_vector<double>(),
                tolerance);
  }
}

TEST(BatchNorm, GradientsFlowThroughMeanAndVariance) {
  const Tensor x = Noise(1).tensor<double>({2, 3, 2}), scale = Noise(2).tensor<double>({2});
  const auto all = [](const Tensors& t) {
    const BatchNormResult n = batch_norm(t[0], t[1], {});
    return square(n.y) * n.mean + square(n.variance) * n.mean;
  };
  expect_gradients(all, {x, scale});
  expect_second_gradients(all, {x, scale}, 1e-4);
  expect_gradients([](const Tensors& t) { return square(batch_norm(t[0], {}, {}).variance); }, {x});
  expect_gradients([](const Tensors& t) { return square(batch_norm(t[0], {}, {}).mean); }, {x});
}

TEST(BatchNormInference, EqualsTheDefinition) {
  under_each_isa([] {
    for (const Shape& shape : {Shape{3}, Shape{5, 3}, Shape{2, 30, 31, 70}, Shape{3, 700}}) {
      const Shape channels{shape.dim(-1)};
      const auto noise = [&](std::uint64_t seed) { return Noise(seed).tensor<double>(channels); };
      const Tensor x = Noise(1).tensor<double>(shape), mean = noise(2), scale = noise(4),
                   variance = square(noise(3)), offset = noise(5);
      const std::vector<double> expected =
          ((x - mean) / sqrt(variance + 0.01) * scale + offset).to_vector<double>();
      const auto in = [&](DType dtype) {
        return batch_norm_inference(cast(x, dtype), cast(mean, dtype), cast(variance, dtype),
                                    cast(scale, dtype), cast(offset, dtype), {.epsilon = 0.01});
      };
      expect_near(in(DType::f64), expected, 1e-13);
      expect_near(in(DType::f32), expected, 1e-5);
    }
  });
}

TEST(BatchNormInference, GradientsEqualDifferences) {
  const Tensors in{Noise(1).tensor<double>({2, 3, 2}), Noise(2).tensor<double>({2}),
                   Noise(3).tensor<double>({2}) + 1.5, Noise(4).tensor<double>({2}),
                   Noise(5).tensor<double>({2})};
  const auto f = [](const Tensors& t) {
    return batch_norm_inference(t[0], t[1], t[2], t[3], t[4], {.epsilon = 0.01});
  };
  expect_gradients(f, in);
  expect_second_gradients([&](const Tensors& t) { return square(f(t)); }, in, 1e-4);
  expect_gradients([](const Tensors& t) { return batch_norm_inference(t[0], t[1], t[2], {}, {}); },
                   {in[0], in[1], in[2]});
}

// What replicas that share their statistics do: those of all rows, with gradients.
TEST(BatchNormInference, WithTheBatchsOwnStatisticsIsBatchNorm) {
  const Tensor x = Noise(1).tensor<double>({4, 3}), dy = Noise(2).tensor<double>({4, 3});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor mean = lockstep::mean(x, {.axes = {0}});
  const Tensor variance = lockstep::mean(square(x - mean), {.axes = {0}});
  const Tensor given = batch_norm_inference(x, mean, variance, {}, {});
  const Tensor own = batch_norm(x, {}, {}).y;
  expect_near(given, own.to_vector<double>(), 1e-14);
  expect_near(tape.gradient(given, {x}, {.target_gradient = dy})[0],
              tape.gradient(own, {x}, {.target_gradient = dy})[0].to_vector<double>(), 1e-12);
}

// ---- misuse

TEST(Norm, NamesWhatDoesNotFit) {
  const Tensor x = zeros({2, 3, 4}), four = zeros({4}), three = zeros({3});
  EXPECT_THAT([&] { layer_norm(x, three, four); },
              throws<InvalidArgument>("[layer_norm]", "scale", "[4]", "[3]", "[2, 3, 4]"));
  EXPECT_THAT([&] { layer_norm(x, four, three); },
              throws<InvalidArgument>("[layer_norm]", "offset", "[4]", "[3]"));
  EXPECT_THAT([&] { layer_norm(x, four, four, {.axis = 1}); },
              throws<InvalidArgument>("[layer_norm]", "[3, 4]", "[4]"));
  EXPECT_THAT([&] { layer_norm(x, four, four, {.axis = 3}); },
              throws<InvalidArgument>("[layer_norm]", "axis 3", "[2, 3, 4]"));
  EXPECT_THAT([&] { layer_norm(x, four, four, {.epsilon = -1}); },
              throws<InvalidArgument>("[layer_norm]", "epsilon", "-1"));
  EXPECT_THAT(
      [&] {
        rms_norm(zeros({2, 4}, DType::i32), four);
      },
      throws<InvalidArgument>("[rms_norm]", "i32[2, 4]"));
  EXPECT_THAT([&] { rms_norm(x, zeros({4}, DType::f64)); },
              throws<InvalidArgument>("[rms_norm]", "f64[4]", "f32[2, 3, 4]"));
  EXPECT_THAT([&] { group_norm(x, four, four, {.groups = 3}); },
              throws<InvalidArgument>("[group_norm]", "4 channels", "[2, 3, 4]", "3"));
  EXPECT_THAT([&] { group_norm(four, four, four); },
              throws<InvalidArgument>("[group_norm]", "rank 2", "[4]"));
  EXPECT_THAT([&] { batch_norm(x, three, four); },
              throws<InvalidArgument>("[batch_norm]", "[4]", "[3]"));
  EXPECT_THAT([&] { batch_norm_inference(x, three, four, four, four); },
              throws<InvalidArgument>("[batch_norm_inference]", "mean", "[4]", "[3]"));
  EXPECT_THAT([&] { batch_norm_inference(x, four, Tensor(), four, four); },
              throws<InvalidArgument>("[batch_norm_inference]", "variance is undefined"));
}

}  // namespace
}  // namespace lockstep
