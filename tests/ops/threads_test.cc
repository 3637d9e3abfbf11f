// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/threads.h>

#include <gtest/gtest.h>
#include <lockstep/ops/matmul.h>

#include <thread>

#include "support/errors.h"
#include "support/values.h"

// From libgomp, which is linked whatever the compiler; clang has no omp.h for it.
extern "C" {
int omp_get_max_threads() noexcept;
void omp_set_num_threads(int threads) noexcept;
}

namespace lockstep {
namespace {

TEST(IntraOpThreads, IsOneUntilAThreadSetsItsOwn) {
  EXPECT_EQ(intra_op_threads(), 1);
  set_intra_op_threads(3);
  EXPECT_EQ(intra_op_threads(), 3);
  std::thread([] { EXPECT_EQ(intra_op_threads(), 1); }).join();
  set_intra_op_threads(1);
}

TEST(IntraOpThreads, LeavesTheUsersOpenMpAlone) {
  omp_set_num_threads(2);
  const Tensor a = testing::Noise(1).tensor<float>({8, 8});
  matmul(a, a);
  EXPECT_EQ(omp_get_max_threads(), 2);
}

TEST(IntraOpThreads, RefusesNone) {
  EXPECT_THAT([] { set_intra_op_threads(0); },
              testing::throws<InvalidArgument>("[set_intra_op_threads]", "0"));
}

}  // namespace
}  // namespace lockstep
