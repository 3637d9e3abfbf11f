// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ops/isa.h"

namespace lockstep::testing {

// The instruction sets that this machine can run, the weakest first.
inline std::vector<Isa> runnable_isas() {
  std::vector<Isa> result;
  for (const Isa isa : {Isa::base, Isa::v2, Isa::v3, Isa::v4})
    if (supports(isa)) result.push_back(isa);
  return result;
}

// Restores the process's choice when it goes.
class IsaGuard {
 public:
  IsaGuard() : previous_(isa()) {}
  ~IsaGuard() { set_isa(previous_); }

 private:
  Isa previous_;
};

// Calls f() under each of them.
template <class F>
void under_each_isa(F&& f) {
  const IsaGuard guard;
  for (const Isa forced : runnable_isas()) {
    SCOPED_TRACE(name_of(forced));
    set_isa(forced);
    f();
  }
}

}  // namespace lockstep::testing
