// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/ops/threads.h>

#include "ops/intra_op_scope.h"

// From libgomp, which is linked whatever the compiler; clang has no omp.h for it.
extern "C" {
int omp_get_max_threads() noexcept;
void omp_set_num_threads(int threads) noexcept;
}

namespace lockstep {
namespace {

thread_local int threads_of_this_thread = 1;

}  // namespace

int intra_op_threads() noexcept { return threads_of_this_thread; }

void set_intra_op_threads(int threads, SourceLocation at) {
  require(threads >= 1, at, "set_intra_op_threads", "expected at least 1 thread, got ", threads);
  threads_of_this_thread = threads;
}

IntraOpScope::IntraOpScope() noexcept : previous_(omp_get_max_threads()) {
  if (previous_ != threads_of_this_thread) omp_set_num_threads(threads_of_this_thread);
}

IntraOpScope::~IntraOpScope() {
  if (previous_ != threads_of_this_thread) omp_set_num_threads(previous_);
}

}  // namespace lockstep
