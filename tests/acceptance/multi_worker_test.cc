// SPDX-License-Identifier: Apache-2.0
// Workers as processes: what MultiWorkerMirroredStrategy promises beside its communicator, whose own
// tests are in comm/.
#include <gmock/gmock.h>
#include <lockstep/lockstep.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.h"
#include "support/ports.h"
#include "support/sanitizers.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using lockstep::testing::ChildProcess;
using lockstep::testing::free_addresses;
using lockstep::testing::Listener;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Digit {
  Tensor image, label;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}
int number(const char* name) { return std::atoi(variable(name).c_str()); }

std::vector<std::string> devices() {
  std::vector<std::string> names;
  for (int i = 0; i < number("TEST_REPLICAS"); ++i) names.push_back("CPU:" + std::to_string(i));
  return names;
}

Strategy make() {
  if (variable("TF_CONFIG").empty()) return MirroredStrategy({.devices = devices()});
  const auto seconds = [](const char* name, int otherwise) {
    return std::chrono::seconds(number(name) ? number(name) : otherwise);
  };
  return MultiWorkerMirroredStrategy({.devices = devices(),
                                      .communication = {.timeout = seconds("TEST_TIMEOUT", 120)},
                                      .seed = static_cast<std::uint64_t>(number("TEST_SEED")),
                                      .startup_timeout = seconds("TEST_STARTUP_TIMEOUT", 60)});
}

// FNV-1a over all components, which must be equal.
std::uint64_t hash_of(std::span<const Variable> variables) {
  lockstep::testing::require_equal_replicas(variables);
  std::uint64_t hash = 14695981039346656037u;
  for (const Variable& v : variables) {
    const Tensor value = v.local_values()[0];
    const auto* const bytes = static_cast<const unsigned char*>(value.raw_data());
    for (std::size_t i = 0; i < value.bytes(); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  }
  return hash;
}

// What a worker does; scenarios by name.
void train_digits(const Strategy& strategy) {
  const auto train = strategy.distribute_dataset(
      data::digits<Digit>("train").shuffle({.seed = 7}).repeat().batch(128).prefetch(2));
  const auto test = strategy.distribute_dataset(data::digits<Digit>("test").batch(128));
  const auto scope = strategy.scope();
  const nn::Sequential model{nn::Dense(64, 128, {.activation = nn::relu}), nn::Dense(128, 10)};
  optim::Adam optimizer({.learning_rate = 1e-2});
  metrics::SparseCategoricalAccuracy accuracy;
  const auto train_step = [&](const Digit& batch) {
    GradientTape tape;
    const Tensor loss =
        nn::compute_average_loss(nn::sparse_softmax_cross_entropy(batch.label, model(batch.image)));
    optimizer.minimize(loss, model.trainable_variables(), tape);
  };
  auto batches = train.iterator();
  for (int step = 0; step < 200; ++step) strategy.run(train_step, *batches.next());
  for (const auto& batch : test)
    strategy.run([&](const Digit& b) { accuracy.update_state(b.label, model(b.image)); }, batch);
  std::printf("accuracy %.4f weights %016llx\n", accuracy.result().item<double>(),
              static_cast<unsigned long long>(hash_of(model.trainable_variables())));
}

void train_large(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const nn::Sequential model{nn::Dense(4096, 4096)};  // 64 MiB
  optim::SGD optimizer({.learning_rate = 1e-3});
  auto walk =
      strategy
          .distribute_dataset(
              data::from_tensor_slices(uniform({8, 4096}, -1, 1, DType::f32)).repeat().batch(8))
          .iterator();
  for (int step = 0; step < 20; ++step)
    strategy.run(
        [&](const Tensor& x) {
          GradientTape tape;
          const Tensor y = model(x);
          optimizer.minimize(nn::compute_average_loss(mean(y * y, {.axes = {1}})),
                             model.trainable_variables(), tape);
        },
        *walk.next());
  std::printf("weights %016llx\n",
              static_cast<unsigned long long>(hash_of(model.trainable_variables())));
}

// Two steps; the second one's gradient is infinite on replica 2.
void overflow(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const nn::Dense layer(4, 3);
  optim::Adam adam({.learning_rate = 0.1});
  optim::LossScaleOptimizer optimizer(adam);
  std::uint64_t hashes[2] = {};
  for (std::uint64_t& hash : hashes) {
    const bool second = &hash == &hashes[1];
    strategy.run([&] {
      const bool faulty = second && get_replica_context()->replica_index() == 2;
      GradientTape tape;
      const Tensor loss = sum(square(layer(ones({2, 4})) - 1.0f)) *
                          (faulty ? std::numeric_limits<double>::infinity() : 1.0);
      optimizer.minimize(loss, layer.trainable_variables(), tape);
    });
    std::vector<Variable> state = layer.variables();
    for (const Variable& variable : layer.variables())
      for (const char* slot : {"m", "v"}) state.push_back(adam.slot(variable, slot));
    hash = hash_of(state);
  }
  lockstep::testing::require_equal_replicas(std::vector{optimizer.scale()});
  std::printf("weights %016llx %s, scale %g, %d updates, %d skipped\n",
              static_cast<unsigned long long>(hashes[1]),
              hashes[0] == hashes[1] ? "unchanged" : "changed",
              optimizer.scale().read().item<double>(), optimizer.iterations().read().item<int>(),
              optimizer.skipped_steps().read().item<int>());
}

void draw(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const Variable weights(normal({1000}));
  std::printf("weights %016llx\n",
              static_cast<unsigned long long>(hash_of(std::span(&weights, 1))));
}

void reduce_all(const Strategy& strategy, int steps) {
  for (int step = 1; step <= steps; ++step) {
    if (strategy.workers().rank() == 1 && step == number("TEST_SLEEP_BEFORE"))
      std::this_thread::sleep_for(60s);
    strategy.run([] { get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f)); });
    if (step == 10) std::puts("step 10"), std::fflush(stdout);
    std::this_thread::sleep_for(10ms);
  }
}

void reduce_unequal(const Strategy& strategy) {
  const std::int64_t count = strategy.workers().is_chief() ? 10 : 12;
  strategy.run([&] { get_replica_context()->all_reduce(ReduceOp::sum, zeros({count})); });
}

void meet(const Strategy& strategy, const std::string& how) {
  if (strategy.workers().rank() == 1) std::this_thread::sleep_for(60s);
  if (how == "barrier") strategy.workers().barrier("saved");
  if (how == "broadcast") strategy.workers().broadcast("name", {}, 1);
}

void play(const std::string& scenario, const Strategy& strategy) {
  if (scenario == "digits") return train_digits(strategy);
  if (scenario == "large") return train_large(strategy);
  if (scenario == "overflow") return overflow(strategy);
  if (scenario == "draw") return draw(strategy);
  if (scenario == "steps") return reduce_all(strategy, 1'000'000);
  if (scenario == "few steps") return reduce_all(strategy, 5);
  if (scenario == "unequal") return reduce_unequal(strategy);
  if (scenario == "barrier" || scenario == "broadcast") return meet(strategy, scenario);
  if (scenario.starts_with("roles"))
    std::printf("rank %d of %d%s, %d replicas\n", strategy.workers().rank(),
                strategy.workers().size(), strategy.workers().is_chief() ? ", chief" : "",
                strategy.num_replicas_in_sync());
  if (scenario == "roles and few steps") reduce_all(strategy, 5);
}

const char* kind_of(const std::exception& error) {
  if (dynamic_cast<const PeerError*>(&error)) return "PeerError";
  if (dynamic_cast<const DeadlineExceeded*>(&error)) return "DeadlineExceeded";
  if (dynamic_cast<const Unavailable*>(&error)) return "Unavailable";
  if (dynamic_cast<const InvalidArgument*>(&error)) return "InvalidArgument";
  return "another error";
}

std::string json_list(const std::vector<std::string>& addresses) {
  std::string list;
  for (const std::string& address : addresses)
    list += (list.empty() ? "\"" : ", \"") + address + '"';
  return '[' + list + ']';
}
std::string tf_config(const std::string& cluster, const std::string& type, int index) {
  return R"({"cluster": {)" + cluster + R"(}, "task": {"type": ")" + type + R"(", "index": )" +
         std::to_string(index) + "}}";
}

using Environment = std::map<std::string, std::string>;

std::unique_ptr<ChildProcess> start(const std::string& scenario, Environment environment) {
  environment["TEST_SCENARIO"] = scenario;
  environment.try_emplace("TEST_REPLICAS", "1");
  environment.try_emplace("TF_CONFIG", "");
  return std::make_unique<ChildProcess>("Workers.DISABLED_Main", environment);
}

// `workers` processes that play the scenario.
struct Workers {
  Workers(const std::string& scenario, int workers, const Environment& environment = {})
      : addresses(free_addresses(workers)) {
    for (int i = 0; i < workers; ++i) {
      Environment own = environment;
      own["TF_CONFIG"] = tf_config("\"worker\": " + json_list(addresses), "worker", i);
      all.push_back(start(scenario, own));
    }
  }
  ChildProcess& operator[](std::size_t i) { return *all[i]; }

  std::vector<std::string> addresses;
  std::vector<std::unique_ptr<ChildProcess>> all;
};

std::string line_with(const std::string& text, const std::string& output) {
  const std::size_t at = output.find(text);
  return at == std::string::npos ? "" : output.substr(at, output.find('\n', at) - at);
}

// The line that every process of a topology ends with.
std::string trained(const std::string& scenario, int workers, int replicas) {
  const Environment environment{{"TEST_REPLICAS", std::to_string(replicas)}};
  std::vector<std::unique_ptr<ChildProcess>> all;
  if (workers == 1)
    all.push_back(start(scenario, environment));
  else
    all = std::move(Workers(scenario, workers, environment).all);
  std::string last;
  for (const auto& process : all) {
    EXPECT_EQ(process->wait(200s), 0) << process->output();
    const std::string line =
        line_with(scenario == "digits" ? "accuracy" : "weights", process->output());
    EXPECT_FALSE(line.empty()) << process->output();
    if (!last.empty()) {
      EXPECT_EQ(line, last);
    }
    last = line;
  }
  return last;
}

}  // namespace

TEST(Workers, DISABLED_Main) {
  int code = 0;
  try {
    const Strategy strategy = make();
    std::puts("up");
    std::fflush(stdout);
    play(variable("TEST_SCENARIO"), strategy);
    std::puts("done");
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", kind_of(error), error.what());
    code = 3;
  }
  std::fflush(stdout);
  std::_Exit(code);
}

TEST(Workers, TrainDigitsToTheSameBitsInEveryTopology) {
  const std::string one = trained("digits", 1, 4);
  EXPECT_GE(std::atof(one.c_str() + sizeof "accuracy"), 0.97) << one;
  EXPECT_EQ(trained("digits", 2, 2), one);
  EXPECT_EQ(trained("digits", 4, 1), one);
}

TEST(Workers, TrainALargeModelToTheSameBitsInEveryTopology) {
  if (lockstep::testing::kSanitized)
    GTEST_SKIP() << "4096 x 4096 weights take too long under sanitizers";
  const std::string one = trained("large", 1, 4);
  EXPECT_EQ(trained("large", 2, 2), one);
  EXPECT_EQ(trained("large", 4, 1), one);
}

TEST(Workers, S12_SameStartEverywhere) {
  const std::vector<std::string> addresses = free_addresses(2);
  const std::string cluster = "\"worker\": " + json_list(addresses);
  const auto first =
      start("draw", {{"TF_CONFIG", tf_config(cluster, "worker", 0)}, {"TEST_SEED", "1"}});
  const auto second =
      start("draw", {{"TF_CONFIG", tf_config(cluster, "worker", 1)}, {"TEST_SEED", "2"}});
  const auto alone = start("draw", {{"TF_CONFIG", "{}"}, {"TEST_SEED", "1"}});
  const auto other = start("draw", {{"TF_CONFIG", "{}"}, {"TEST_SEED", "2"}});
  std::vector<std::string> weights;
  for (const auto& process : {&first, &second, &alone, &other}) {
    EXPECT_EQ((*process)->wait(20s), 0) << (*process)->output();
    weights.push_back(line_with("weights", (*process)->output()));
  }
  EXPECT_EQ(weights[0], weights[2]);
  EXPECT_EQ(weights[1], weights[2]);
  EXPECT_NE(weights[3], weights[2]);
}

TEST(Workers, S41_OverflowOnOneReplicaOfTwoWorkers) {
  const std::string two = trained("overflow", 2, 2);
  EXPECT_THAT(two, ::testing::EndsWith("unchanged, scale 16384, 1 updates, 1 skipped"));
  EXPECT_EQ(trained("overflow", 1, 4), two);
}

TEST(Workers, S14_MissingPeer) {
  const std::vector<std::string> addresses = free_addresses(2);
  const auto config = [&](int index) {
    return tf_config("\"worker\": " + json_list(addresses), "worker", index);
  };
  const auto first = start("roles", {{"TF_CONFIG", config(0)}, {"TEST_STARTUP_TIMEOUT", "10"}});
  EXPECT_TRUE(first->says("worker 1", 6s)) << first->output();  // who is missing, on the way
  EXPECT_EQ(first->wait(15s), 3);
  EXPECT_THAT(first->output(),
              AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("worker 1"), HasSubstr(addresses[1])));
}

TEST(Workers, S14_LatePeer) {
  const std::vector<std::string> addresses = free_addresses(2);
  const auto config = [&](int index) {
    return tf_config("\"worker\": " + json_list(addresses), "worker", index);
  };
  const auto first = start("roles", {{"TF_CONFIG", config(0)}, {"TEST_STARTUP_TIMEOUT", "20"}});
  std::this_thread::sleep_for(6s);
  const auto second = start("roles", {{"TF_CONFIG", config(1)}});
  EXPECT_EQ(first->wait(15s), 0) << first->output();
  EXPECT_EQ(second->wait(15s), 0) << second->output();
}

TEST(Workers, S15_MismatchedCollective) {
  Workers workers("unequal", 2);
  for (const auto& worker : workers.all) {
    EXPECT_EQ(worker->wait(10s), 3);
    EXPECT_THAT(worker->output(), AllOf(HasSubstr("PeerError"), HasSubstr("all_reduce of [10]"),
                                        HasSubstr("all_reduce of [12]")));
  }
}

TEST(Workers, S21_ChiefRules) {
  const std::vector<std::string> addresses = free_addresses(2);
  const std::string chief = "\"chief\": " + json_list({addresses[0]});
  const std::string worker = "\"worker\": " + json_list({addresses[1]});
  const auto first = start("roles", {{"TF_CONFIG", tf_config(chief + ", " + worker, "chief", 0)}});
  const auto second =
      start("roles", {{"TF_CONFIG", tf_config(chief + ", " + worker, "worker", 0)}});
  EXPECT_EQ(first->wait(20s), 0);
  EXPECT_EQ(second->wait(20s), 0);
  EXPECT_THAT(first->output(), HasSubstr("rank 0 of 2, chief, 2 replicas"));
  EXPECT_THAT(second->output(), HasSubstr("rank 1 of 2, 2 replicas"));

  Workers without_chief("roles", 2);
  EXPECT_EQ(without_chief[0].wait(20s), 0);
  EXPECT_EQ(without_chief[1].wait(20s), 0);
  EXPECT_THAT(without_chief[0].output(), HasSubstr("rank 0 of 2, chief"));
  EXPECT_THAT(without_chief[1].output(), HasSubstr("rank 1 of 2, 2"));

  const std::string workers = "\"worker\": " + json_list(addresses);
  const auto no_chief = start("roles", {{"TF_CONFIG", tf_config(workers, "chief", 0)}});
  EXPECT_EQ(no_chief->wait(2s), 3);
  EXPECT_THAT(no_chief->output(),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("chief"), HasSubstr("worker")));
  const auto too_far = start("roles", {{"TF_CONFIG", tf_config(workers, "worker", 2)}});
  EXPECT_EQ(too_far->wait(2s), 3);
  EXPECT_THAT(too_far->output(), AllOf(HasSubstr("InvalidArgument"), HasSubstr("worker 2"),
                                       HasSubstr("index 0 to 1")));
}

TEST(Workers, S22_AnEvaluatorIsOnItsOwn) {
  for (const bool listed : {false, true}) {
    const std::vector<std::string> addresses = free_addresses(3);
    std::string cluster = "\"worker\": " + json_list({addresses[0], addresses[1]});
    if (listed) cluster += ", \"evaluator\": " + json_list({addresses[2]});
    const auto of_task = [&](const char* scenario, const char* type, int index) {
      return start(scenario, {{"TF_CONFIG", tf_config(cluster, type, index)}});
    };
    const auto first = of_task("few steps", "worker", 0);
    const auto killed = of_task("steps", "evaluator", 0);
    EXPECT_TRUE(killed->says("up", 20s)) << killed->output();
    killed->signal(SIGKILL);
    const auto evaluator = of_task("roles", "evaluator", 0);
    EXPECT_EQ(evaluator->wait(20s), 0) << evaluator->output();
    EXPECT_THAT(evaluator->output(), HasSubstr("rank 0 of 1, chief, 1 replicas"));
    const auto second = of_task("roles and few steps", "worker", 1);
    EXPECT_EQ(first->wait(20s), 0) << first->output();
    EXPECT_EQ(second->wait(20s), 0) << second->output();
    EXPECT_THAT(second->output(), HasSubstr("rank 1 of 2, 2 replicas"));
  }
}

TEST(Workers, S23_PortTaken) {
  const Listener taken;
  const std::string cluster = "\"worker\": " + json_list({taken.address(), free_addresses(1)[0]});
  const auto worker = start("roles", {{"TF_CONFIG", tf_config(cluster, "worker", 0)}});
  EXPECT_EQ(worker->wait(5s), 3);
  EXPECT_THAT(worker->output(),
              AllOf(HasSubstr("Unavailable"), HasSubstr(taken.address()), HasSubstr("in use")));
}

TEST(Workers, S23_RestartOnOnePort) {
  const std::vector<std::string> addresses = free_addresses(2);
  const std::string cluster = "\"worker\": " + json_list(addresses);
  for (int round = 0; round < 20; ++round) {
    const auto first = start("few steps", {{"TF_CONFIG", tf_config(cluster, "worker", 0)}});
    const auto second = start("few steps", {{"TF_CONFIG", tf_config(cluster, "worker", 1)}});
    ASSERT_EQ(first->wait(20s), 0) << "round " << round << ": " << first->output();
    ASSERT_EQ(second->wait(20s), 0) << "round " << round << ": " << second->output();
  }
}

TEST(Workers, S24_Deadlines) {
  for (const char* const scenario : {"few steps", "barrier", "broadcast"}) {
    Workers workers(scenario, 2, {{"TEST_TIMEOUT", "5"}, {"TEST_SLEEP_BEFORE", "3"}});
    ASSERT_TRUE(workers[0].says("up", 30s)) << workers[0].output();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(workers[0].wait(12s), 3) << workers[0].output();
    const auto waited = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(waited, 4900ms);  // 5 s from a moment before
    EXPECT_LE(waited, 10s);
    EXPECT_THAT(workers[0].output(), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("worker 1")));
    if (scenario == std::string("few steps")) {
      EXPECT_THAT(workers[0].output(), AllOf(HasSubstr("step 3"), HasSubstr("all_reduce")));
    }
  }
}

TEST(Workers, AKilledWorkerIsNamedByTheOthers) {
  Workers workers("steps", 3);
  ASSERT_TRUE(workers[0].says("step 10", 60s)) << workers[0].output();
  workers[2].signal(SIGKILL);
  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(workers[i].wait(15s), 3) << workers[i].output();
    EXPECT_THAT(workers[i].output(), AllOf(HasSubstr("PeerError"), HasSubstr("worker 2"),
                                           HasSubstr(workers.addresses[2])));
  }
}

TEST(Workers, WithoutAClusterOneTrainsAlone) {
  const auto alone = start("roles", {{"TF_CONFIG", "{}"}, {"TEST_REPLICAS", "2"}});
  EXPECT_EQ(alone->wait(20s), 0) << alone->output();
  EXPECT_THAT(alone->output(), HasSubstr("rank 0 of 1, chief, 2 replicas"));
}

TEST(Workers, MustAgreeInTheirOptions) {
  const std::vector<std::string> addresses = free_addresses(2);
  const std::string cluster = "\"worker\": " + json_list(addresses);
  const auto first = start("roles", {{"TF_CONFIG", tf_config(cluster, "worker", 0)}});
  const auto second =
      start("roles", {{"TF_CONFIG", tf_config(cluster, "worker", 1)}, {"TEST_REPLICAS", "2"}});
  for (ChildProcess* const worker : {first.get(), second.get()}) {
    EXPECT_EQ(worker->wait(20s), 3) << worker->output();
    EXPECT_THAT(worker->output(), AllOf(HasSubstr("PeerError"), HasSubstr("1 replicas each"),
                                        HasSubstr("2 replicas each")));
  }
}

}  // namespace lockstep
