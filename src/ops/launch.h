// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "device/cuda/status.h"
#include "ops/result.h"

namespace lockstep {

// How an op's kernel reaches the device that common_device() chose:
//
//   launch("relu", device, writes(y), reads(x), [](Tensor& y, const Tensor& x) { ... });
//
// On the host the kernel, a function of host tensors, is called at once. On the fake device it is
// put into the device's compute stream together with what it reads and writes; everything else that
// it needs it captures by value. Where inputs are on the host though the op runs on an accelerator,
// it is given copies. For CUDA there is a kernel of its own,
//
//   launch("relu", device, writes(y), reads(x), host_kernel, cuda_kernel);
//
// which is called with the same tensors, all on the device, and itself launches in the device's
// compute stream; without one, the op throws Unimplemented there. Undefined tensors are passed on.
template <class... Tensors>
struct Writes {
  std::tuple<Tensors&...> tensors;
};
template <class... Tensors>
struct Reads {
  std::tuple<const Tensors&...> tensors;
};
template <class... Tensors>
Writes<Tensors...> writes(Tensors&... tensors) {
  return {{tensors...}};
}
template <class... Tensors>
Reads<Tensors...> reads(const Tensors&... tensors) {
  return {{tensors...}};
}

// Stands for a CUDA kernel that is not there.
struct NoCudaKernel {};

namespace detail {

// x, or for a host tensor a copy on the accelerator.
Tensor on_accelerator(const Tensor& x, Device device);
// A host tensor of the elements of a device that the host can address; it keeps nothing alive.
Tensor borrowed(const Tensor& x);
// Puts a kernel into the fake device's compute stream.
void launch_fake(const char* op, Device device, std::initializer_list<const Tensor*> written,
                 std::initializer_list<const Tensor*> read, std::function<void()> kernel);
[[noreturn]] void no_cuda_kernel(const char* op, Device device);

template <class Host, class Cuda, class... W, class... R>
void launch_on_accelerator(const char* op, Device device, std::tuple<W&...> written,
                           std::tuple<R...> read, Host& host, Cuda& cuda) {
  const auto all =
      std::tuple_cat(written, std::apply([](R&... r) { return std::tie(r...); }, read));
  if (device.kind == DeviceKind::fake) {
    auto tensors = std::apply([](const auto&... t) { return std::tuple{borrowed(t)...}; }, all);
    auto kernel = [host, tensors = std::move(tensors)]() mutable { std::apply(host, tensors); };
    std::apply(
        [&](const W&... w) {
          std::apply(
              [&](const R&... r) { launch_fake(op, device, {&w...}, {&r...}, std::move(kernel)); },
              read);
        },
        written);
  } else if constexpr (!cuda::kBuilt || std::is_same_v<Cuda, const NoCudaKernel>) {
    no_cuda_kernel(op, device);
  } else {
    std::apply(cuda, all);
  }
}

}  // namespace detail

template <class... W, class... R, class Host, class Cuda = NoCudaKernel>
void launch(const char* op, Device device, Writes<W...> written, Reads<R...> read, Host&& host,
            const Cuda& cuda = {}) {
  if (device.is_host()) {
    std::apply(host, std::tuple_cat(written.tensors, read.tensors));
    return;
  }
  std::apply(
      [&](const R&... r) {
        detail::launch_on_accelerator(op, device, written.tensors,
                                      std::tuple{detail::on_accelerator(r, device)...}, host, cuda);
      },
      read.tensors);
}

}  // namespace lockstep
