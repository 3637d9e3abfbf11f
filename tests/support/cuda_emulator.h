// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the kernels of .cuh files on the CPU: included before them, it gives the few words of CUDA that
// they use a meaning. Every thread of a block is a fiber, one block runs after the other. Between two
// barriers the threads run in an order drawn from a seed, each until the next barrier, and shared
// memory starts as NaN: so a missing barrier, a wrong index or a wrong tail gives wrong numbers, and
// under AddressSanitizer an access out of range a report.
#include <math.h>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace lockstep::emulator {

struct Dim {
  unsigned x = 0;
};
inline Dim thread_index, block_index, block_dim, grid_dim;

// The block that is running.
class Block {
 public:
  Block(unsigned threads, std::mt19937& order, const std::function<void()>& body)
      : order_(order), body_(body), fibers_(threads) {}

  void run() {
    current_block = this;
    for (std::size_t i = 0; i < fibers_.size(); ++i) start(fibers_[i]);
    while (true) {
      std::vector<std::size_t> waiting;
      for (std::size_t i = 0; i < fibers_.size(); ++i)
        if (!fibers_[i].done) waiting.push_back(i);
      if (waiting.empty()) return;
      if (waiting.size() != fibers_.size())
        throw std::logic_error("a barrier that not all threads of the block reach");
      std::shuffle(waiting.begin(), waiting.end(), order_);
      for (const std::size_t i : waiting) resume(i);
    }
  }

  static void barrier() {
    Block& block = *current_block;
    Fiber& self = block.fibers_[thread_index.x];
    swapcontext(&self.context, &block.scheduler_);
  }

  // Memory that the block's threads share, by the place that declares it.
  template <class T>
  static T* shared(const void* place, std::size_t count) {
    auto& bytes = current_block->shared_[place];
    if (!bytes) {
      bytes = std::make_unique<std::byte[]>(count * sizeof(T));
      std::memset(bytes.get(), 0xFF, count * sizeof(T));
    }
    return reinterpret_cast<T*>(bytes.get());
  }

 private:
  struct Fiber {
    ucontext_t context;
    std::vector<std::byte> stack = std::vector<std::byte>(64 << 10);
    bool done = false;
  };

  static void enter() {
    current_block->body_();
    current_block->fibers_[thread_index.x].done = true;
  }
  void start(Fiber& fiber) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = &scheduler_;
    makecontext(&fiber.context, enter, 0);
  }
  void resume(std::size_t i) {
    thread_index.x = static_cast<unsigned>(i);
    swapcontext(&scheduler_, &fibers_[i].context);
  }

  static inline Block* current_block = nullptr;
  std::mt19937& order_;
  const std::function<void()>& body_;
  ucontext_t scheduler_;
  std::vector<Fiber> fibers_;
  std::map<const void*, std::unique_ptr<std::byte[]>> shared_;
};

// kernel<<<blocks, threads>>>(arguments...)
template <class... Parameters, class... Arguments>
void run(void (*kernel)(Parameters...), int blocks, int threads, unsigned seed,
         Arguments... arguments) {
  const std::tuple<Parameters...> all(static_cast<Parameters>(arguments)...);
  const std::function<void()> body = [&] { std::apply(kernel, all); };
  std::mt19937 order(seed);
  grid_dim.x = static_cast<unsigned>(blocks);
  block_dim.x = static_cast<unsigned>(threads);
  for (block_index.x = 0; block_index.x < grid_dim.x; ++block_index.x)
    Block(block_dim.x, order, body).run();
}

}  // namespace lockstep::emulator

#define __global__
#define __device__
#define __host__
#define threadIdx ::lockstep::emulator::thread_index
#define blockIdx ::lockstep::emulator::block_index
#define blockDim ::lockstep::emulator::block_dim
#define gridDim ::lockstep::emulator::grid_dim
#define LOCKSTEP_CUDA_BLOCK 32
#define LOCKSTEP_SHARED(type, name, count) \
  static const char name##_place = 0;      \
  type* const name = ::lockstep::emulator::Block::shared<type>(&name##_place, count)
inline void __syncthreads() { lockstep::emulator::Block::barrier(); }
