// SPDX-License-Identifier: Apache-2.0
// EXPECT: the function given to recompute cannot be called with these arguments
#include <lockstep/lockstep.h>
namespace ls = lockstep;

ls::Tensor product(const ls::Tensor& x) {
  return ls::recompute([](const ls::Tensor& a, const ls::Tensor& b) { return a * b; })(x);
}
