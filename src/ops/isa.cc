// SPDX-License-Identifier: Apache-2.0
#include "ops/isa.h"

#include <lockstep/base/check.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace lockstep {
namespace {

constexpr int kUndecided = -1;
constinit std::atomic<int> active{kUndecided};

Isa best() {
  if (supports(Isa::base)) return Isa::base;
  for (const Isa isa : {Isa::v4, Isa::v3, Isa::v2})
    if (supports(isa)) return isa;
  throw Unavailable("[lockstep] this CPU lacks SSE4.2 (x86-64-v2), which the CPU kernels need",
                    SourceLocation{});
}

Isa checked(Isa isa) {
  if (!supports(isa))
    throw Unavailable(message("LOCKSTEP_CPU_ISA", "this CPU cannot run ", name_of(isa),
                              "; its best is ", name_of(best())),
                      SourceLocation{});
  return isa;
}

Isa decide() {
  const char* asked = std::getenv("LOCKSTEP_CPU_ISA");
  if (!asked || !*asked) return best();
  for (const Isa isa : {Isa::v2, Isa::v3, Isa::v4})
    if (std::string_view(asked) == name_of(isa)) return checked(isa);
  throw InvalidArgument(message("LOCKSTEP_CPU_ISA", "expected v2, v3 or v4, got \"", asked, "\""),
                        SourceLocation{});
}

}  // namespace

const char* name_of(Isa isa) {
  constexpr const char* names[] = {"base", "v2", "v3", "v4"};
  return names[static_cast<int>(isa)];
}

bool supports([[maybe_unused]] Isa isa) noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  switch (isa) {
    case Isa::base:
      return false;
    case Isa::v2:
      return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    case Isa::v3:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    case Isa::v4:
      return supports(Isa::v3) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
#else
  return isa == Isa::base;
#endif
}

Isa isa() {
  int decided = active.load(std::memory_order_relaxed);
  if (decided == kUndecided) [[unlikely]] {
    decided = static_cast<int>(decide());
    active.store(decided, std::memory_order_relaxed);
  }
  return static_cast<Isa>(decided);
}

void set_isa(Isa isa) { active.store(static_cast<int>(checked(isa)), std::memory_order_relaxed); }

}  // namespace lockstep
