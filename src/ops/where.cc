// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/gather.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>

#include "ops/result.h"
#include "ops/traced.h"

namespace lockstep {
namespace {

// The coordinates of the true elements one after the other, up to `end`; walked in rows of the last
// axis. Those of every element are written, and only true ones kept, as branches on a condition that
// nobody can predict would take longer.
void write_places(const bool* condition, const Shape& shape, std::int64_t* to,
                  const std::int64_t* end) {
  const int last = shape.rank() - 1;
  const std::int64_t row = shape[last];
  const std::int64_t rows = row == 0 ? 0 : shape.num_elements() / row;
  std::int64_t place[Shape::kMaxRank] = {};
  for (std::int64_t r = 0; r < rows; ++r, condition += row) {
    for (std::int64_t i = 0; i < row; ++i) {
      if (to == end) return;
      for (int axis = 0; axis < last; ++axis) to[axis] = place[axis];
      to[last] = i;
      to += (last + 1) * static_cast<std::int64_t>(condition[i]);
    }
    for (int axis = last - 1; axis >= 0 && ++place[axis] == shape[axis]; --axis) place[axis] = 0;
  }
}

}  // namespace

Tensor where(const Tensor& condition, SourceLocation at) {
  require_defined("where", "the condition", condition, at);
  require_dtype(condition.dtype() == DType::boolean, "where", condition, "bool as condition", at);
  if (traced::on(condition.device()))
    throw Unimplemented(
        "[where] how many elements are true is not known while a step is traced; use "
        "select(condition, a, b) to choose values by a condition",
        at);
  const Tensor here = condition.to_host();
  const auto elements = here.data<bool>();
  const std::int64_t count = std::count(elements.begin(), elements.end(), true);
  const DeviceScope host(here.device());
  const Tensor places =
      make_tensor<std::int64_t>({count, condition.rank()}, [&](std::span<std::int64_t> to) {
        if (!to.empty())
          write_places(elements.data(), condition.shape(), to.data(), to.data() + to.size());
      });
  return condition.device().is_host() ? places : copy_to(places, condition.device());
}

}  // namespace lockstep
