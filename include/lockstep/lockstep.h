// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole library; the interop headers of third parties aside. Each folder's header opens with a short
// essay on its layer.
#include <lockstep/autodiff.h>
#include <lockstep/base.h>
#include <lockstep/cluster.h>
#include <lockstep/comm.h>
#include <lockstep/data.h>
#include <lockstep/device.h>
#include <lockstep/distribute.h>
#include <lockstep/metrics.h>
#include <lockstep/nn.h>
#include <lockstep/ops.h>
#include <lockstep/optim.h>
#include <lockstep/replica.h>
#include <lockstep/telemetry.h>
#include <lockstep/tensor.h>
#include <lockstep/train.h>
