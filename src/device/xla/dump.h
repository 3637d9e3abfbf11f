// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::xla {

// Writes a program that is about to be compiled to a file of its own,
// program_<host>_<process>_<number>.mlir, in the directory that the environment names by
// LOCKSTEP_XLA_DUMP, which is made where there is none; hosts may share it. Nothing without the
// variable; a file that cannot be written is a warning. Thread-safe.
void dump(const std::string& text);

}  // namespace lockstep::xla
