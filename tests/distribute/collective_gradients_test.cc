// SPDX-License-Identifier: Apache-2.0
// Gradients through collectives, and theirs, under every strategy.
#include <lockstep/lockstep.h>

#include "support/strategies.h"

namespace lockstep {
namespace {

using lockstep::testing::items;

class CollectiveGradients : public testing::OnStrategies {};
LOCKSTEP_ON_STRATEGIES(CollectiveGradients);

constexpr int kReplicas = 4;

// What replica r has: x, a weight of its loss, a weight of its gradient.
double x_of(double r) { return 1 + 0.5 * r; }
double loss_weight(double r) { return 2 - r; }
double gradient_weight(double r) { return 0.25 + r * r; }

Tensor on_replica(double (*f)(double)) {
  const Tensor r = cast(get_replica_context()->replica_id_in_sync_group(), DType::f64);
  Tensor value(0.0);
  for (int k = 0; k < kReplicas; ++k) value = select(equal(r, k), f(k), value);
  return value;
}

double total(double (*f)(double)) {
  double sum = 0;
  for (int k = 0; k < kReplicas; ++k) sum += f(k);
  return sum;
}

struct Gradients {
  Tensor first, second;
};

// Of sum(weight * f(x)^2), and of that gradient times its weight, on each replica of this process.
PerReplica<Gradients> gradients_of(const Strategy& strategy,
                                   const std::function<Tensor(const Tensor&)>& f) {
  return strategy.run([&] {
    const Tensor x = reshape(on_replica(x_of), {1});
    GradientTape outer;
    outer.watch(x);
    Tensor first;
    {
      GradientTape inner;
      inner.watch(x);
      const Tensor y = f(x);
      first = inner.gradient(sum(square(y)) * on_replica(loss_weight), {x})[0];
    }
    const Tensor second = outer.gradient(sum(first) * on_replica(gradient_weight), {x})[0];
    return Gradients{reshape(first, {}), reshape(second, {})};
  });
}

// Every component against the formula for its replica.
void expect(const Strategy& strategy, const PerReplica<Gradients>& got,
            const std::function<double(double)>& first,
            const std::function<double(double)>& second) {
  const std::size_t before = static_cast<std::size_t>(strategy.workers().rank()) * got.size();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto r = static_cast<double>(before + i);
    EXPECT_NEAR(got[i].first.item<double>(), first(r), 1e-12) << "replica " << r;
    EXPECT_NEAR(got[i].second.item<double>(), second(r), 1e-12) << "replica " << r;
  }
}

TEST_P(CollectiveGradients, OfAllReduceAreAllReducedByTheSameOp) {
  run(kReplicas, [](const Strategy& strategy) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean}) {
      const double n = op == ReduceOp::mean ? kReplicas : 1;
      const double y = total(x_of) / n, weight = total(loss_weight) / n,
                   outer = total(gradient_weight) / n;
      const auto got = gradients_of(
          strategy, [&](const Tensor& x) { return get_replica_context()->all_reduce(op, x); });
      expect(
          strategy, got, [&](double) { return 2 * weight * y; },
          [&](double) { return 2 * weight * outer; });
    }
  });
}

TEST_P(CollectiveGradients, OfAllGatherAreTheReplicasOwnRowsOfTheSum) {
  run(kReplicas, [](const Strategy& strategy) {
    const double weight = total(loss_weight);
    const auto got = gradients_of(
        strategy, [](const Tensor& x) { return get_replica_context()->all_gather(x); });
    expect(
        strategy, got, [&](double r) { return 2 * weight * x_of(r); },
        [&](double r) { return 2 * weight * gradient_weight(r); });
  });
}

}  // namespace
}  // namespace lockstep
