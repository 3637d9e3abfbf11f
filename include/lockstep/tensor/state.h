// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <string_view>

namespace lockstep {

// Walks the state of an object, member by member, under names that are unique within it. One walk
// serves saving (the visitor copies the tensor) and restoring (it replaces it), so the two cannot
// drift apart. Objects offer `void visit_state(StateVisitor&)`.
class LOCKSTEP_EXPORT StateVisitor {
 public:
  virtual ~StateVisitor();
  // `value` is the current value; a visitor that restores assigns one of the same dtype and shape.
  virtual void visit(std::string_view name, Tensor& value) = 0;
  // A host integer: a position, an epoch, a counter.
  virtual void visit(std::string_view name, std::int64_t& value) = 0;
};

}  // namespace lockstep
