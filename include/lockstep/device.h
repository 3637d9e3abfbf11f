// SPDX-License-Identifier: Apache-2.0
#pragma once

// device: where memory is and work runs. A Device is a name; a Buffer is shared memory of one device,
// from a caching pool, so that the second step of a loop asks nothing of the system; a Stream orders work.

#include <lockstep/device/buffer.h>
#include <lockstep/device/device.h>
#include <lockstep/device/event.h>
#include <lockstep/device/stream.h>
