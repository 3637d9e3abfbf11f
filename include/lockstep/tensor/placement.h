// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Where the next result is to be written: set around the last op of a gradient so that its kernel
// writes straight into the gradient arena. While a Placement lives, the first result of this dtype
// and element count that the calling thread allocates takes the place; the owner of the Placement
// checks taken() and copies where no op did. Placements nest; only the innermost is considered.
class [[nodiscard]] LOCKSTEP_EXPORT Placement {
 public:
  Placement(Buffer place, DType dtype, std::int64_t num_elements) noexcept;
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  bool taken() const { return !place_; }
  // Takes the innermost placement if it fits; an empty Buffer otherwise.
  static Buffer take(Device device, DType dtype, std::int64_t num_elements) noexcept;

 private:
  Buffer place_;
  DType dtype_;
  std::int64_t num_elements_;
  Placement* outer_;
};

// The memory of an op's result: the current placement if it fits, else from current pool of
// `device`.
LOCKSTEP_EXPORT Buffer allocate_result(Device device, DType dtype, const Shape& shape);

}  // namespace lockstep
