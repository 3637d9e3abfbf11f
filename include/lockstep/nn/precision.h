// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <concepts>
#include <string>
#include <string_view>

namespace lockstep::nn {

// In which dtypes a layer keeps its variables and computes. Mixed precision keeps variables in f32 and
// computes in 16 bits: half the memory traffic, and matrix products at the speed of 16 bits where the
// device has it. What is cast, and where, is this list:
//
//   variables, optimizer slots, updates   variable dtype (f32)
//   a layer with variables                casts its input and reads its variables in the compute dtype,
//                                         in which it computes and gives its result
//   a layer without                       follows its input
//   matmul, convolution, pooling of 16    sum in f32 within the op, and round once
//   bits; softmax; reductions
//   norms                                 statistics, scale and offset f32, result as the input
//   losses (nn/losses.h)                  16-bit predictions are cast to f32, and so is the loss
//   gradients                             as what they are the gradients of: of variables f32, which is
//                                         what is summed over replicas and reaches the optimizer
//
// bf16 has the range of f32. Of f16, gradients below 6e-8 vanish and those above 65504 are infinite: it
// needs optim::LossScaleOptimizer; other optimizers warn of layers that compute in it. For logits in f32 make the last layer with {.dtype = DType::f32}.
class LOCKSTEP_EXPORT PrecisionPolicy {
 public:
  // One dtype for everything.
  constexpr PrecisionPolicy(DType dtype)  // NOLINT: implicit, layers take {.dtype = DType::f64}
      : compute_(dtype), variable_(dtype) {}
  constexpr PrecisionPolicy(DType compute, DType variable)
      : compute_(compute), variable_(variable) {}
  // By Keras's name: "float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16".
  // Throws InvalidArgument for another one.
  template <std::convertible_to<std::string_view> Name>
  PrecisionPolicy(const Name& name, SourceLocation at = SourceLocation::current())  // NOLINT
      : PrecisionPolicy(named(name, at)) {}

  constexpr DType compute_dtype() const { return compute_; }
  constexpr DType variable_dtype() const { return variable_; }
  // As above; what has no name in Keras is "f16 with variables of f64", for example.
  std::string name() const;
  friend constexpr bool operator==(PrecisionPolicy, PrecisionPolicy) = default;

 private:
  static PrecisionPolicy named(std::string_view name, SourceLocation at);

  DType compute_, variable_;
};

inline constexpr PrecisionPolicy float32{DType::f32};
inline constexpr PrecisionPolicy mixed_bfloat16{DType::bf16, DType::f32};
inline constexpr PrecisionPolicy mixed_float16{DType::f16, DType::f32};

// The policy of layers that are given none: the innermost PolicyScope's of the calling thread, else the
// process's, which is float32 until set_global_policy. A layer keeps the one that it was made with.
// Thread-safe.
LOCKSTEP_EXPORT PrecisionPolicy global_policy() noexcept;
// Throws InvalidArgument for dtypes that are not floating.
LOCKSTEP_EXPORT void set_global_policy(PrecisionPolicy policy,
                                       SourceLocation at = SourceLocation::current());

// Layers that the calling thread makes while it lives get this policy. Scopes nest.
class [[nodiscard]] LOCKSTEP_EXPORT PolicyScope {
 public:
  // Throws InvalidArgument for dtypes that are not floating.
  explicit PolicyScope(PrecisionPolicy policy, SourceLocation at = SourceLocation::current());
  ~PolicyScope();
  PolicyScope(const PolicyScope&) = delete;
  PolicyScope& operator=(const PolicyScope&) = delete;

 private:
  const PrecisionPolicy policy_;
  const PolicyScope* const outer_;
  friend PrecisionPolicy global_policy() noexcept;
};

}  // namespace lockstep::nn
