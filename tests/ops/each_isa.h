// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "ops/isa.h"

namespace lockstep::testing {

// Calls f() under each instruction set that this CPU has, then sets the one that was.
template <class F>
void under_each_isa(F&& f) {
  const Isa before = isa();
  for (const Isa forced : {Isa::base, Isa::v2, Isa::v3, Isa::v4}) {
    if (!supports(forced)) continue;
    SCOPED_TRACE(name_of(forced));
    set_isa(forced);
    f();
  }
  set_isa(before);
}

}  // namespace lockstep::testing
