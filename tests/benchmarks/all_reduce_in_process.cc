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
  ls::Buffer out;
};

// Microseconds per call of ranks that do nothing else; the calls keep them in lockstep.
double time_group(int ranks, Workload& work, int samples, int calls_per_sample) {
  ls::InProcessGroup group(ranks);
  std::vector<double> times;
  const auto rank_body = [&](int rank) {
    ls::Communicator& comm = group.rank(rank);
    const auto in = ls::elements(Workload::span(work.in[static_cast<std::size_t>(rank)]));
    const auto out = ls::elements(Workload::span(work.out));
    for (int sample = 0; sample < samples; ++sample) {
      const auto start = Clock::now();
      for (int call = 0; call < calls_per_sample; ++call)
        comm.all_reduce({.channel = ls::Channel::gradients, .sequence = call, .name = "bucket"},
                        ls::ReduceOp::sum, in, out)
            .wait();
      if (rank == 0) times.push_back(microseconds(Clock::now() - start) / calls_per_sample);
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(rank_body, rank);
  rank_body(0);
  for (std::thread& thread : threads) thread.join();
  return median(times);
}

using Range = std::span<const float>;

[[gnu::noinline]] void add_two(Range a, Range b, std::span<float> out) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
}

[[gnu::noinline]] void add_four(Range a, Range b, Range c, Range d, std::span<float> out) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

double time_alone(Workload& work, int samples, int calls_per_sample) {
  std::vector<Range> in;
  for (const ls::Buffer& buffer : work.in) in.emplace_back(Workload::span(buffer));
  const std::span<float> out = Workload::span(work.out);
  std::vector<double> times;
  for (int sample = 0; sample < samples; ++sample) {
    const auto start = Clock::now();
    for (int call = 0; call < calls_per_sample; ++call)
      in.size() == 2 ? add_two(in[0], in[1], out) : add_four(in[0], in[1], in[2], in[3], out);
    times.push_back(microseconds(Clock::now() - start) / calls_per_sample);
  }
  return median(times);
}

}  // namespace

int main() {
  struct Size {
    const char* name;
    std::int64_t bytes;
    int samples, calls_per_sample;
  };
  const Size sizes[] = {{"4 KiB", 4 << 10, 201, 100},
                        {"64 KiB", 64 << 10, 201, 50},
                        {"1 MiB", 1 << 20, 201, 5},
                        {"2.7 MB", 2'700'000, 201, 2},
                        {"64 MiB", 64 << 20, 21, 1}};
  std::printf("%-6s %-8s %12s %16s\n", "ranks", "bytes", "group (us)", "one thread (us)");
  for (const int ranks : {2, 4})
    for (const Size& size : sizes) {
      Workload work(ranks, size.bytes / 4);
      const double group = time_group(ranks, work, size.samples, size.calls_per_sample);
      const double alone = time_alone(work, size.samples, size.calls_per_sample);
      std::printf("%-6d %-8s %12.2f %16.2f\n", ranks, size.name, group, alone);
      std::fflush(stdout);
    }
}
