// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>

// Kernels that profit from wide vectors stand in *_isa.cc files, which are compiled once for each
// instruction set with LOCKSTEP_ISA defined. All they define is in LOCKSTEP_ISA_NAMESPACE or an
// anonymous namespace within it, and they use no function template or inline function from
// elsewhere that might not be inlined: the linker would pick one for every CPU. A family's
// kernels.h declares its table of entries, and each variant of the file defines it:
//
//   struct PoolKernels { void (*max)(const float* x, float* y, std::int64_t n); };
//   LOCKSTEP_ISA_TABLE(PoolKernels, pool_kernels);                             // pool_kernels.h
//
//   namespace lockstep::LOCKSTEP_ISA_NAMESPACE {                               // pool_isa.cc
//   namespace { void max(const float* x, float* y, std::int64_t n) { ... } }
//   const PoolKernels pool_kernels{.max = max};
//   }
//
//   pool_kernels().max(x, y, n);                                               // pool.cc
namespace lockstep {

// Instruction sets that kernels are compiled for: x86-64-v2 (SSE4.2), v3 (AVX2), v4 (AVX-512); base
// is the only one on other processors.
enum class Isa : unsigned char { base, v2, v3, v4 };

const char* name_of(Isa isa);

// The best that this CPU has, or what the environment variable LOCKSTEP_CPU_ISA (v2, v3, v4) says;
// decided at the first call. Throws InvalidArgument for another value of the variable, and
// Unavailable when the CPU lacks the one asked for. Thread-safe.
Isa isa();

// What this CPU can run.
bool supports(Isa isa) noexcept;

// Overrides isa() for the whole process, for tests and benchmarks. Throws Unavailable when the CPU
// lacks it.
void set_isa(Isa isa);

}  // namespace lockstep

#define LOCKSTEP_ISA_CONCAT_(a, b) a##b
#define LOCKSTEP_ISA_CONCAT(a, b) LOCKSTEP_ISA_CONCAT_(a, b)
#ifdef LOCKSTEP_ISA
#define LOCKSTEP_ISA_NAMESPACE LOCKSTEP_ISA_CONCAT(isa_, LOCKSTEP_ISA)
#endif

// Declares `extern const Type name` in the namespace of each variant, and `const Type& name()`
// which picks that of isa(). Stands in namespace lockstep.
#if defined(__x86_64__)
#define LOCKSTEP_ISA_TABLE(Type, name) \
  namespace isa_v2 {                   \
  extern const Type name;              \
  }                                    \
  namespace isa_v3 {                   \
  extern const Type name;              \
  }                                    \
  namespace isa_v4 {                   \
  extern const Type name;              \
  }                                    \
  inline const Type& name() {          \
    switch (isa()) {                   \
      case Isa::v4:                    \
        return isa_v4::name;           \
      case Isa::v3:                    \
        return isa_v3::name;           \
      default:                         \
        return isa_v2::name;           \
    }                                  \
  }                                    \
  static_assert(true)
#else
#define LOCKSTEP_ISA_TABLE(Type, name)                 \
  namespace isa_base {                                 \
  extern const Type name;                              \
  }                                                    \
  inline const Type& name() { return isa_base::name; } \
  static_assert(true)
#endif
