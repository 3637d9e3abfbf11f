// SPDX-License-Identifier: Apache-2.0
// A training step of the MLP in LibTorch, on one thread.
#include <torch/torch.h>

#include "../window.h"

int main() {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  namespace nn = torch::nn;
  nn::Sequential model(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                       nn::Linear(512, 10));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01));
  const torch::Tensor images = torch::rand({128, 784});
  const torch::Tensor labels = torch::randint(0, 10, {128}, torch::kLong);

  long long parameters = 0;
  for (const torch::Tensor& values : model->parameters()) parameters += values.numel();
  window::answer(window::training("LibTorch " TORCH_VERSION, parameters), [&] {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::cross_entropy_loss(model->forward(images), labels);
    loss.backward();
    optimizer.step();
    return loss.item<float>();
  });
}
