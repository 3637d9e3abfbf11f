// SPDX-License-Identifier: Apache-2.0
#pragma once

// tensor: values. A Tensor is a cheap handle to an immutable array; a nest is a structure of tensors (what
// batches and step results are); rows are the elements of a batch; StateVisitor walks what is saved,
// StateLog keeps what a function that is to run again has read.

#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/indexed_slices.h>
#include <lockstep/tensor/nest.h>
#include <lockstep/tensor/placement.h>
#include <lockstep/tensor/rows.h>
#include <lockstep/tensor/state.h>
#include <lockstep/tensor/state_log.h>
#include <lockstep/tensor/tensor.h>
