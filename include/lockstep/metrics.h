// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers about a whole epoch, over all replicas.
//
// A metric's state is a variable that is brought together when it is read (on_read): in a step each
// replica adds to its own component, which costs no communication, and result() computes from the
// sum over all replicas and workers. So the mean of a metric is over examples, not a mean of means,
// and a replica without rows adds nothing. Sums are kept in f64. Metrics are cheap handles, made in
// the strategy's scope, updated in the step function; result() and reset_state() are for both
// sides.

#include <lockstep/metrics/accuracy.h>
#include <lockstep/metrics/auc.h>
#include <lockstep/metrics/confusion_matrix.h>
#include <lockstep/metrics/f_score.h>
#include <lockstep/metrics/mean.h>
#include <lockstep/metrics/metric.h>
#include <lockstep/metrics/perplexity.h>
#include <lockstep/metrics/precision.h>
#include <lockstep/metrics/regression.h>
#include <lockstep/metrics/threshold_metric.h>
