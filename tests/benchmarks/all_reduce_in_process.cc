// SPDX-License-Identifier: Apache-2.0
// Time of an in-process all-reduce (f32, sum, one shared output) for some sizes and numbers of
// ranks: submit and wait, ranks in lockstep, median of rank 0's calls. The peer is the same sum in
// one thread.
#include <lockstep/comm/in_process.h>
#include <lockstep/device/buffer.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "comm/tree_sum.h"

namespace ls = lockstep;
using Clock = std::chrono::steady_clock;

namespace {

double microseconds(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Buffers from the device's pool, as tensors have them, filled with random values.
struct Workload {
  Workload(int ranks, std::int64_t count) : out(allocate(count)) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> any(-1, 1);
    for (int rank = 0; rank < ranks; ++rank) {
      in.push_back(allocate(count));
      for (float& value : span(in.back())) value = any(random);
      inputs.push_back(in.back().data());
    }
    std::ranges::fill(span(out), 0.0F);
  }
  static ls::Buffer allocate(std::int64_t count) {
    return ls::Buffer::allocate({}, static_cast<std::size_t>(count) * sizeof(float));
  }
  static std::span<float> span(const ls::Buffer& buffer) {
    return {static_cast<float*>(buffer.data()), buffer.bytes() / sizeof(float)};
  }

  std::vector<ls::Buffer> in;
  std::vector<const void*> inputs;
  ls::Buffer out;
};

double time_group(int ranks, Workload& work, int repeats) {
  ls::InProcessGroup group(ranks);
  std::vector<double> times;
  const auto rank_body = [&](int rank) {
    ls::Communicator& comm = group.rank(rank);
    const auto in = ls::elements(Workload::span(work.in[static_cast<std::size_t>(rank)]));
    const auto out = ls::elements(Workload::span(work.out));
    for (int i = 0; i < repeats; ++i) {
      comm.barrier({.channel = ls::Channel::control, .sequence = i}).wait();
      const auto start = Clock::now();
      comm.all_reduce({.channel = ls::Channel::gradients, .sequence = 0, .name = "bucket"},
                      ls::ReduceOp::sum, in, out)
          .wait();
      if (rank == 0) times.push_back(microseconds(Clock::now() - start));
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(rank_body, rank);
  rank_body(0);
  for (std::thread& thread : threads) thread.join();
  return median(times);
}

double time_alone(Workload& work, int repeats) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const auto start = Clock::now();
    ls::tree_sum(ls::DType::f32, work.inputs, 0, work.out.data(),
                 static_cast<std::int64_t>(Workload::span(work.out).size()));
    times.push_back(microseconds(Clock::now() - start));
  }
  return median(times);
}

}  // namespace

int main() {
  struct Size {
    const char* name;
    std::int64_t bytes;
  };
  const Size sizes[] = {{"4 KiB", 4 << 10},
                        {"64 KiB", 64 << 10},
                        {"1 MiB", 1 << 20},
                        {"2.7 MB", 2'700'000},
                        {"64 MiB", 64 << 20}};
  std::printf("%-6s %-8s %12s %16s\n", "ranks", "bytes", "group (us)", "one thread (us)");
  for (const int ranks : {2, 4})
    for (const Size& size : sizes) {
      const int repeats = size.bytes < (1 << 20) ? 4001 : size.bytes < (16 << 20) ? 501 : 31;
      Workload work(ranks, size.bytes / 4);
      const double group = time_group(ranks, work, repeats);
      std::printf("%-6d %-8s %12.2f %16.2f\n", ranks, size.name, group, time_alone(work, repeats));
      std::fflush(stdout);
    }
}
