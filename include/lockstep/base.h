// SPDX-License-Identifier: Apache-2.0
#pragma once

// base: what every layer may use: dtypes and shapes (values), errors by what the caller may do, deadlines,
// logging and threads. Includes nothing of lockstep but itself.

#include <lockstep/base/check.h>
#include <lockstep/base/deadline.h>
#include <lockstep/base/dtype.h>
#include <lockstep/base/error.h>
#include <lockstep/base/export.h>
#include <lockstep/base/half.h>
#include <lockstep/base/log.h>
#include <lockstep/base/reduce_op.h>
#include <lockstep/base/shape.h>
#include <lockstep/base/source_location.h>
#include <lockstep/base/thread.h>
#include <lockstep/base/version.h>
