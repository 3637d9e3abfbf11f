// SPDX-License-Identifier: Apache-2.0
// Single memory-bound and transcendental ops on one thread: elements per second and bytes per second of
// what must be read and written. LOCKSTEP_CPU_ISA=v2|v3|v4 picks the kernels.
#include <benchmark/benchmark.h>
#include <lockstep/ops.h>
#include <lockstep/tensor/factory.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace ls = lockstep;

void measure(benchmark::State& state, const std::function<ls::Tensor()>& op, std::int64_t elements,
             std::int64_t bytes) {
  for (auto _ : state) benchmark::DoNotOptimize(op().raw_data());
  state.SetItemsProcessed(state.iterations() * elements);
  state.SetBytesProcessed(state.iterations() * bytes);
}

void add(const std::string& name, std::function<ls::Tensor()> op, std::int64_t elements,
         std::int64_t bytes) {
  benchmark::RegisterBenchmark(name.c_str(), measure, std::move(op), elements, bytes)
      ->Unit(benchmark::kMicrosecond);
}

void add_elementwise() {
  const ls::Tensor x = ls::normal({2048, 512}), y = ls::normal({2048, 512});
  const ls::Tensor row = ls::normal({512}), column = ls::normal({2048, 1});
  const std::int64_t n = x.num_elements();
  add(
      "add", [=] { return x + y; }, n, 12 * n);
  add(
      "add_bias", [=] { return x + row; }, n, 8 * n);
  add(
      "mul_column", [=] { return x * column; }, n, 8 * n);
  add(
      "mul_number", [=] { return x * 1.5; }, n, 8 * n);
  add(
      "pow", [=, positive = ls::abs(x)] { return ls::pow(positive, 1.5); }, n, 8 * n);
  add(
      "mod", [=] { return ls::mod(x, 0.7); }, n, 8 * n);
  add(
      "select", [=, flags = ls::greater(x, 0)] { return ls::select(flags, x, 0); }, n, 9 * n);
  const std::pair<const char*, ls::Tensor (*)(const ls::Tensor&, ls::SourceLocation)> unary[] = {
      {"relu", ls::relu},           {"exp", ls::exp},   {"log1p", ls::log1p},
      {"tanh", ls::tanh},           {"gelu", ls::gelu}, {"sin", ls::sin},
      {"sigmoid", ls::sigmoid},     {"sqrt", ls::sqrt}, {"tan", ls::tan},
      {"atan", ls::atan},           {"silu", ls::silu}, {"softplus", ls::softplus},
      {"gelu_tanh", ls::gelu_tanh}, {"elu", ls::elu}};
  for (const auto& [name, op] : unary)
    add(
        name, [=, op = op] { return op(x, ls::SourceLocation{}); }, n, 8 * n);
}

void add_reductions() {
  const ls::Tensor x = ls::normal({2048, 512});
  const std::int64_t n = x.num_elements();
  add(
      "prod_last", [=] { return ls::prod(x, {.axes = {1}}); }, n, 4 * n);
  add(
      "argmax_last", [=] { return ls::argmax(x); }, n, 4 * n);
  add(
      "logsumexp_last", [=] { return ls::logsumexp(x, {.axes = {1}}); }, n, 4 * n);
  add(
      "variance_last", [=] { return ls::variance(x, {.axes = {1}}); }, n, 4 * n);
  add(
      "cumsum_last", [=] { return ls::cumsum(x, {.axis = 1}); }, n, 8 * n);
  add(
      "cumsum_first", [=] { return ls::cumsum(x, {.axis = 0}); }, n, 8 * n);
}

void add_others() {
  const ls::Tensor x = ls::normal({2048, 512});
  const std::int64_t n = x.num_elements();
  add(
      "sum_all", [=] { return ls::sum(x); }, n, 4 * n);
  add(
      "sum_rows", [=] { return ls::sum(x, {.axes = {0}}); }, n, 4 * n);
  add(
      "sum_last", [=] { return ls::sum(x, {.axes = {1}}); }, n, 4 * n);
  add(
      "max_last", [=] { return ls::max(x, {.axes = {1}}); }, n, 4 * n);
  add(
      "transpose", [=] { return ls::transpose(x); }, n, 8 * n);
  add(
      "cast_bf16", [=] { return ls::cast(x, ls::DType::bf16); }, n, 6 * n);
  add(
      "uniform", [=] { return ls::uniform(x.shape()); }, n, 4 * n);
  add(
      "normal", [=] { return ls::normal(x.shape()); }, n, 4 * n);
  add(
      "bernoulli", [=] { return ls::bernoulli(x.shape(), 0.1); }, n, n);
}

void add_updates() {
  constexpr std::int64_t n = 10'000'000;
  const ls::Tensor gradient = ls::normal({n});
  const auto update = [&](const char* name, const ls::UpdateRule& rule, std::int64_t bytes) {
    auto state = std::make_shared<std::vector<ls::Tensor>>(1, ls::normal({n}));
    for (const ls::UpdateSlot& slot : ls::update_slots(rule))
      state->push_back(ls::full({n}, slot.start));
    add(
        name,
        [=, number = std::int64_t{0}]() mutable {
          ls::apply_update(rule, *state, gradient,
                           {.learning_rate = ls::Tensor(1e-3), .number = ls::Tensor(++number)});
          return state->front().with_shape({n});
        },
        n, bytes);
  };
  update("adam_10M", ls::AdamRule{}, 28 * n);
  update("sgd_momentum_10M", ls::SgdRule{.momentum = 0.9}, 20 * n);
  add(
      "global_norm_10M",
      [=] {
        return ls::global_norm({&gradient, 1});
      },
      n, 4 * n);
}

}  // namespace

int main(int argc, char** argv) {
  add_elementwise();
  add_reductions();
  add_others();
  add_updates();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
