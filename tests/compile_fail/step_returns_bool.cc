// SPDX-License-Identifier: Apache-2.0
// EXPECT: the step function returns bool
#include <lockstep/lockstep.h>
namespace ls = lockstep;

void train(ls::Strategy& strategy, const ls::Tensor& batch) {
  auto step = [](const ls::Tensor& x) { return x.defined(); };
  strategy.run(step, batch);
}
