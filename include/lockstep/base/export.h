// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks what the shared library offers; all else in it is hidden. Stands before the name of a class
// or exception type (`class LOCKSTEP_EXPORT Tensor`), and before a function or variable that is
// defined in src/. Templates and inline functions need none.
#define LOCKSTEP_EXPORT [[gnu::visibility("default")]]
