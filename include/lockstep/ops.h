// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ops: free functions that take tensors and return new ones.
//
// An op checks shapes and dtypes, asks where its inputs are, has the device's kernel write the result,
// and tells the thread's OpRecorder (the gradient tape, if one listens) how gradients flow back. All
// wrong input is InvalidArgument that starts with the op's name in brackets and carries the caller's
// line. Ops keep no state: they may be called from any thread, and the random ones draw from the
// thread's RandomState.
//
//   Values    an op never changes its inputs. The update ops (update.h), which optimizers use, take
//             their state by move and write in place when nobody else holds it.
//   Devices   the result lives where the inputs do. Host tensors are accepted everywhere; tensors of
//             two accelerators in one op are InvalidArgument.
//   DTypes    two tensors of different dtypes are InvalidArgument, nothing is promoted silently. A
//             number takes the dtype of the tensor beside it. f16 and bf16 are computed in float.
//   Shapes    binary ops broadcast as NumPy's do. Empty tensors are fine wherever the result is
//             defined.
//   Gradients a rule is written with these same ops, so gradients of gradients work, and an op that
//             is run on another device brings its gradient along.
//   Bits      float32 results are the same bits under every instruction set that kernels are compiled
//             for; sums run in one fixed order. Exceptions are stated at the op.
//
// A family foo is foo.h here and in src/ops foo.cc (checks, dispatch, gradient rules) and a body per
// device; kernels that profit from wide vectors stand in foo_isa.cc, compiled for several instruction
// sets and chosen at run time. Elementwise ops are a functor each in src/ops/unary_list.h and
// binary_list.h, update rules in src/ops/update_functors.h.

#include <lockstep/ops/activation.h>
#include <lockstep/ops/attention.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/conv.h>
#include <lockstep/ops/cumsum.h>
#include <lockstep/ops/einsum.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/norm.h>
#include <lockstep/ops/operand.h>
#include <lockstep/ops/pool.h>
#include <lockstep/ops/random.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/ops/softmax.h>
#include <lockstep/ops/sort.h>
#include <lockstep/ops/threads.h>
#include <lockstep/ops/update.h>
#include <lockstep/ops/update_rule.h>
#include <lockstep/ops/window.h>
