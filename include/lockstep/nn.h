// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers and losses.
//
// A layer is a value: it knows its sizes when it is made, makes its variables at once in the scope
// that is open, and is called like a function. Copies share the variables. Calls are const, so one
// model serves all replicas of a step at the same time, each of which reads its own components.
// Layers know nothing of strategies; what makes a model distributed is the scope it was made in.
//
//   Sizes     are given, in and out, as in Dense(64, 128). Sequential compares neighbours when it
//             is made, calls compare the input; errors name the layer and both numbers.
//   Training  layers that differ in training take it from the call: model(x, {.training = true}).
//   Your own  layers are any function from tensor to tensor: a lambda, or a class with a const
//             call operator and, if it has any, variables().
//   Precision set_global_policy(mixed_bfloat16), or {.dtype = ...} of a layer: variables in f32,
//             computation in 16 bits (nn/precision.h).
//   Norms     normalise by an example, or by a batch: a call of BatchNorm in training is a collective,
//             so that its moving statistics are equal on all replicas (nn/batch_norm.h).
//   Names     some are an op's, too, where the namespace is lockstep: activations (relu), zeros, ones,
//             truncated_normal, the options of norms. Write nn::relu; a program that is using namespace
//             lockstep had better not be using namespace lockstep::nn besides.
//   Losses    come per example, labels first. compute_average_loss turns them into this replica's
//             part of the mean over the global batch: sum it, and the gradients, over replicas.

#include <lockstep/nn/activation.h>
#include <lockstep/nn/batch_norm.h>
#include <lockstep/nn/conv.h>
#include <lockstep/nn/conv_transpose.h>
#include <lockstep/nn/dense.h>
#include <lockstep/nn/depthwise_conv.h>
#include <lockstep/nn/dropout.h>
#include <lockstep/nn/embedding.h>
#include <lockstep/nn/feed_forward.h>
#include <lockstep/nn/flatten.h>
#include <lockstep/nn/global_pool.h>
#include <lockstep/nn/group_norm.h>
#include <lockstep/nn/gru.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>
#include <lockstep/nn/layer_norm.h>
#include <lockstep/nn/losses.h>
#include <lockstep/nn/lstm.h>
#include <lockstep/nn/moving_average.h>
#include <lockstep/nn/multi_head_attention.h>
#include <lockstep/nn/pool.h>
#include <lockstep/nn/position_embedding.h>
#include <lockstep/nn/precision.h>
#include <lockstep/nn/regularizers.h>
#include <lockstep/nn/reshape.h>
#include <lockstep/nn/residual.h>
#include <lockstep/nn/rms_norm.h>
#include <lockstep/nn/rotary_embedding.h>
#include <lockstep/nn/sequential.h>
#include <lockstep/nn/transformer_block.h>
#include <lockstep/nn/up_sampling.h>
#include <lockstep/nn/zero_padding.h>
