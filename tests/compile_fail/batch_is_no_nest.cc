// SPDX-License-Identifier: Apache-2.0
// EXPECT: a batch is a nest
#include <lockstep/lockstep.h>
namespace ls = lockstep;

class Example {
 public:
  ls::Tensor image() const { return image_; }

 private:
  ls::Tensor image_, label_;
};

void train(ls::Strategy& strategy, const Example& example) {
  auto step = [](const Example& batch) { return batch.image(); };
  strategy.run(step, example);
}
