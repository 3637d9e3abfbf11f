// SPDX-License-Identifier: Apache-2.0
// conv: conv2d() and its two gradients for the shapes that the models' layers have, on one thread,
// against the fused multiply-adds that a core can do.
#include <lockstep/ops/conv.h>

#include <string>

#include "peak.h"
#include "random_data.h"

namespace {

namespace ls = lockstep;

struct Layer {
  std::string name;
  ls::Shape x, w;
  ls::Conv2dOptions options;
};

const Layer kLayers[] = {
    {"LeNet 1", {128, 28, 28, 1}, {3, 3, 1, 32}, {}},
    {"LeNet 2", {128, 13, 13, 32}, {3, 3, 32, 64}, {}},
    {"ResNet stem", {64, 32, 32, 3}, {3, 3, 3, 16}, {.padding = ls::Padding::same}},
    {"ResNet 16", {64, 32, 32, 16}, {3, 3, 16, 16}, {.padding = ls::Padding::same}},
    {"ResNet 16 to 32",
     {64, 32, 32, 16},
     {3, 3, 16, 32},
     {.strides = 2, .padding = ls::Padding::same}},
    {"ResNet 32", {64, 16, 16, 32}, {3, 3, 32, 32}, {.padding = ls::Padding::same}},
    {"ResNet 64", {64, 8, 8, 64}, {3, 3, 64, 64}, {.padding = ls::Padding::same}},
    {"32 x 28 x 28, 64 to 64", {32, 28, 28, 64}, {3, 3, 64, 64}, {.padding = ls::Padding::same}},
};

}  // namespace

int main() {
  for (const auto& [name, x_shape, w_shape, options] : kLayers) {
    const ls::Tensor x = benchmark::random_floats(x_shape, 1, -1, 1);
    const ls::Tensor w = benchmark::random_floats(w_shape, 2, -1, 1);
    const ls::Tensor y = ls::conv2d(x, w, {}, options);
    const ls::Tensor dy = benchmark::random_floats(y.shape(), 3, -1, 1);
    const auto taps = w.num_elements() / w.dim(3);
    const double operations = 2.0 * static_cast<double>(y.num_elements() * taps);
    const auto print = [&](const char* part, const auto& f) {
      benchmark::print_share_of_peak((name + part).c_str(), operations, f);
    };
    print(": forward", [&] { ls::conv2d(x, w, {}, options); });
    print(": weights", [&] { ls::conv2d_weight_gradient(dy, x, w_shape, options); });
    print(": input", [&] { ls::conv2d_input_gradient(dy, w, x_shape, options); });
  }
}
