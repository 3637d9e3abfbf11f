// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/placement.h>

namespace lockstep {
namespace {

thread_local Placement* innermost = nullptr;

}  // namespace

Placement::Placement(Buffer place, DType dtype, std::int64_t num_elements) noexcept
    : place_(std::move(place)),
      dtype_(dtype),
      num_elements_(num_elements),
      outer_(std::exchange(innermost, this)) {}

Placement::~Placement() { innermost = outer_; }

Buffer Placement::take(Device device, DType dtype, std::int64_t num_elements) noexcept {
  Placement* const placement = innermost;
  if (!placement || !placement->place_ || placement->dtype_ != dtype ||
      placement->num_elements_ != num_elements || placement->place_.device().kind != device.kind)
    return {};
  return std::exchange(placement->place_, Buffer());
}

Buffer allocate_result(Device device, DType dtype, const Shape& shape) {
  const std::int64_t count = shape.num_elements();
  if (Buffer place = Placement::take(device, dtype, count)) return place;
  return Buffer::allocate(device, static_cast<std::size_t>(count) * size_of(dtype));
}

}  // namespace lockstep
