// SPDX-License-Identifier: Apache-2.0
// One weight w = 2, per-example loss (w x - 1)^2, x = 1, 2, 3, 4 over two replicas, SGD at 0.1: the
// loss is 21 and w becomes -0.5, on however many replicas.
#include <lockstep/lockstep.h>

#include <cstdio>

namespace ls = lockstep;

int main() {
  ls::MirroredStrategy strategy({.devices = {"CPU:0", "CPU:1"}});
  auto batches = strategy.distribute_dataset(
      ls::data::from_tensor_slices(ls::Tensor({4}, {1.0f, 2.0f, 3.0f, 4.0f})).batch(4));
  auto scope = strategy.scope();
  ls::Variable w(ls::Tensor(2.0f));
  ls::optim::SGD optimizer({.learning_rate = 0.1});

  auto train_step = [&](const ls::Tensor& x) {
    ls::GradientTape tape;
    ls::Tensor loss = ls::nn::compute_average_loss(ls::square(w * x - 1.0f));
    optimizer.minimize(loss, {w}, tape);
    return loss;
  };
  for (const auto& batch : batches) {
    const float loss =
        strategy.reduce(ls::ReduceOp::sum, strategy.run(train_step, batch)).item<float>();
    const float weight = w.read().item<float>();
    std::printf("loss %g, w %g\n", loss, weight);
    if (loss != 21.0f || weight != -0.5f) return 1;
  }
}
