// SPDX-License-Identifier: Apache-2.0
// lockstep/distribute/interop/torch.h, in a program of its own, as only it links LibTorch.
#include <gmock/gmock.h>
#include <lockstep/distribute/interop/torch.h>

#include <atomic>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep::interop {
namespace {

using lockstep::testing::holds;
using lockstep::testing::name_of;
using lockstep::testing::replica_index;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;
using ::testing::Each;
using Sequential = ::torch::nn::Sequential;

// Two layers, and one that no loss reaches.
struct NetImpl : ::torch::nn::Module {
  NetImpl() {
    register_module("first", first);
    register_module("second", second);
    register_module("unused", unused);
    to(::torch::kDouble);
  }
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    // Weights that are used twice get one gradient.
    return second(::torch::tanh(first(::torch::tanh(first(x)))));
  }
  ::torch::nn::Linear first{4, 4}, second{4, 1}, unused{2, 2};
};
TORCH_MODULE(Net);

// Twelve rows, of which a replica gets its part.
struct Batch {
  ::torch::Tensor x, y;
};
Batch batch_of(int replica, int count) {
  ::torch::Tensor x = ::torch::arange(48, ::torch::kDouble).reshape({12, 4}).sin();
  const ::torch::Tensor y = x.sum(1, /*keepdim=*/true).cos();
  const std::int64_t rows = 12 / count;
  return {x.narrow(0, replica * rows, rows), y.narrow(0, replica * rows, rows)};
}

// The parameters of each replica after some steps.
std::vector<std::vector<::torch::Tensor>> trained(int count, ReplicaThreads threads) {
  ::torch::manual_seed(3);
  const auto strategy = replicas(count, threads, 64);
  DistributedDataParallel<Net> model(strategy, [] { return Net(); });
  std::vector<::torch::optim::Adam> optimizers;
  for (int r = 0; r < count; ++r)
    optimizers.emplace_back(model.of(static_cast<std::size_t>(r))->parameters(), 0.05);
  for (int step = 0; step < 20; ++step)
    strategy.run([&] {
      const auto [x, y] = batch_of(replica_index(), count);
      const ::torch::Tensor error = (model.local()->forward(x) - y).square().sum() / 12;
      model.backward(error);
      EXPECT_FALSE(model.local()->unused->weight.grad().defined());
      optimizers[static_cast<std::size_t>(replica_index())].step();
    });
  std::vector<std::vector<::torch::Tensor>> parameters;
  for (int r = 0; r < count; ++r)
    parameters.push_back(model.of(static_cast<std::size_t>(r))->parameters());
  return parameters;
}

class Torch : public ::testing::TestWithParam<ReplicaThreads> {};
INSTANTIATE_TEST_SUITE_P(Modes, Torch, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Torch, ManyReplicasTrainAsOneDoes) {
  const auto one = trained(1, GetParam());
  for (const int count : {2, 3}) {
    const auto all = trained(count, GetParam());
    for (const auto& replica : all)
      for (std::size_t i = 0; i < one[0].size(); ++i) {
        EXPECT_TRUE(::torch::equal(replica[i], all[0][i])) << "bit by bit";
        EXPECT_LT((replica[i] - one[0][i]).abs().max().item<double>(), 1e-9);
      }
  }
}

TEST_P(Torch, ReplicasStartFromTheFirstOnesModule) {
  const auto strategy = replicas(3, GetParam());
  int made = 0;
  DistributedDataParallel<Sequential> model(strategy, [&] {
    Sequential module(::torch::nn::Linear(2, 2), ::torch::nn::BatchNorm1d(2));
    for (auto& buffer : module->buffers()) buffer.fill_(++made);
    return module;
  });
  for (std::size_t r = 1; r < 3; ++r) {
    const auto own = model.of(r)->parameters(), first = model.of(0)->parameters();
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(::torch::equal(own[i], first[i]));
    EXPECT_NE(own[0].data_ptr(), first[0].data_ptr());
    EXPECT_TRUE(::torch::equal(model.of(r)->buffers()[0], model.of(0)->buffers()[0]));
  }
  EXPECT_EQ(model.of(2)->buffers()[0].mean().item<double>(), 1);
}

TEST_P(Torch, AParameterThatOneReplicaUsesGetsItsGradientOnAll) {
  const auto strategy = replicas(2, GetParam());
  DistributedDataParallel<Net> model(strategy, [] { return Net(); });
  strategy.run([&] {
    const ::torch::Tensor x = ::torch::ones({1, 2}, ::torch::kDouble);
    const ::torch::Tensor y = ::torch::ones({1, 4}, ::torch::kDouble);
    model.backward(replica_index() == 0 ? model.local()->unused(x).sum()
                                        : model.local()->first(y).sum());
    EXPECT_EQ(model.local()->unused->bias.grad().sum().item<double>(), 2);
    EXPECT_EQ(model.local()->first->bias.grad().sum().item<double>(), 4);
    EXPECT_FALSE(model.local()->second->bias.grad().defined());
  });
}

TEST_P(Torch, AVoteLeavesNoGradient) {
  const auto strategy = replicas(2, GetParam());
  DistributedDataParallel<Net> model(strategy, [] { return Net(); });
  strategy.run([&] {
    get_replica_context()->vote_skip(Tensor(replica_index() == 1));
    model.backward(model.local()->forward(batch_of(0, 1).x).sum());
    for (const auto& parameter : model.local()->parameters())
      EXPECT_FALSE(parameter.grad().defined());
  });
}

TEST_P(Torch, AFailureOfOneReplicaReachesAll) {
  const auto strategy = replicas(2, GetParam());
  DistributedDataParallel<Net> model(strategy, [] { return Net(); });
  const auto step = [&](bool fails) {
    strategy.run([&] {
      const ::torch::Tensor y = model.local()->forward(batch_of(replica_index(), 2).x);
      if (fails && replica_index() == 1) throw ResourceExhausted("[test] out of paper");
      model.backward(y.sum());
    });
  };
  EXPECT_THAT([&] { step(true); }, throws<ResourceExhausted>("out of paper"));
  step(false);
}

TEST(TorchMisuse, IsRefused) {
  const auto strategy = replicas(2);
  int made = 0;
  EXPECT_THAT(
      [&] {
        DistributedDataParallel<Sequential>(
            strategy, [&] { return Sequential(::torch::nn::Linear(2, ++made)); });
      },
      throws<InvalidArgument>("[DistributedDataParallel]", "one structure"));
  DistributedDataParallel<Net> model(strategy, [] { return Net(); });
  EXPECT_THAT([&] { model.local(); },
              throws<FailedPrecondition>("[DistributedDataParallel]", "step function"));
  EXPECT_THAT([&] { replicas(2).run([&] { model.local(); }); },
              throws<FailedPrecondition>("[DistributedDataParallel]", "strategy"));
  EXPECT_THAT(
      [&] { strategy.run([&] { DistributedDataParallel<Net>(strategy, [] { return Net(); }); }); },
      throws<FailedPrecondition>("[Strategy::scope]", "step function"));
}

TEST(TorchTensors, ShareTheirMemory) {
  const ::torch::Tensor theirs = ::torch::arange(6, ::torch::kFloat).reshape({2, 3});
  const Tensor ours = from_torch(theirs);
  EXPECT_EQ(ours.raw_data(), theirs.data_ptr());
  EXPECT_EQ(ours.shape(), (Shape{2, 3}));
  EXPECT_THAT(from_torch(theirs.t()), holds({0, 3, 1, 4, 2, 5}));
  ::torch::Tensor back;
  {
    const Tensor kept = vec<std::int64_t>({1, 2});
    back = to_torch(kept);
    EXPECT_EQ(back.data_ptr(), kept.raw_data());
  }
  EXPECT_EQ(back.sum().item<std::int64_t>(), 3);
  for (const auto type : {::torch::kFloat, ::torch::kDouble, ::torch::kHalf, ::torch::kBFloat16,
                          ::torch::kInt, ::torch::kLong, ::torch::kByte, ::torch::kBool})
    EXPECT_EQ(to_torch(from_torch(::torch::ones({2}, type))).scalar_type(), type);
  EXPECT_THAT([] { from_torch(::torch::ones({1}, ::torch::kComplexFloat)); },
              throws<InvalidArgument>("[from_torch]", "ComplexFloat"));
  EXPECT_THAT([] { from_torch({}); }, throws<InvalidArgument>("[from_torch]", "undefined"));
  EXPECT_THAT([] { to_torch({}); }, throws<InvalidArgument>("[to_torch]", "undefined"));
}

}  // namespace
}  // namespace lockstep::interop
