// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/state.h>

namespace lockstep {

StateVisitor::~StateVisitor() = default;

}  // namespace lockstep
