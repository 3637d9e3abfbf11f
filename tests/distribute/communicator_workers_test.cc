// SPDX-License-Identifier: Apache-2.0
#include "distribute/communicator_workers.h"

#include <gtest/gtest.h>
#include <lockstep/comm/in_process.h>

#include <functional>
#include <string>
#include <thread>

#include "support/errors.h"

namespace lockstep {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Runs f(workers) as each of `count` workers, which are threads here.
void as_workers(int count, const std::function<void(WorkerGroup&)>& f) {
  InProcessGroup group(count, {.collective_timeout = std::chrono::seconds(20)});
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      CommunicatorWorkers workers(group.rank(i));
      f(workers);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(CommunicatorWorkers, KnowTheirRankAndChief) {
  as_workers(3, [](WorkerGroup& workers) {
    EXPECT_EQ(workers.size(), 3);
    EXPECT_EQ(workers.is_chief(), workers.rank() == 0);
  });
}

TEST(CommunicatorWorkers, BroadcastAnyNumberOfBytes) {
  for (const std::size_t size : {0, 1, 56, 57, 100'000})
    as_workers(3, [&](WorkerGroup& workers) {
      const std::string sent(size, 's');
      const std::string own = workers.rank() == 1 ? sent : std::string(7, 'x');
      EXPECT_EQ(text_of(workers.broadcast("value", bytes_of(own), 1)), sent);
    });
}

TEST(CommunicatorWorkers, GatherBytesOfDifferentSizesInRankOrder) {
  for (const std::size_t step : {0, 3, 40, 1000})
    as_workers(3, [&](WorkerGroup& workers) {
      const auto part = [&](int rank) {
        return std::string(static_cast<std::size_t>(rank) * step, static_cast<char>('a' + rank));
      };
      const auto all = workers.all_gather("parts", bytes_of(part(workers.rank())));
      ASSERT_EQ(all.size(), 3u);
      for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(text_of(all[static_cast<std::size_t>(rank)]), part(rank));
    });
}

TEST(CommunicatorWorkers, TellWhoCallsForSomethingElse) {
  as_workers(2, [](WorkerGroup& workers) {
    const char* const name = workers.rank() == 0 ? "saving" : "restoring";
    EXPECT_THAT([&] { workers.barrier(name); }, testing::throws<PeerError>("saving", "restoring"));
  });
}

TEST(CommunicatorWorkers, RefuseARootThatIsNoWorker) {
  as_workers(2, [](WorkerGroup& workers) {
    EXPECT_THAT([&] { workers.broadcast("value", {}, 2); },
                testing::throws<InvalidArgument>("below 2", "got 2"));
  });
}

}  // namespace
}  // namespace lockstep
