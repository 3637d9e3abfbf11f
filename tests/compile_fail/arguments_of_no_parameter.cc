// SPDX-License-Identifier: Apache-2.0
// EXPECT: the step function cannot be called with this batch
// RUN-07: arguments are the step function's, not a list that may be something else.
#include <lockstep/lockstep.h>
namespace ls = lockstep;

void train(ls::Strategy& strategy) {
  auto step = [] { return ls::Tensor(1.0f); };
  strategy.run(step, 5);
}
