// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/sgd.h>

#include <array>
#include <utility>

namespace lockstep::optim {
namespace {

SgdOptions checked(const SGDOptions& options, SourceLocation at) {
  require(options.momentum >= 0 && options.momentum < 1, at, "SGD",
          "expected a momentum of 0 or more and below 1, got ", options.momentum);
  require(!options.nesterov || options.momentum > 0, at, "SGD",
          "nesterov needs a momentum above 0");
  require(options.weight_decay >= 0, at, "SGD", "expected a weight decay of 0 or more, got ",
          options.weight_decay);
  return {.momentum = options.momentum,
          .nesterov = options.nesterov,
          .weight_decay = options.weight_decay};
}

// Values of variables as the op's state, the velocity only with momentum; they go back when this
// dies, even if the op throws.
template <std::size_t n>
class State {
 public:
  explicit State(std::array<Tensor, n>& values) : values_(values) {
    state_.weights = std::move(values[0]);
    if constexpr (n == 2) state_.velocity = std::move(values[1]);
  }
  ~State() {
    values_[0] = std::move(state_.weights);
    if constexpr (n == 2) values_[1] = std::move(state_.velocity);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  SgdState& operator*() { return state_; }

 private:
  std::array<Tensor, n>& values_;
  SgdState state_;
};

std::vector<std::string> slot_names(const SGDOptions& options) {
  return options.momentum > 0 ? std::vector<std::string>{"velocity"} : std::vector<std::string>{};
}

}  // namespace

SGD::SGD(const SGDOptions& options, SourceLocation at)
    : Optimizer(options.learning_rate, options.clip, slot_names(options), at),
      options_(checked(options, at)) {}

void SGD::update(const Update& update) const {
  const auto step = [&]<std::size_t n>(std::array<Tensor, n>& values) {
    State<n> state(values);
    *state = sgd_update(std::move(*state), update.gradient, update.learning_rate, options_,
                        update.gradient_scale);
  };
  if (options_.momentum > 0)
    update_values(std::array{update.variable, update.slots[0]}, step);
  else
    update_values(std::array{update.variable}, step);
}

}  // namespace lockstep::optim
