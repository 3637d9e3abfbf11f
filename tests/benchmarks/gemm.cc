// SPDX-License-Identifier: Apache-2.0
// gemm: matmul() of the shapes that the models' layers have, forward and backward, on one thread,
// against the fused multiply-adds that a core can do.
#include <lockstep/ops/matmul.h>

#include "peak.h"
#include "random_data.h"

namespace {

namespace ls = lockstep;

struct Product {
  const char* name;
  ls::Shape a, b;
  ls::MatmulOptions options;
};

const Product kProducts[] = {
    {"512 x 512 x 512", {512, 512}, {512, 512}, {}},
    {"MLP forward 128 x 784 x 512", {128, 784}, {784, 512}, {}},
    {"MLP weights 784 x 128 x 512", {128, 784}, {128, 512}, {.transpose_a = true}},
    {"MLP input 128 x 512 x 512", {128, 512}, {512, 512}, {.transpose_b = true}},
    {"MLP logits 128 x 512 x 10", {128, 512}, {512, 10}, {}},
    {"GPT forward 2048 x 128 x 384", {2048, 128}, {128, 384}, {}},
    {"GPT weights 128 x 2048 x 384", {2048, 128}, {2048, 384}, {.transpose_a = true}},
    {"GPT input 2048 x 384 x 128", {2048, 384}, {128, 384}, {.transpose_b = true}},
    {"attention 128 x (64 x 32 x 64)", {128, 64, 32}, {128, 64, 32}, {.transpose_b = true}},
    {"attention 128 x (64 x 64 x 32)", {128, 64, 64}, {128, 64, 32}, {}},
    {"2048 x 2048 x 2048", {2048, 2048}, {2048, 2048}, {}},
};

}  // namespace

int main() {
  for (const auto& [name, a_shape, b_shape, options] : kProducts) {
    const ls::Tensor a = benchmark::random_floats(a_shape, 1, -1, 1);
    const ls::Tensor b = benchmark::random_floats(b_shape, 2, -1, 1);
    const auto columns = b.dim(options.transpose_b ? -2 : -1);
    const double operations = 2.0 * static_cast<double>(a.num_elements() * columns);
    benchmark::print_share_of_peak(name, operations, [&] { ls::matmul(a, b, options); });
  }
}
