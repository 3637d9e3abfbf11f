// SPDX-License-Identifier: Apache-2.0
// The digits example with a mistake, which its doctor is to name.
#include <lockstep/lockstep.h>

#include <vector>

#include "program.h"
namespace ls = lockstep;

struct Example {
  ls::Tensor image, label;
};

struct Training {
  ls::nn::Dense model{64, 10};
  ls::optim::Adam optimizer{{.learning_rate = 1e-2}};

  ls::Tensor step(const Example& batch) {
    ls::GradientTape tape;
    const ls::Tensor losses = ls::nn::sparse_softmax_cross_entropy(batch.label, model(batch.image));
    const ls::Tensor loss = ls::mean(losses);  // of this replica's rows
    optimizer.minimize(loss, variables(), tape);
    return loss;
  }
  std::vector<ls::Variable> variables() const { return model.trainable_variables(); }
};

int main(int argc, char** argv) try {
  const examples::Flags flags(argc, argv, {examples::kDoctor});
  const auto rows = ls::data::digits<Example>("train");
  return flags.given("doctor") ? examples::doctor([] { return Training(); }, rows) : 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
