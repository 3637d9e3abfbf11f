// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <fstream>

#include "support/errors.h"
#include "support/process.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

// Leaves the process room for a few more thread stacks while it lives.
class LittleAddressSpace {
 public:
  LittleAddressSpace() {
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlimit little{.rlim_cur = pages * 4096 + (rlim_t{48} << 20),
                        .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_AS, &little);
  }
  ~LittleAddressSpace() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST(ThreadLimit, AStrategyThatGetsNoThreadsSaysSo) {
  const int threads = testing::num_threads();
  {
    const LittleAddressSpace little;
    EXPECT_THAT([] { testing::replicas(200); },
                testing::throws<ResourceExhausted>("[Strategy]", "of 199 threads", "fewer"));
  }
  EXPECT_EQ(testing::num_threads_once_settled(threads), threads);
  const auto strategy = testing::replicas(4);
  const auto results =
      strategy.run([] { return get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f)); });
  EXPECT_THAT(testing::items(results), ::testing::Each(4));
}

}  // namespace
}  // namespace lockstep
