// SPDX-License-Identifier: Apache-2.0
// Time and bus bandwidth of an all-reduce (f32, sum, in place) between processes of this machine, by
// gRPC: submit and wait, median of rank 0's calls; CPU time of all ranks. Bus bandwidth is what a
// rank sends, 2 (n - 1) / n of the bytes, over the time. Every sum is checked.
#include <lockstep/comm/grpc.h>
#include <lockstep/device/buffer.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ls = lockstep;
using Clock = std::chrono::steady_clock;

namespace {

struct Size {
  const char* name;
  std::int64_t bytes;
  int calls;
};
constexpr Size kSizes[] = {{"4 KiB", 4 << 10, 1001},
                           {"64 KiB", 64 << 10, 501},
                           {"1 MiB", 1 << 20, 201},
                           {"16 MiB", 16 << 20, 41},
                           {"64 MiB", 64 << 20, 21}};

double cpu_milliseconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

void measure(ls::Communicator& comm, const Size& size) {
  const ls::Buffer buffer = ls::Buffer::allocate({}, static_cast<std::size_t>(size.bytes));
  const std::span<float> values(static_cast<float*>(buffer.data()),
                                static_cast<std::size_t>(size.bytes) / sizeof(float));
  std::vector<double> times;
  double cpu = 0;
  for (int call = -2; call < size.calls; ++call) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17);
    comm.barrier({.channel = ls::Channel::control, .sequence = call}).wait();
    const double cpu_before = cpu_milliseconds();
    const auto start = Clock::now();
    comm.all_reduce({.channel = ls::Channel::gradients, .name = "bucket"}, ls::ReduceOp::sum,
                    ls::elements(values), ls::elements(values))
        .wait();
    if (call >= 0) {
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      cpu += (cpu_milliseconds() - cpu_before) / size.calls;
    }
    for (std::size_t i = 0; i < values.size(); i += 101)
      if (values[i] != static_cast<float>(comm.size()) * static_cast<float>(i % 17)) std::abort();
  }
  std::ranges::nth_element(times, times.begin() + size.calls / 2);
  const double median = times[times.size() / 2];
  const double wire = 2.0 * (comm.size() - 1) / comm.size() * static_cast<double>(size.bytes);
  comm.all_reduce({.channel = ls::Channel::control}, ls::ReduceOp::sum, {&cpu, 1, ls::DType::f64},
                  {&cpu, 1, ls::DType::f64})
      .wait();
  if (comm.rank() == 0)
    std::printf("%-9d %-8s %12.1f %14.3f %14.3f\n", comm.size(), size.name, median,
                wire / median / 1e3, cpu);
  std::fflush(stdout);
}

void run_rank(int rank, const std::vector<std::string>& addresses) {
  ls::GrpcGroup group({.rank = rank, .addresses = addresses});
  for (const Size& size : kSizes) measure(group.communicator(), size);
}

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 23400;
  std::printf("%-9s %-8s %12s %14s %14s\n", "processes", "bytes", "time (us)", "busbw (GB/s)",
              "CPU of all (ms)");
  std::fflush(stdout);
  for (const int ranks : {2, 4}) {
    std::vector<std::string> addresses;
    for (int rank = 0; rank < ranks; ++rank)
      addresses.push_back("127.0.0.1:" + std::to_string(port + rank));
    for (int rank = 0; rank < ranks; ++rank)
      if (::fork() == 0) {  // before any use of gRPC in this process
        run_rank(rank, addresses);
        std::_Exit(0);
      }
    for (int status = 0; ::wait(&status) > 0;)
      if (status != 0) return 1;
  }
}
