// SPDX-License-Identifier: Apache-2.0
// EXPECT: the step function returns nothing to reduce
#include <lockstep/lockstep.h>
namespace ls = lockstep;

ls::Tensor train(ls::Strategy& strategy, ls::PerReplica<ls::Tensor>& batch) {
  auto step = [](const ls::Tensor& x) { ls::Tensor loss = x * x; };
  return strategy.reduce(ls::ReduceOp::sum, strategy.run(step, batch));
}
