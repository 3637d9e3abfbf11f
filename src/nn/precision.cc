// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/precision.h>

#include <lockstep/base/check.h>

#include <atomic>
#include <utility>

namespace lockstep::nn {
namespace {

constexpr std::pair<std::string_view, PrecisionPolicy> kNamed[] = {
    {"float32", float32},
    {"float64", DType::f64},
    {"float16", DType::f16},
    {"bfloat16", DType::bf16},
    {"mixed_float16", mixed_float16},
    {"mixed_bfloat16", mixed_bfloat16}};

std::atomic<PrecisionPolicy> of_process{float32};
thread_local const PolicyScope* innermost = nullptr;

PrecisionPolicy checked(PrecisionPolicy policy, const char* op, SourceLocation at) {
  require(is_floating(policy.compute_dtype()) && is_floating(policy.variable_dtype()), at, op,
          "expected floating dtypes, got ", policy.name());
  return policy;
}

}  // namespace

PrecisionPolicy PrecisionPolicy::named(std::string_view name, SourceLocation at) {
  for (const auto& [known, policy] : kNamed)
    if (known == name) return policy;
  throw InvalidArgument(message("PrecisionPolicy",
                                "expected float16, bfloat16, float32, float64, mixed_float16 or "
                                "mixed_bfloat16, got '",
                                name, "'"),
                        at);
}

std::string PrecisionPolicy::name() const {
  for (const auto& [name, policy] : kNamed)
    if (policy == *this) return std::string(name);
  std::string text(name_of(compute_));
  if (variable_ != compute_) text += " with variables of " + std::string(name_of(variable_));
  return text;
}

PrecisionPolicy global_policy() noexcept {
  return innermost ? innermost->policy_ : of_process.load();
}

void set_global_policy(PrecisionPolicy policy, SourceLocation at) {
  of_process = checked(policy, "set_global_policy", at);
}

PolicyScope::PolicyScope(PrecisionPolicy policy, SourceLocation at)
    : policy_(checked(policy, "PolicyScope", at)), outer_(std::exchange(innermost, this)) {}
PolicyScope::~PolicyScope() { innermost = outer_; }

}  // namespace lockstep::nn
