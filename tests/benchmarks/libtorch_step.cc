// SPDX-License-Identifier: Apache-2.0
// libtorch_step mlp|resnet20 REPLICAS: a training step of a LibTorch model on so many CPU replicas, as
// peers/torch_models.py has it.
#include <lockstep/distribute/interop/torch.h>
#include <lockstep/lockstep.h>

#include <iostream>
#include <string>

#include "window.h"

namespace {

namespace ls = lockstep;
namespace nn = torch::nn;

struct Workload {
  nn::Sequential (*model)();
  torch::Tensor (*images)();
};

nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                        nn::Linear(512, 10));
}

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

struct BlockImpl : nn::Module {
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : main(convolution(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(),
             convolution(out, out, 3, 1), nn::BatchNorm2d(out)) {
    if (in != out) shortcut = nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out));
    register_module("main", main);
    register_module("shortcut", shortcut);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return (main->forward(x) + (shortcut->is_empty() ? x : shortcut->forward(x))).relu_();
  }
  nn::Sequential main, shortcut{};
};
TORCH_MODULE(Block);

nn::Sequential resnet20() {
  nn::Sequential model(convolution(3, 16, 3, 1), nn::BatchNorm2d(16), nn::ReLU(), Block(16, 16, 1),
                       Block(16, 16, 1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 32, 1),
                       Block(32, 32, 1), Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1),
                       nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(64, 10));
  for (torch::Tensor& parameter : model->parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.to(torch::MemoryFormat::ChannelsLast));
  return model;
}

Workload workload(const std::string& name) {
  if (name == "mlp") return {mlp, [] { return torch::rand({128, 784}); }};
  if (name == "resnet20")
    return {resnet20, [] {
              return torch::rand({64, 3, 32, 32}).to(torch::MemoryFormat::ChannelsLast);
            }};
  throw std::invalid_argument("expected mlp or resnet20, got " + name);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto [make, images_of] = workload(arguments.at(0));
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const ls::Strategy strategy = ls::make_strategy("mirrored:" + arguments.at(1));
  ls::interop::DistributedDataParallel<nn::Sequential> model(strategy, make);
  std::vector<torch::optim::SGD> optimizers;
  std::vector<torch::Tensor> images, labels;
  for (std::size_t r = 0; r < strategy.num_local_replicas(); ++r) {
    optimizers.emplace_back(model.of(r)->parameters(), torch::optim::SGDOptions(0.01));
    images.push_back(images_of());
    labels.push_back(torch::randint(0, 10, {images[r].size(0)}, torch::kLong));
  }
  long long parameters = 0;
  for (const torch::Tensor& values : model.of(0)->parameters()) parameters += values.numel();

  window::answer(window::training("lockstep with LibTorch " TORCH_VERSION, parameters), [&] {
    const auto losses = strategy.run([&] {
      const ls::ReplicaContext& replica = *ls::get_replica_context();
      const auto own = static_cast<std::size_t>(replica.local_index());
      const torch::Tensor loss =
          torch::cross_entropy_loss(model.local()->forward(images[own]), labels[own]) /
          replica.num_replicas_in_sync();
      model.backward(loss);
      optimizers[own].step();
      return ls::interop::from_torch(loss);
    });
    return strategy.reduce(ls::ReduceOp::sum, losses).item<float>();
  });
}
