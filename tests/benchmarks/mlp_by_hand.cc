// SPDX-License-Identifier: Apache-2.0
// The MLP's training step as the kernels that it consists of, called with a hand-written backward
// pass in memory laid out beforehand: no ops, no tape, no variables, no strategy. What
// training_step takes longer is what these cost.
#include <algorithm>
#include <cstdint>

#include "ops/dense_kernels.h"
#include "ops/gemm.h"
#include "ops/softmax_kernels.h"
#include "ops/update_kernels.h"
#include "random_data.h"
#include "window.h"

namespace {

namespace ls = lockstep;
using benchmark::kClasses;
using benchmark::kRows;

// Uninitialized floats, aligned as tensors are.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : count_(count),
        buffer_(ls::Buffer::allocate({}, static_cast<std::size_t>(count) * sizeof(float))) {}
  explicit Floats(const ls::Tensor& values) : Floats(values.num_elements()) {
    std::ranges::copy(values.data<float>(), data());
  }
  float* data() const { return static_cast<float*>(buffer_.data()); }
  std::int64_t count() const { return count_; }

 private:
  std::int64_t count_;
  ls::Buffer buffer_;
};

void multiply(const ls::Gemm& gemm, const Floats& a, const Floats& b, const float* bias,
              const Floats& c) {
  ls::cpu::compute(gemm, ls::DType::f32, {}, a.data(), b.data(), bias, c.data());
}

// x [kRows, in], y [kRows, out], and the gradients of the same shapes.
struct Layer {
  Layer(std::int64_t inputs, std::int64_t outputs, bool with_relu, std::uint32_t seed)
      : in(inputs),
        out(outputs),
        relu(with_relu),
        w(benchmark::random_floats({in, out}, seed, -0.08F, 0.08F)),
        bias(ls::zeros({out})),
        dw(in * out),
        dbias(out),
        y(kRows * out),
        dy(kRows * out),
        dz(kRows * out) {}

  void forward(const Floats& x) const {
    multiply({.m = kRows, .n = out, .k = in, .bias = true, .relu = relu}, x, w, bias.data(), y);
  }
  // Of dy; dx may be null.
  void backward(const Floats& x, const Floats* dx) const {
    const auto& kernel = ls::dense_kernels().f32;
    if (relu)
      kernel.relu_gradient_sums(dy.data(), y.data(), kRows, out, dz.data(), dbias.data());
    else
      kernel.column_sums(dy.data(), kRows, out, dbias.data());
    const Floats& d = relu ? dz : dy;
    multiply({.m = in, .n = out, .k = kRows, .transpose_a = true}, x, d, nullptr, dw);
    if (dx) multiply({.m = kRows, .n = in, .k = out, .transpose_b = true}, d, w, nullptr, *dx);
  }
  static void descend(const Floats& values, const Floats& gradient) {
    constexpr float kScalars[] = {1, 0, 0.01F};  // the gradient's scale, the decay, the rate
    float* const state = values.data();
    ls::f32_update().update[static_cast<int>(ls::UpdateKind::sgd)](&state, gradient.data(),
                                                                   values.count(), kScalars);
  }
  void update() const {
    descend(w, dw);
    descend(bias, dbias);
  }

  std::int64_t in, out;
  bool relu;
  Floats w, bias, dw, dbias, y, dy, dz;
};

class Mlp {
 public:
  std::int64_t parameters() const {
    std::int64_t count = 0;
    for (const Layer* layer : {&first_, &second_, &third_}) count += (layer->in + 1) * layer->out;
    return count;
  }

  float step() {
    first_.forward(x_);
    second_.forward(first_.y);
    third_.forward(second_.y);
    const float loss = cross_entropy();
    third_.backward(second_.y, &second_.dy);
    second_.backward(first_.y, &first_.dy);
    first_.backward(x_, nullptr);
    for (const Layer* layer : {&first_, &second_, &third_}) layer->update();
    return loss;
  }

 private:
  // The mean loss, and its gradient into third_.dy.
  float cross_entropy() {
    const auto& kernel = ls::softmax_kernels().f32;
    const float* logits = third_.y.data();
    kernel.log_sums(logits, kRows, kClasses, max_.data(), log_sum_.data(), softmax_.data(),
                    inverse_.data());
    kernel.cross_entropy_gradient(scale_.data(), softmax_.data(), inverse_.data(), nullptr, kRows,
                                  kClasses, third_.dy.data());
    const auto labels = labels_.data<std::int64_t>();
    float loss = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t at = row * kClasses + labels[static_cast<std::size_t>(row)];
      loss += log_sum_.data()[row] + max_.data()[row] - logits[at];
      third_.dy.data()[at] -= scale_.data()[row];
    }
    return loss / kRows;
  }

  const Floats x_{benchmark::random_floats({kRows, 784}, 1)};
  const ls::Tensor labels_ = benchmark::random_labels(kRows, kClasses, 1);
  const Layer first_{784, 512, true, 2}, second_{512, 512, true, 3},
      third_{512, kClasses, false, 4};
  const Floats max_{kRows}, log_sum_{kRows}, inverse_{kRows}, softmax_{kRows * kClasses};
  const Floats scale_{ls::full({kRows}, 1.0 / kRows)};
};

}  // namespace

int main() {
  Mlp mlp;
  window::answer(window::training("the kernels alone", mlp.parameters()), [&] { mlp.step(); });
}
