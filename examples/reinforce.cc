// SPDX-License-Identifier: Apache-2.0
// A policy learns to balance a pole on a cart by REINFORCE (Williams, 1992): every replica plays its
// own episodes outside of run, and the step learns from all of them.
#include <lockstep/lockstep.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "program.h"
namespace ls = lockstep;

constexpr std::int64_t kMostSteps = 500;  // an episode that gets here is perfect

// The cart and pole of Barto, Sutton and Anderson (1983): push left or right, 50 times a second, and
// keep the pole within 12 degrees and the cart within 2.4 m. SI units, Euler's rule.
class CartPole {
 public:
  explicit CartPole(std::mt19937& random) {
    std::uniform_real_distribution<double> near_zero(-0.05, 0.05);
    for (double& number : state_) number = near_zero(random);
  }

  // Nothing happens to a pole that has fallen.
  void push(bool right) {
    if (!standing_) return;
    constexpr double gravity = 9.8, cart = 1.0, pole = 0.1, half_length = 0.5, seconds = 0.02;
    auto& [x, velocity, angle, turning] = state_;
    const double force = right ? 10 : -10, sine = std::sin(angle), cosine = std::cos(angle);
    const double thrust = (force + pole * half_length * turning * turning * sine) / (cart + pole);
    const double angular = (gravity * sine - cosine * thrust) /
                           (half_length * (4.0 / 3 - pole * cosine * cosine / (cart + pole)));
    const double linear = thrust - pole * half_length * angular * cosine / (cart + pole);
    x += seconds * velocity;
    velocity += seconds * linear;
    angle += seconds * turning;
    turning += seconds * angular;
    standing_ = std::abs(x) <= 2.4 && std::abs(angle) <= 12 * 3.141592653589793 / 180;
  }
  bool standing() const { return standing_; }

  // Position, velocity, angle, angular velocity.
  const std::array<double, 4>& state() const { return state_; }

 private:
  std::array<double, 4> state_;
  bool standing_ = true;
};

// Episodes side by side: states [steps, episodes, 4], the rest [steps, episodes]. `alive` is 1 as long
// as an episode lasts, else 0; returns are the discounted sums of it from each step on.
struct Rollout {
  ls::Tensor states, actions, alive, returns;
};

// Plays until all poles have fallen; `policy` gives the logit of a push to the right.
Rollout play(const ls::nn::Sequential& policy, std::int64_t episodes, std::mt19937& random) {
  std::vector<CartPole> carts;
  while (std::ssize(carts) < episodes) carts.emplace_back(random);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> states, actions, alive;
  const auto n = static_cast<std::size_t>(episodes), most = n * kMostSteps;
  while (alive.size() < most && std::ranges::any_of(carts, &CartPole::standing)) {
    for (const CartPole& cart : carts)
      for (const double number : cart.state()) states.push_back(static_cast<float>(number));
    const auto now = std::span<const float>(states).last(4 * n);
    const auto right = ls::sigmoid(policy(ls::Tensor({episodes, 4}, now))).to_vector<float>();
    for (std::size_t i = 0; i < n; ++i) {
      const bool to_the_right = uniform(random) < right[i];
      actions.push_back(to_the_right);
      alive.push_back(carts[i].standing());
      carts[i].push(to_the_right);
    }
  }
  states.resize(4 * most);
  actions.resize(most);
  alive.resize(most);
  std::vector<float> returns = alive;
  for (std::size_t i = most - n; i-- > 0;) returns[i] += 0.99f * returns[i + n];
  const ls::Shape shape{kMostSteps, episodes};
  return {ls::Tensor({kMostSteps, episodes, 4}, std::span<const float>(states)),
          ls::Tensor(shape, std::span<const float>(actions)),
          ls::Tensor(shape, std::span<const float>(alive)),
          ls::Tensor(shape, std::span<const float>(returns))};
}

struct Training {
  ls::nn::Sequential policy{ls::nn::Dense(4, 32, {.activation = ls::nn::tanh}),
                            ls::nn::Dense(32, 1)};
  ls::optim::Adam optimizer{{.learning_rate = 1e-2}};
  ls::metrics::Mean average_steps;

  ls::Tensor step(const Rollout& rollout) {
    ls::ReplicaContext& replica = *ls::get_replica_context();
    // The baseline of a step is the mean return of all episodes, on all replicas, that reach it.
    const auto over_episodes = [&](const ls::Tensor& x) {
      return replica.all_reduce(ls::ReduceOp::sum, ls::sum(x, {.axes = {1}, .keep_dims = true}));
    };
    const ls::Tensor reached = over_episodes(rollout.alive);
    const ls::Tensor baseline = over_episodes(rollout.returns) / ls::maximum(reached, 1);
    const ls::Tensor advantage = (rollout.returns - baseline) * rollout.alive;
    const ls::Tensor count = ls::maximum(ls::sum(reached), 1);
    const ls::Tensor spread = ls::sqrt(ls::sum(over_episodes(ls::square(advantage))) / count);

    ls::GradientTape tape;
    const ls::Tensor logits = ls::squeeze(policy(rollout.states), {-1});
    const ls::Tensor surprise = ls::nn::sigmoid_cross_entropy(rollout.actions, logits);
    const ls::Tensor loss =
        ls::nn::compute_average_loss(surprise * (advantage / (spread + 1e-6)), {.count = count});
    optimizer.minimize(loss, variables(), tape);
    average_steps.update_state(ls::sum(rollout.alive, {.axes = {0}}));
    return loss;
  }

  std::vector<ls::Variable> variables() const { return policy.trainable_variables(); }
  ls::Tensor metric() const { return average_steps.result(); }
};

// Verify deals what the first axis counts, which is to be the episodes.
Rollout with_axes_swapped(const Rollout& rollout) {
  return {ls::transpose(rollout.states, {1, 0, 2}), ls::transpose(rollout.actions),
          ls::transpose(rollout.alive), ls::transpose(rollout.returns)};
}
struct TrainingByEpisode : Training {
  ls::Tensor step(const Rollout& episodes) { return Training::step(with_axes_swapped(episodes)); }
};

int main(int argc, char** argv) try {
  const examples::Flags flags(
      argc, argv,
      {{"episodes", "16", "played for each update, by all replicas together"},
       {"updates", "200", "updates at most"},
       {"target", "450", "the average number of steps, of 500, at which the task is solved"},
       examples::kDoctor});
  if (flags.given("doctor")) {
    std::mt19937 random(7);
    const Rollout rollout = play(Training().policy, 32, random);
    return examples::doctor([] { return TrainingByEpisode(); },
                            ls::data::from_tensor_slices(with_axes_swapped(rollout)));
  }
  const ls::Strategy strategy = flags.strategy();
  const std::int64_t episodes =
      std::max(flags.number<std::int64_t>("episodes") / strategy.num_replicas_in_sync(),
               std::int64_t{1});  // of each replica

  const auto scope = strategy.scope();
  Training training;
  const auto train_step = [&](const Rollout& rollout) { training.step(rollout); };

  for (int update = 1; update <= flags.number<int>("updates"); ++update) {
    const auto rollouts =
        strategy.distribute_values_from_function([&](const ls::ValueContext& context) {
          std::seed_seq seed{7, update, context.replica_id_in_sync_group};
          std::mt19937 own(seed);
          return play(training.policy, episodes, own);
        });
    training.average_steps.reset_state();
    strategy.run(train_step, rollouts);
    const double steps = training.average_steps.result().item<double>();
    const bool solved = steps >= flags.number<double>("target");
    if (solved || update % 10 == 0)
      examples::print(strategy, "update %d: %.1f steps on average%s\n", update, steps,
                      solved ? ", solved" : "");
    if (solved) return 0;
  }
  examples::print(strategy, "not solved\n");
  return 1;
} catch (const std::exception& error) {
  return examples::failed(error);
}
