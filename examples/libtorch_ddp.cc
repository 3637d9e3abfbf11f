// SPDX-License-Identifier: Apache-2.0
// A LibTorch model and optimizer on any number of replicas: lockstep deals the data and sums the
// gradients.
#include <lockstep/distribute/interop/torch.h>
#include <lockstep/lockstep.h>

#include "program.h"
namespace ls = lockstep;
namespace nn = torch::nn;

struct Example {
  ls::Tensor image, label;
};

int main(int argc, char** argv) try {
  const examples::Flags flags(argc, argv, {{"epochs", "10", "passes over the training data"}});
  const ls::Strategy strategy = flags.strategy();
  at::set_num_threads(1);  // replicas are threads already
  torch::manual_seed(1);
  const auto train = strategy.distribute_dataset(
      ls::data::digits<Example>("train").shuffle({.seed = 7}).batch(128).prefetch(2));
  const auto test = strategy.distribute_dataset(ls::data::digits<Example>("test").batch(128));

  ls::interop::DistributedDataParallel<nn::Sequential> model(strategy, [] {
    return nn::Sequential(nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 10));
  });
  std::vector<torch::optim::SGD> optimizers;  // one for each replica of this process
  for (std::size_t r = 0; r < strategy.num_local_replicas(); ++r)
    optimizers.emplace_back(model.of(r)->parameters(), torch::optim::SGDOptions(0.2).momentum(0.9));
  const auto scope = strategy.scope();
  ls::metrics::Mean loss;
  ls::metrics::SparseCategoricalAccuracy accuracy;

  const auto train_step = [&](const Example& batch) {
    const ls::ReplicaContext& replica = *ls::get_replica_context();
    const torch::Tensor logits = model.local()->forward(ls::interop::to_torch(batch.image));
    const torch::Tensor losses = nn::functional::cross_entropy(
        logits, ls::interop::to_torch(batch.label).to(torch::kLong),
        nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    model.backward(losses.sum() / replica.batch_rows()->global);  // all-reduces while it runs
    optimizers[static_cast<std::size_t>(replica.local_index())].step();
    loss.update_state(ls::interop::from_torch(losses));
  };
  const auto test_step = [&](const Example& batch) {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor logits = model.local()->forward(ls::interop::to_torch(batch.image));
    accuracy.update_state(batch.label, ls::interop::from_torch(logits));
  };

  for (int epoch = 1; epoch <= flags.number<int>("epochs", 0); ++epoch) {
    loss.reset_state();
    accuracy.reset_state();
    for (const auto& batch : train) strategy.run(train_step, batch);
    for (const auto& batch : test) strategy.run(test_step, batch);
    examples::print(strategy, "epoch %d: loss %.6f, held-out accuracy %.4f\n", epoch,
                    loss.result().item<double>(), accuracy.result().item<double>());
  }
} catch (const std::exception& error) {
  return examples::failed(error);
}
