// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/adam.h>

#include <array>
#include <utility>

namespace lockstep::optim {
namespace {

lockstep::AdamOptions checked(const AdamOptions& options, SourceLocation at) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  require(is_beta(options.beta_1) && is_beta(options.beta_2), at, "Adam",
          "expected betas of 0 or more and below 1, got ", options.beta_1, " and ", options.beta_2);
  require(options.epsilon >= 0 && options.weight_decay >= 0, at, "Adam",
          "expected an epsilon and a weight decay of 0 or more, got ", options.epsilon, " and ",
          options.weight_decay);
  return {.beta1 = options.beta_1,
          .beta2 = options.beta_2,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay};
}

// Values of variables as the op's state; they go back when this dies, even if the op throws.
class State {
 public:
  explicit State(std::array<Tensor, 3>& values)
      : values_(values), state_{std::move(values[0]), std::move(values[1]), std::move(values[2])} {}
  ~State() {
    values_ = {std::move(state_.weights), std::move(state_.first), std::move(state_.second)};
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  AdamState& operator*() { return state_; }

 private:
  std::array<Tensor, 3>& values_;
  AdamState state_;
};

}  // namespace

Adam::Adam(const AdamOptions& options, SourceLocation at)
    : Optimizer(options.learning_rate, options.clip, {"m", "v"}, at),
      options_(checked(options, at)) {}

void Adam::update(const Update& update) const {
  update_values(std::array{update.variable, update.slots[0], update.slots[1]}, [&](auto& values) {
    State state(values);
    *state = adam_update(std::move(*state), update.gradient, update.learning_rate, update.step,
                         options_, update.gradient_scale);
  });
}

}  // namespace lockstep::optim
