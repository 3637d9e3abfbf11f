// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/version.h"

namespace lockstep {

std::string_view version() { return LOCKSTEP_VERSION; }

}  // namespace lockstep
