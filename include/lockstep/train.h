// SPDX-License-Identifier: Apache-2.0
#pragma once

// What surrounds a training loop. The same main runs on every worker, so everything here is either
// shown or written by the chief alone, or a collective that every worker calls: the user's program
// never asks which worker it is.
//
// The layer knows variables and worker groups (replica/) and data positions (data/), and no model,
// optimizer or strategy: what is to be saved or shown comes to it as tensors.

#include <lockstep/train/progress.h>
