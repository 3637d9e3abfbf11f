// SPDX-License-Identifier: Apache-2.0
// EXPECT: the step function cannot be called with this batch
#include <lockstep/lockstep.h>
namespace ls = lockstep;

struct Example {
  ls::Tensor image, label;
};

void train(ls::Strategy& strategy, ls::PerReplica<ls::Tensor>& batch) {
  auto step = [](const Example& example) { return example.image; };
  strategy.run(step, batch);
}
