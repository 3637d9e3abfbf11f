// SPDX-License-Identifier: Apache-2.0
// EXPECT: T must be a nest of tensors
#include <lockstep/lockstep.h>
namespace ls = lockstep;

class Example {
 public:
  ls::Tensor image() const { return image_; }

 private:
  ls::Tensor image_, label_;
};

auto load() { return ls::data::digits<Example>("train").batch(32); }
