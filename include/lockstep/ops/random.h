// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/random_scope.h>
#include <lockstep/tensor/tensor.h>

namespace lockstep {

// Random tensors on current_device(), drawn from current_random_state(). The generator is Philox
// 4x32-10 (Salmon et al., SC 2011): block i of an op is its function of the state's seed (the key),
// stream and counter + i, and gives four 32-bit words. An op then advances the counter by the
// blocks it used: a quarter of the words below, rounded up. The same state gives the same bits,
// whatever the instruction set; of f64, normal and truncated_normal call the C library.
//
// Words per element: one; two for f64, uniform_int, permutation. f16, bf16 are drawn in float and
// rounded. InvalidArgument for integer dtypes and for parameters out of range.

// Uniform in [low, high). InvalidArgument unless the dtype holds both and their distance is finite.
LOCKSTEP_EXPORT Tensor uniform(const Shape& shape, double low = 0, double high = 1,
                               DType dtype = DType::f32,
                               SourceLocation at = SourceLocation::current());
// Normal, by the method of Box and Muller.
LOCKSTEP_EXPORT Tensor normal(const Shape& shape, double mean = 0, double stddev = 1,
                              DType dtype = DType::f32,
                              SourceLocation at = SourceLocation::current());
// Normal, given that it is within two standard deviations of the mean; by inversion.
LOCKSTEP_EXPORT Tensor truncated_normal(const Shape& shape, double mean = 0, double stddev = 1,
                                        DType dtype = DType::f32,
                                        SourceLocation at = SourceLocation::current());
// True (or 1, of a floating dtype) with probability p, else false (0). One word per element.
LOCKSTEP_EXPORT Tensor bernoulli(const Shape& shape, double p, DType dtype = DType::boolean,
                                 SourceLocation at = SourceLocation::current());
// Whole numbers, uniform in [low, high), of an integer dtype that holds them (TensorFlow's uniform
// of such a dtype). InvalidArgument unless low < high.
LOCKSTEP_EXPORT Tensor uniform_int(const Shape& shape, std::int64_t low, std::int64_t high,
                                   DType dtype = DType::i64,
                                   SourceLocation at = SourceLocation::current());

// `samples` independent draws for a row of logits [rows, classes]: classes with the probabilities
// softmax(logits), [rows, samples] of i32 or i64, on the device of the logits. One word per sample, as
// uniform() draws: the class is the first at which the running sum of exp(logits - max), in f32,
// exceeds that part of the whole sum. A class of probability 0, as with a logit of minus infinity, is
// never drawn; a row with a NaN or plus infinity gives the last class.
// InvalidArgument for logits of another rank or without classes.
LOCKSTEP_EXPORT Tensor categorical(const Tensor& logits, std::int64_t samples,
                                   DType dtype = DType::i64,
                                   SourceLocation at = SourceLocation::current());

// The numbers 0 ... n - 1 in random order: i64.
LOCKSTEP_EXPORT Tensor permutation(std::int64_t n, SourceLocation at = SourceLocation::current());
// The rows of x in random order: gather(x, permutation(rows)). InvalidArgument for a scalar.
LOCKSTEP_EXPORT Tensor shuffle(const Tensor& x, SourceLocation at = SourceLocation::current());

}  // namespace lockstep
