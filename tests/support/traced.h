// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/tensor.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/xla/program.h"

// Ops on TPUs, compared with the same ops on CPUs, by way of XLA's CPU plugin.
namespace lockstep::testing {

using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensors(const Tensors& x)>;

// The environment names a plugin (tests/support/pjrt_plugin.sh gets one).
inline bool has_plugin() {
  const char* const path = std::getenv("LOCKSTEP_PJRT_CPU_PLUGIN");
  return path && std::filesystem::exists(path);
}

inline const xla::Client& plugin_client() {
  static const xla::Client& client = xla::Client::of(xla::find_plugin("", {}));
  return client;
}

// A sum that weighs elements differently, so that gradients are not all alike.
inline Tensor traced_target(const Tensors& values) {
  Tensor total(0.0);
  for (const Tensor& value : values) {
    if (!is_floating(value.dtype())) continue;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < value.num_elements(); ++i)
      weights.push_back(0.25 + static_cast<double>(i * 7 % 5) / 4);
    const Tensor weight(value.shape(), std::span<const double>(weights));
    total = total + sum(cast(value, DType::f64) * weight);
  }
  return total;
}

// The gradients of f's results, and those of theirs, with respect to the floating inputs.
inline Tensors traced_gradients(const Tensors& x, const TensorFunction& f) {
  GradientTape outer({.persistent = true});
  Tensors sources;
  for (const Tensor& input : x)
    if (is_floating(input.dtype())) sources.push_back(input);
  for (const Tensor& source : sources) outer.watch(source);
  Tensors first;
  {
    GradientTape inner;
    for (const Tensor& source : sources) inner.watch(source);
    first = inner.gradient(traced_target(f(x)), sources);
  }
  Tensors defined;
  for (const Tensor& gradient : first)
    if (gradient.defined()) defined.push_back(gradient);
  Tensors all = defined;
  for (const Tensor& second : outer.gradient(traced_target(defined), sources))
    if (second.defined()) all.push_back(second);
  return all;
}

// f of the inputs as one program on TPU:0; the results are on the host.
inline Tensors run_traced(const Tensors& inputs, const TensorFunction& f) {
  const Device device = xla::device_at(plugin_client(), 0);
  Tensors on_device;
  for (const Tensor& input : inputs) on_device.push_back(copy_to(input, device));
  std::vector<std::unique_ptr<xla::Trace>> traces;
  traces.push_back(std::make_unique<xla::Trace>(device.index));
  Tensors results;
  {
    const xla::TraceScope trace(traces[0].get());
    const DeviceScope here(device);
    results = f(on_device);
  }
  xla::Programs(plugin_client(), 1).execute(traces);
  for (Tensor& result : results) result = copy_to(result, Device{});
  return results;
}

inline void expect_close(const Tensor& got, const Tensor& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  const auto a = cast(got, DType::f64).to_vector<double>();
  const auto b = cast(expected, DType::f64).to_vector<double>();
  const double allowed = is_floating(expected.dtype()) ? tolerance : 0;
  int reported = 0;
  for (std::size_t i = 0; i < a.size() && reported < 3; ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (std::abs(a[i] - b[i]) <= allowed * (1 + std::abs(b[i]))) continue;
    ++reported;
    ADD_FAILURE() << what << ": element " << i << " of " << expected.shape().to_string() << " is "
                  << a[i] << ", expected " << b[i];
  }
}

struct Comparison {
  double tolerance = 1e-5;  // of floats, relative to 1 + their size
  // Also those of a sum of all floating results, with respect to the floating inputs, and the
  // gradients of these gradients.
  bool gradients = true;
};

inline void expect_same_traced(const Tensors& inputs, const TensorFunction& f,
                               Comparison how = {}) {
  const auto compare = [&](const TensorFunction& function, const char* what) {
    RandomState on_host{.seed = 5, .stream = 3, .counter = 40}, on_device = on_host;
    Tensors expected, got;
    {
      const RandomScope random(on_host);
      expected = function(inputs);
    }
    {
      const RandomScope random(on_device);
      got = run_traced(inputs, function);
    }
    EXPECT_EQ(on_device.counter, on_host.counter) << what;
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
      expect_close(got[i], expected[i], how.tolerance, what + std::string(" ") + std::to_string(i));
  };
  compare(f, "result");
  if (how.gradients) compare([&](const Tensors& x) { return traced_gradients(x, f); }, "gradient");
}

}  // namespace lockstep::testing

// For a test that needs a plugin.
#define LOCKSTEP_REQUIRE_PLUGIN()         \
  if (!::lockstep::testing::has_plugin()) \
  GTEST_SKIP() << "needs a PJRT plugin: LOCKSTEP_PJRT_CPU_PLUGIN is not set"
