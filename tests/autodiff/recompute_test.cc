// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/custom_gradient.h>
#include <lockstep/autodiff/recompute.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/nn/dense.h>
#include <lockstep/nn/dropout.h>
#include <lockstep/ops.h>
#include <lockstep/optim/sgd.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/factory.h>

#include <array>

#include "support/errors.h"
#include "support/gradient_check.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::expect_second_gradients;
using lockstep::testing::kBothModes;
using lockstep::testing::Noise;
using lockstep::testing::throws;
using lockstep::testing::vec;

// The two ways to call a function.
const auto plainly = [](auto f) { return f; };
const auto again = [](auto f) { return recompute(std::move(f)); };

std::vector<float> bits_of(const Tensor& x) {
  return x.defined() ? x.to_vector<float>() : std::vector<float>{-12345};
}

// Numbers of random ops that both ways draw alike, and the state that they leave.
struct Drawn {
  RandomState state{.seed = 5, .stream = 1, .counter = 77};
  RandomScope scope{state};
};

// Expects the values and gradients of `model(way, x)`, which gives a tensor, to be the same bits
// whichever way is used, and the random numbers to go on alike.
template <class Model>
void expect_same_bits(Model&& model, const std::vector<Variable>& variables = {}) {
  const Tensor x = Noise(1).tensor<float>({5, 6});
  const auto run = [&](const auto& way) {
    Drawn random;
    GradientTape tape;
    tape.watch(x);
    const Tensor y = model(way, x);
    std::vector<Tensor> sources{x};
    for (const Variable& variable : variables) sources.push_back(variable);
    std::vector<std::vector<float>> bits{bits_of(y)};
    for (const Tensor& gradient : tape.gradient(sum(square(y)), sources))
      bits.push_back(bits_of(gradient));
    bits.push_back({static_cast<float>(random.state.counter)});
    return bits;
  };
  EXPECT_EQ(run(again), run(plainly));
}

struct Layers {
  Noise noise{2};
  Variable w{noise.tensor<float>({6, 6}, 0.4)}, b{noise.tensor<float>({6}, 0.3)};
  Variable v{noise.tensor<float>({6, 6}, 0.4)};
  nn::Dropout dropout{0.4};

  Tensor block(const Tensor& x) const {
    const Tensor h = dropout(dense(x, w, b, Activation::relu), {.training = true});
    return tanh(matmul(h, v)) + x;
  }
  std::vector<Variable> all() const { return {w, b, v}; }
};

TEST(Recompute, RunsAgainInBackward) {
  int runs = 0;
  const auto f = recompute([&](const Tensor& x) {
    ++runs;
    return square(x) * x;
  });
  const Tensor x(2.0f);
  EXPECT_EQ(f(x).item<float>(), 8);
  EXPECT_EQ(runs, 1);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 12);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 12);
  EXPECT_EQ(runs, 4);
}

TEST(Recompute, GivesTheBitsOfThePlainFunction) {
  const Layers layers;
  expect_same_bits(
      [&](const auto& way, const Tensor& x) {
        return way([&](const Tensor& h) { return layers.block(h); })(x);
      },
      layers.all());
}

TEST(Recompute, AddsInTheOrderOfThePlainTape) {
  // The same variables before, in, between and after the blocks: sums of five terms each.
  const Layers layers;
  expect_same_bits(
      [&](const auto& way, const Tensor& x) {
        const auto block = way([&](const Tensor& h) { return layers.block(layers.block(h)) * x; });
        const Tensor h = block(layers.block(x));
        return layers.block(block(h + x)) * layers.b;
      },
      layers.all());
}

TEST(Recompute, OfARecomputedFunction) {
  const Layers layers;
  expect_same_bits(
      [&](const auto& way, const Tensor& x) {
        const auto inner = way([&](const Tensor& h) { return layers.block(h); });
        return way(
            [&, inner](const Tensor& h) { return inner(layers.block(inner(h))) * layers.b; })(x);
      },
      layers.all());
}

TEST(Recompute, OfFunctionsOfSeveralTensors) {
  const Layers layers;
  struct Both {
    Tensor sum, product;
  };
  expect_same_bits(
      [&](const auto& way, const Tensor& x) {
        const auto f = way([](const Tensor& a, const std::vector<Tensor>& others) {
          return Both{a + others[0], a * matmul(a, others[1])};
        });
        const std::vector<Tensor> read{layers.b, layers.w};
        const auto [total, product] = f(x, read);
        const Both unused_sum = f(square(x), read);
        return total * product + unused_sum.product;
      },
      layers.all());
}

TEST(Recompute, OfAFunctionThatReturnsWhatItWasGiven) {
  const Tensor x(3.0f);
  const Variable w(Tensor(2.0f));
  GradientTape tape;
  tape.watch(x);
  const auto [same, read] = recompute([&](const Tensor& t) { return std::pair(t, w.read()); })(x);
  const auto gradients = tape.gradient(same * read * x, {x, w});
  EXPECT_EQ(gradients[0].item<float>(), 12);
  EXPECT_EQ(gradients[1].item<float>(), 9);
}

TEST(Recompute, OfAFunctionWithACustomGradientAndATapeOfItsOwn) {
  const auto odd = custom_gradient([](const Tensor& t) {
    return std::pair(square(t), [t](const Tensor& dy) { return dy * t * 7; });
  });
  expect_same_bits([&](const auto& way, const Tensor& x) {
    return way([&](const Tensor& t) {
      GradientTape inner;
      inner.watch(t);
      const Tensor slope = inner.gradient(t * t * t, {t})[0];
      return odd(t) + slope;
    })(x);
  });
}

TEST(Recompute, TellsWhenASourceIsFinal) {
  const Variable w(Tensor(3.0f)), unused(Tensor(1.0f));
  GradientTape tape;
  const Tensor y = recompute([&](const Tensor& x) { return x * w * w; })(Tensor(2.0f));
  std::vector<std::pair<std::size_t, bool>> ready;
  tape.gradient(y, std::vector{w, unused}, {.on_ready = [&](std::size_t i, const Tensor& gradient) {
                  ready.emplace_back(i, gradient.defined());
                }});
  EXPECT_THAT(ready, ::testing::ElementsAre(std::pair(1u, false), std::pair(0u, true)));
}

TEST(Recompute, WritesGradientsToTheirPlace) {
  const Variable w(vec({1, 2, 3}));
  const Buffer arena = Buffer::allocate({}, 3 * sizeof(float));
  GradientTape tape;
  const Tensor y = recompute([&](const Tensor& x) { return exp(x * w); })(vec({1, 1, 1}));
  const Tensor gradient =
      tape.gradient(y, std::vector{w}, {.place = [&](std::size_t) { return arena; }})[0];
  EXPECT_EQ(gradient.raw_data(), arena.data());
}

TEST(Recompute, LeavesGradientsOfRowsAsTheyAre) {
  const Tensor table = Noise(3).tensor<float>({5, 2}), other = Noise(4).tensor<float>({5, 2});
  const Tensor few = vec<std::int64_t>({3, 0}), more = vec<std::int64_t>({3, 1});
  const auto run = [&](const auto& way) {
    const auto lookup = way([&](const Tensor& ids) {
      return square(gather(table, ids)) + gather(other, ids) * sum(other);
    });
    GradientTape tape;
    tape.watch(table);
    tape.watch(other);
    const Tensor y = gather(table, more) * lookup(few) * lookup(more) * gather(other, few);
    std::vector<std::vector<float>> bits(2);
    std::vector<std::int64_t> rows;
    tape.gradient(
        y, {table, other},
        {.on_ready = [&](std::size_t i, const Tensor& dense) { bits[i] = bits_of(dense); },
         .on_slices =
             [&](std::size_t i, const IndexedSlices& slices) {
               bits[i] = bits_of(slices.values);
               rows = slices.indices.to_vector<std::int64_t>();
             }});
    EXPECT_EQ(rows.size(), 6) << "the table's alone";
    return std::pair(bits, rows);
  };
  EXPECT_EQ(run(again), run(plainly));
}

TEST(Recompute, HasSecondGradients) {
  Noise noise(6);
  expect_second_gradients(
      [](const std::vector<Tensor>& xs) {
        return recompute([](const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)) * x; })(
            xs[0], xs[1]);
      },
      {noise.tensor<double>({3, 2}), noise.tensor<double>({2, 2})});
}

TEST(Recompute, HasSecondGradientsOfCustomOnes) {
  const auto log1pexp = custom_gradient([](const Tensor& x) {
    const Tensor e = exp(x);
    return std::pair(log(1 + e), [e](const Tensor& dy) { return dy * (1 - 1 / (1 + e)); });
  });
  expect_second_gradients(
      [&](const std::vector<Tensor>& xs) {
        return recompute([&](const Tensor& t) { return log1pexp(log1pexp(t) * t); })(xs[0]);
      },
      {vec<double>({0.3, -1})});
}

TEST(Recompute, AssignsOnce) {
  Variable average(Tensor(0.0f), {.trainable = false});
  const Tensor x(8.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = recompute([&](const Tensor& t) {
    const Tensor before = average.read();
    const Tensor now = average.assign_add(t * 0.5);
    average.assign(now + 1);
    return t * before + t * now + t * average;
  })(x);
  EXPECT_EQ(y.item<float>(), 8 * 0 + 8 * 4 + 8 * 5);
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 0 + 4 + 5);
  EXPECT_EQ(average.read().item<float>(), 5);
}

TEST(Recompute, SeesVariablesAsTheyWere) {
  Variable w(Tensor(3.0f));
  const Tensor x(2.0f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = recompute([&](const Tensor& t) { return square(t * w); })(x);
  w.assign(Tensor(100.0f));
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 36);  // 2 x w^2
  EXPECT_EQ(tape.gradient(y, {w})[0].item<float>(), 24);  // 2 w x^2
  EXPECT_EQ(w.read().item<float>(), 100);
}

TEST(Recompute, NestedRunsAssignOnce) {
  Variable count(Tensor(0.0f), {.trainable = false});
  const Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  const auto inner = recompute([&](const Tensor& t) { return t * count.assign_add(Tensor(1.0f)); });
  const Tensor y = recompute([&](const Tensor& t) { return inner(inner(t)); })(x);
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 2);  // 1 * 2
  EXPECT_EQ(count.read().item<float>(), 2);
}

TEST(Recompute, LeavesNothingBehindWhenTheFunctionThrows) {
  const Tensor x(2.0f);
  bool fail = true;
  const auto f = recompute([&](const Tensor& t) {
    if (fail) throw std::runtime_error("stop");
    return square(t);
  });
  GradientTape tape({.persistent = true});
  tape.watch(x);
  EXPECT_THAT([&] { f(x); }, throws<std::runtime_error>("stop"));
  fail = false;
  const Tensor y = f(x) * x;
  fail = true;
  EXPECT_THAT([&] { tape.gradient(y, {x}); }, throws<std::runtime_error>("stop"));
  fail = false;
  EXPECT_EQ(tape.gradient(y, {x})[0].item<float>(), 12);
}

TEST(Recompute, RefusesAFunctionThatDoesOtherThingsTheSecondTime) {
  const Variable a(vec({1, 2})), b(vec({3, 4}));
  bool second = false;
  const auto gradient_of = [&](const auto& f) {
    const Tensor x = vec({5, 6});
    second = false;
    GradientTape tape;
    tape.watch(x);
    const Tensor y = recompute(f)(x);
    second = true;
    tape.gradient(y, {x});
  };
  EXPECT_THAT([&] { gradient_of([&](const Tensor& x) { return x * (second ? b : a); }); },
              throws<FailedPrecondition>("[recompute]", "variable", "recompute_test"));
  EXPECT_THAT([&] { gradient_of([&](const Tensor& x) { return second ? x * a * a : x * a; }); },
              throws<FailedPrecondition>("[recompute]", "another one", "of 1 accesses"));
  EXPECT_THAT([&] { gradient_of([&](const Tensor& x) { return second ? x * x : x * a; }); },
              throws<FailedPrecondition>("[recompute]", "0 times", "of 1 accesses"));
  EXPECT_THAT([&] { gradient_of([&](const Tensor& x) { return second ? sum(x) : x * x; }); },
              throws<FailedPrecondition>("[recompute]", "f32[2]", "f32[]"));
  EXPECT_THAT([&] { gradient_of([&](const Tensor& x) { return second ? Tensor() : x * x; }); },
              throws<FailedPrecondition>("[recompute]", "result 0"));
}

TEST(Recompute, RefusesUpdatesAndUndefinedResults) {
  Variable w(Tensor(3.0f));
  const Tensor x(2.0f);
  const auto nothing = recompute([](const Tensor&) { return Tensor(); });
  const auto refused = throws<InvalidArgument>("[recompute]", "undefined", "result 0");
  EXPECT_THAT([&] { nothing(x); }, refused);  // no tape is there
  GradientTape tape;
  tape.watch(x);
  const auto trains = recompute([&](const Tensor& t) {
    update_values(std::array{w}, [](auto&) {});
    return t * w;
  });
  EXPECT_THAT([&] { trains(x); }, throws<FailedPrecondition>("[update]", "recompute"));
  EXPECT_EQ(w.read().item<float>(), 3);
  EXPECT_THAT([&] { nothing(x); }, refused);
}

constexpr std::int64_t kElements = 1 << 18;  // a MiB of f32
constexpr std::int64_t kActivation = kElements * 4;
constexpr int kBlocks = 4, kLayersPerBlock = 8;

// A chain of layers, each of which keeps a MiB until backward.
template <class Way>
void backward_through_blocks(const Way& way) {
  const Tensor x = full({kElements}, 0.5);
  const auto block = way([](const Tensor& in) {
    Tensor h = in;
    for (int layer = 0; layer < kLayersPerBlock; ++layer) h = tanh(h);
    return h;
  });
  GradientTape tape;
  tape.watch(x);
  Tensor h = x;
  for (int i = 0; i < kBlocks; ++i) h = block(h);
  tape.gradient(std::exchange(h, Tensor()), {x});
}

TEST(Recompute, TakesLessMemory) {
  const Device device{.kind = DeviceKind::cpu, .index = 37};  // nobody else's: peaks never fall
  const DeviceScope scope(device);
  backward_through_blocks(again);
  const std::int64_t peak = memory_stats(device).peak;
  EXPECT_LE(peak, (kBlocks + kLayersPerBlock + 8) * kActivation);
  backward_through_blocks(plainly);
  EXPECT_GE(memory_stats(device).peak, kBlocks * kLayersPerBlock * kActivation);
  EXPECT_EQ(memory_stats(device).in_use, 0);
}

TEST(Recompute, TakesLessMemoryOnEveryReplica) {
  const std::array devices{Device{.kind = DeviceKind::cpu, .index = 38},
                           Device{.kind = DeviceKind::cpu, .index = 39}};
  MirroredStrategy strategy({.devices = {"CPU:38", "CPU:39"}});
  strategy.run([] { backward_through_blocks(again); });
  for (const Device& device : devices)
    EXPECT_LE(memory_stats(device).peak, (kBlocks + kLayersPerBlock + 8) * kActivation);
  strategy.run([] { backward_through_blocks(plainly); });
  for (const Device& device : devices)
    EXPECT_GE(memory_stats(device).peak, kBlocks * kLayersPerBlock * kActivation);
}

// A network whose hidden block draws numbers, reads what all replicas have, and keeps an average.
struct Network {
  nn::Dense first{6, 8, {.activation = nn::relu}}, hidden{8, 8, {.activation = nn::tanh}};
  nn::Dense last{8, 3};
  nn::Dropout dropout{0.3};
  Variable average{zeros({8}), {.trainable = false, .aggregation = VariableAggregation::mean}};

  Tensor block(const Tensor& x) {
    const Tensor h = dropout(hidden(x), {.training = true});
    const Tensor center = mean(h, {.axes = {0}});
    average.assign_add((center - average) * 0.1);
    return h - get_replica_context()->all_reduce(ReduceOp::mean, center) + average;
  }
  std::vector<Variable> trainable() const {
    return {first.kernel(), *first.bias(), hidden.kernel(),
            *hidden.bias(), last.kernel(), *last.bias()};
  }
};

// What some steps on two replicas make of the network's variables, on each replica.
template <class Way>
std::vector<std::vector<float>> trained(const Way& way, ReplicaThreads threads) {
  MirroredStrategy strategy = testing::replicas(2, threads);
  const auto scope = strategy.scope();
  Network network;
  optim::SGD optimizer({.learning_rate = 0.1, .momentum = 0.9});
  const std::vector<Variable> variables = network.trainable();
  const std::int64_t copies = update_copies();
  for (std::uint64_t step = 0; step < 4; ++step)
    strategy.run([&] {
      const auto replica = static_cast<std::uint64_t>(testing::replica_index());
      const Tensor x = Noise(10 * step + replica).tensor<float>({4, 6});
      GradientTape tape;
      const auto block = way([&](const Tensor& h) { return network.block(h); });
      const Tensor y = network.last(block(block(network.first(x))));
      optimizer.minimize(mean(square(y - 1)), variables, tape);
    });
  EXPECT_EQ(update_copies(), copies) << "nothing holds on to values when they are updated";
  std::vector<std::vector<float>> values;
  for (const Variable& variable : variables)
    for (const Tensor& value : variable.local_values()) values.push_back(value.to_vector<float>());
  for (const Tensor& value : network.average.local_values())
    values.push_back(value.to_vector<float>());
  return values;
}

TEST(Recompute, TrainsReplicasToTheSameBits) {
  for (const ReplicaThreads threads : kBothModes) {
    SCOPED_TRACE(testing::name_of(threads));
    const auto expected = trained(plainly, threads);
    const auto actual = trained(again, threads);
    EXPECT_EQ(actual, expected);
    for (std::size_t i = 0; i < actual.size(); i += 2) EXPECT_EQ(actual[i], actual[i + 1]);
  }
}

}  // namespace
}  // namespace lockstep
