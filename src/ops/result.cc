// SPDX-License-Identifier: Apache-2.0
#include "ops/result.h"

namespace lockstep {
namespace {

// Called when the tensors' devices differ.
Device of_two(const char* op, Device a, Device b, SourceLocation at) {
  if (a.is_host() && b.is_host()) return current_device().is_host() ? current_device() : a;
  require(a.is_host() || b.is_host(), at, op, "tensors are on ", a.to_string(), " and ",
          b.to_string(), "; copy one of them to the other's device or to the host first");
  return a.is_host() ? b : a;
}

}  // namespace

Device common_device(const char* op, std::span<const Tensor* const> inputs, SourceLocation at) {
  const Tensor* first = nullptr;
  Device device;
  for (const Tensor* input : inputs) {
    if (!input->defined()) continue;
    const Device own = input->device();
    if (!first)
      device = own;
    else if (own != device)
      device = of_two(op, device, own, at);
    first = input;
  }
  require(first != nullptr, at, op, "expected a tensor that holds a value, got an undefined one");
  return device;
}

}  // namespace lockstep
