// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/nn/gru.h>
#include <lockstep/nn/lstm.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <memory>

#include "nn/central_difference.h"
#include "support/errors.h"

namespace lockstep::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using testing::throws;

Initializer scattered_numbers() {
  return [phase = std::make_shared<double>(0)](const Shape& shape, DType) {
    return scattered(shape, *phase += 1);
  };
}

template <class Options>
Options in_double(Options options) {
  options.kernel_initializer = options.recurrent_initializer = options.bias_initializer =
      scattered_numbers();
  options.dtype = DType::f64;
  return options;
}

double gate(double x) { return 1 / (1 + std::exp(-x)); }

// x kernel, column `column`, where x is row `row` of a matrix.
double product(const Tensor& x, std::size_t row, const Tensor& kernel, std::size_t column) {
  const auto in = static_cast<std::size_t>(kernel.dim(0)),
             out = static_cast<std::size_t>(kernel.dim(1));
  double total = 0;
  for (std::size_t i = 0; i < in; ++i)
    total += x.data<double>()[row * in + i] * kernel.data<double>()[i * out + column];
  return total;
}

Tensor row(const std::vector<double>& values) {
  return Tensor({1, static_cast<std::int64_t>(values.size())}, std::span<const double>(values));
}

// Hochreiter's formulas, for one example: h after each step.
std::vector<double> lstm_formula(const LSTM& layer, const Tensor& x, std::vector<double> h,
                                 std::vector<double> c) {
  const Tensor kernel = layer.variables()[0].read(), recurrent = layer.variables()[1].read(),
               bias = layer.variables()[2].read();
  const std::size_t units = h.size();
  std::vector<double> all;
  for (std::size_t t = 0; t < static_cast<std::size_t>(x.dim(1)); ++t) {
    const Tensor before = row(h);
    for (std::size_t u = 0; u < units; ++u) {
      const auto z = [&](std::size_t k) {
        return product(x, t, kernel, k * units + u) + product(before, 0, recurrent, k * units + u) +
               bias.data<double>()[k * units + u];
      };
      c[u] = gate(z(1)) * c[u] + gate(z(0)) * std::tanh(z(2));
      h[u] = gate(z(3)) * std::tanh(c[u]);
    }
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

std::vector<double> gru_formula(const GRU& layer, const Tensor& x, std::vector<double> h,
                                bool reset_after) {
  const Tensor kernel = layer.variables()[0].read(), recurrent = layer.variables()[1].read(),
               bias = layer.variables()[2].read();
  const std::size_t units = h.size();
  std::vector<double> all;
  for (std::size_t t = 0; t < static_cast<std::size_t>(x.dim(1)); ++t) {
    const Tensor before = row(h);
    const auto of_x = [&](std::size_t k) {
      return product(x, t, kernel, k) + bias.data<double>()[k];
    };
    const auto of_h = [&](const Tensor& state, std::size_t k) {
      return product(state, 0, recurrent, k) +
             (reset_after ? bias.data<double>()[3 * units + k] : 0);
    };
    std::vector<double> z(units), r(units), reset(units);
    for (std::size_t u = 0; u < units; ++u) {
      z[u] = gate(of_x(u) + of_h(before, u));
      r[u] = gate(of_x(units + u) + of_h(before, units + u));
      reset[u] = r[u] * h[u];
    }
    for (std::size_t u = 0; u < units; ++u) {
      const double state =
          reset_after ? r[u] * of_h(before, 2 * units + u) : of_h(row(reset), 2 * units + u);
      h[u] = z[u] * h[u] + (1 - z[u]) * std::tanh(of_x(2 * units + u) + state);
    }
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

TEST(LSTM, IsItsFormula) {
  const LSTM layer(3, 2, in_double(LSTMOptions{.return_sequences = true}));
  const Tensor x = scattered({1, 4, 3}, 0.5);
  const Tensor y = layer(x);
  ASSERT_EQ(y.shape(), Shape({1, 4, 2}));
  EXPECT_THAT(y.to_vector<double>(),
              Pointwise(DoubleNear(1e-14), lstm_formula(layer, x, {0, 0}, {0, 0})));
  const LSTMState state{row({0.3, -0.2}), row({1.5, 0.1})};
  EXPECT_THAT(layer.with_state(x, {.initial_state = state}).output.to_vector<double>(),
              Pointwise(DoubleNear(1e-14), lstm_formula(layer, x, {0.3, -0.2}, {1.5, 0.1})));
}

TEST(GRU, IsItsFormula) {
  for (const bool reset_after : {true, false}) {
    const GRU layer(3, 2,
                    in_double(GRUOptions{.return_sequences = true, .reset_after = reset_after}));
    const Tensor x = scattered({1, 4, 3}, 0.5);
    EXPECT_THAT(layer(x).to_vector<double>(),
                Pointwise(DoubleNear(1e-14), gru_formula(layer, x, {0, 0}, reset_after)));
    EXPECT_THAT(layer.with_state(x, {.initial_state = row({0.3, -0.2})}).output.to_vector<double>(),
                Pointwise(DoubleNear(1e-14), gru_formula(layer, x, {0.3, -0.2}, reset_after)));
  }
}

TEST(Recurrent, HaveTheGradientsOfCentralDifferences) {
  Variable x(scattered({2, 3, 3}, 0.5), {.name = "x"});
  const auto check = [&](const auto& layer) {
    std::vector<Variable> variables = layer.variables();
    variables.push_back(x);
    expect_central_differences(variables, [&] {
      return sum(square(layer(x)) * scattered({2, 3, 2}, 3));
    });
  };
  check(LSTM(3, 2, in_double(LSTMOptions{.return_sequences = true})));
  check(GRU(3, 2, in_double(GRUOptions{.return_sequences = true})));
  check(GRU(3, 2, in_double(GRUOptions{.return_sequences = true, .reset_after = false})));
}

// A sequence in two parts, the second from the state in which the first ended.
TEST(Recurrent, GoOnFromTheirState) {
  const Tensor x = scattered({2, 5, 3});
  const Tensor first = slice(x, {0, 0, 0}, {2, 2, 3}), second = slice(x, {0, 2, 0}, {2, 3, 3});
  const LSTM lstm(3, 2, in_double(LSTMOptions{}));
  const LSTM::Result part = lstm.with_state(first);
  EXPECT_EQ(part.output.to_vector<double>(), part.state.hidden.to_vector<double>());
  EXPECT_EQ(lstm.with_state(second, {.initial_state = part.state}).output.to_vector<double>(),
            lstm(x).to_vector<double>());
  const GRU gru(3, 2, in_double(GRUOptions{}));
  EXPECT_EQ(gru.with_state(second, {.initial_state = gru.with_state(first).state})
                .output.to_vector<double>(),
            gru(x).to_vector<double>());
}

TEST(Recurrent, GiveTheLastOutputOrAll) {
  const Tensor x = scattered({2, 3, 3});
  const GRU last(3, 2, in_double(GRUOptions{})),
      all(3, 2, in_double(GRUOptions{.return_sequences = true})),
      backwards(3, 2, in_double(GRUOptions{.return_sequences = true, .go_backwards = true}));
  EXPECT_EQ(last(x).to_vector<double>(), slice(all(x), {0, 2, 0}, {2, 1, 2}).to_vector<double>());
  EXPECT_EQ(backwards(x).to_vector<double>(), all(reverse(x, {1})).to_vector<double>());
}

TEST(Recurrent, StayWhereTheMaskIsFalse) {
  const LSTM layer(3, 2, in_double(LSTMOptions{.return_sequences = true}));
  const Tensor x = scattered({1, 4, 3});
  const Tensor seen = concat({slice(x, {0, 1, 0}, {1, 1, 3}), slice(x, {0, 3, 0}, {1, 1, 3})}, 1);
  const LSTM::Result result =
      layer.with_state(x, {.mask = Tensor({1, 4}, {false, true, false, true})});
  const LSTM::Result expected = layer.with_state(seen);
  const auto y = result.output.to_vector<double>(), short_y = expected.output.to_vector<double>();
  EXPECT_THAT(
      y, ElementsAre(0, 0, short_y[0], short_y[1], short_y[0], short_y[1], short_y[2], short_y[3]));
  EXPECT_EQ(result.state.cell.to_vector<double>(), expected.state.cell.to_vector<double>());
}

TEST(Recurrent, MakeTheirVariables) {
  const LSTM lstm(3, 2);
  std::vector<std::string> names;
  for (const Variable& variable : lstm.variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("lstm/kernel", "lstm/recurrent_kernel", "lstm/bias"));
  EXPECT_EQ(lstm.variables()[0].shape(), Shape({3, 8}));
  EXPECT_EQ(lstm.variables()[1].shape(), Shape({2, 8}));
  EXPECT_THAT(lstm.variables()[2].read().to_vector<float>(), ElementsAre(0, 0, 1, 1, 0, 0, 0, 0));
  EXPECT_THAT(LSTM(3, 1, {.unit_forget_bias = false}).variables()[2].read().to_vector<float>(),
              ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(GRU(3, 2).variables()[2].shape(), Shape({2, 6}));
  EXPECT_EQ(GRU(3, 2, {.reset_after = false}).variables()[2].shape(), Shape({6}));
  EXPECT_EQ(GRU(3, 2, {.use_bias = false}).variables().size(), 2u);
  EXPECT_EQ(GRU(3, 2, {.use_bias = false})(ones({1, 2, 3})).shape(), Shape({1, 2}));
}

TEST(Recurrent, ComputeIn16BitsFromVariablesOf32) {
  const Tensor x = cast(scattered({2, 4, 3}), DType::f32);
  const auto check = [&](const auto& mixed, const auto& full) {
    for (std::size_t i = 0; i < full.variables().size(); ++i) {
      ASSERT_EQ(mixed.variables()[i].dtype(), DType::f32);
      Variable variable = mixed.variables()[i];
      variable.assign(full.variables()[i].read());
    }
    const Tensor y = mixed(x);
    ASSERT_EQ(y.dtype(), DType::bf16);
    EXPECT_THAT(cast(y, DType::f32).template to_vector<float>(),
                Pointwise(::testing::FloatNear(0.02f), full(x).template to_vector<float>()));
  };
  check(LSTM(3, 2, {.dtype = mixed_bfloat16}), LSTM(3, 2));
  check(GRU(3, 2, {.dtype = mixed_bfloat16}), GRU(3, 2));
}

TEST(Recurrent, TakeNoRows) {
  EXPECT_EQ(LSTM(3, 2)(lockstep::zeros({0, 4, 3})).shape(), Shape({0, 2}));
  EXPECT_EQ(GRU(3, 2, {.return_sequences = true})(lockstep::zeros({0, 4, 3})).shape(),
            Shape({0, 4, 2}));
}

TEST(Recurrent, SayWhatDoesNotFit) {
  EXPECT_THAT([] { LSTM(0, 2); }, throws<InvalidArgument>("[LSTM]", "0 and 2"));
  EXPECT_THAT([] { GRU(3, 2, {.dtype = DType::i32}); }, throws<InvalidArgument>("i32"));
  const LSTM lstm(3, 2);
  EXPECT_THAT([&] { lstm(ones({2, 3})); }, throws<InvalidArgument>("[lstm]", "f32[2, 3]"));
  EXPECT_THAT([&] { lstm(ones({2, 4, 5})); }, throws<InvalidArgument>("3", "f32[2, 4, 5]"));
  EXPECT_THAT([&] { lstm(ones({2, 0, 3})); }, throws<InvalidArgument>("at least one step"));
  EXPECT_THAT(
      [&] {
        lstm.with_state(ones({2, 4, 3}), {.initial_state = {ones({1, 2}), {}}});
      },
      throws<InvalidArgument>("[lstm]", "f32[2, 2]", "f32[1, 2]"));
  EXPECT_THAT(
      [&] {
        lstm.with_state(ones({2, 4, 3}), {.mask = ones({2, 4})});
      },
      throws<InvalidArgument>("[lstm]", "bool[2, 4]"));
}

}  // namespace
}  // namespace lockstep::nn
