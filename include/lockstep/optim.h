// SPDX-License-Identifier: Apache-2.0
#pragma once

// Optimizers: from gradients to new weights.
//
// minimize(loss, variables, tape) is one training step: the tape computes the gradients, each of
// which is summed over the replicas as soon as it is there, and after the commit point, when all
// sums are known everywhere, every variable is updated once and in place. apply_gradients is the
// long form, for gradients that come from elsewhere or are changed first; it has TensorFlow's
// meaning: each replica brings its own gradients, the optimizer sums them.
//
// All that changes over time is a variable: step counts, slots, the learning rate. So optimizers
// are made in the strategy's scope, each replica updates its own components, and as all of them
// apply the same sums, weights stay bitwise equal. A schedule maps the number of updates, a tensor,
// to the rate.
//
// With mixed_float16 (nn/precision.h) a LossScaleOptimizer around any of them scales the loss, so that
// small gradients do not vanish, and skips the steps that overflow.
//
// An optimizer of your own derives from Optimizer, names its slots and says how one variable is
// updated: with update_values (replica/variable.h) and the update ops (ops/update.h). Those here are
// mostly one of the rules of ops/update_rule.h, where their formulas stand.

#include <lockstep/optim/adadelta.h>
#include <lockstep/optim/adafactor.h>
#include <lockstep/optim/adagrad.h>
#include <lockstep/optim/adam.h>
#include <lockstep/optim/adamax.h>
#include <lockstep/optim/clip.h>
#include <lockstep/optim/ema.h>
#include <lockstep/optim/ftrl.h>
#include <lockstep/optim/lamb.h>
#include <lockstep/optim/lars.h>
#include <lockstep/optim/lion.h>
#include <lockstep/optim/loss_scale.h>
#include <lockstep/optim/nadam.h>
#include <lockstep/optim/noise_scale.h>
#include <lockstep/optim/optimizer.h>
#include <lockstep/optim/rmsprop.h>
#include <lockstep/optim/rule_optimizer.h>
#include <lockstep/optim/schedule.h>
#include <lockstep/optim/sgd.h>
