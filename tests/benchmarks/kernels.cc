// SPDX-License-Identifier: Apache-2.0
// kernels <gemm512|conv|adam|cross_entropy|layer_norm>: single operations on one thread.
#include <lockstep/lockstep.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "random_data.h"
#include "window.h"

namespace {

namespace ls = lockstep;
using benchmark::random_floats;
using Step = std::function<void()>;

Step gemm512() {
  return [a = random_floats({512, 512}, 1), b = random_floats({512, 512}, 2)] { ls::matmul(a, b); };
}

// Forward and both gradients, from a tape.
Step conv() {
  return [images = random_floats({32, 28, 28, 64}, 1, -0.5F, 0.5F),
          filters = random_floats({3, 3, 64, 64}, 2, -0.5F, 0.5F),
          gradient = random_floats({32, 28, 28, 64}, 3, -0.5F, 0.5F)] {
    ls::GradientTape tape;
    tape.watch(images);
    tape.watch(filters);
    const ls::Tensor y = ls::conv2d(images, filters, {}, {.padding = ls::Padding::same});
    tape.gradient(y, {images, filters}, {.target_gradient = gradient});
  };
}

Step adam() {
  constexpr std::int64_t count = 10'000'000;
  const ls::Variable weights(random_floats({count}, 1));
  const ls::Tensor gradient = random_floats({count}, 2, -0.5F, 0.5F);
  auto optimizer = std::make_shared<ls::optim::Adam>(ls::optim::AdamOptions{.learning_rate = 1e-3});
  return [weights, gradient, optimizer] { optimizer->apply_gradients({gradient}, {weights}); };
}

Step cross_entropy() {
  return [logits = random_floats({128, 1000}, 1, -2, 2),
          labels = benchmark::random_labels(128, 1000, 2)] {
    ls::GradientTape tape;
    tape.watch(logits);
    const ls::Tensor loss = ls::nn::compute_average_loss(
        ls::sparse_softmax_cross_entropy(labels, logits), {.global_batch_size = 128});
    tape.gradient(loss, {logits});
  };
}

// Forward and all gradients, from a tape.
Step layer_norm() {
  return [x = random_floats({2048, 512}, 1, -1, 1), scale = random_floats({512}, 2),
          offset = random_floats({512}, 3), gradient = random_floats({2048, 512}, 4, -1, 1)] {
    ls::GradientTape tape;
    for (const ls::Tensor* input : {&x, &scale, &offset}) tape.watch(*input);
    const ls::Tensor y = ls::layer_norm(x, scale, offset);
    tape.gradient(y, {x, scale, offset}, {.target_gradient = gradient});
  };
}

}  // namespace

int main(int, char** argv) {
  struct Kernel {
    Step (*make)();
    int inner;
  };
  const std::map<std::string, Kernel> kernels = {{"gemm512", {gemm512, 1}},
                                                 {"conv", {conv, 1}},
                                                 {"adam", {adam, 1}},
                                                 {"cross_entropy", {cross_entropy, 20}},
                                                 {"layer_norm", {layer_norm, 5}}};
  const auto& [make, inner] = kernels.at(argv[1]);
  window::answer("lockstep", make(), inner);
}
