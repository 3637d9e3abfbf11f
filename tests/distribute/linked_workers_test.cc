// SPDX-License-Identifier: Apache-2.0
// Several workers as threads of one process, linked by an in-process group: what a multi-worker
// strategy does beside its transport.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/autodiff/tape.h>
#include <lockstep/comm/in_process.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/metrics.h>
#include <lockstep/nn.h>
#include <lockstep/ops.h>
#include <lockstep/optim.h>
#include <lockstep/tensor/factory.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "distribute/local_replicas.h"
#include "support/errors.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

using testing::cpus;
using ::testing::ElementsAre;
using testing::throws;

// Runs main(strategy) on `workers` workers of `replicas` replicas each.
void train(int workers, int replicas, const std::function<void(const Strategy&)>& main,
           ReplicaThreads threads = ReplicaThreads::concurrent) {
  InProcessGroup between(workers, {.collective_timeout = std::chrono::seconds(30)});
  std::vector<std::thread> processes;
  for (int worker = 0; worker < workers; ++worker)
    processes.emplace_back([&, worker] {
      std::vector<Device> devices;
      for (const std::string& name : cpus(replicas)) devices.push_back(parse_device(name));
      main(Strategy(std::make_shared<LocalReplicas>(LocalReplicas::Options{
          .name = "linked",
          .devices = devices,
          .replica_threads = threads,
          .communication = {.timeout = std::chrono::seconds(30)},
          .link = {
              .owner = nullptr, .communicator = &between.rank(worker), .next_epoch = [] {}}})));
    });
  for (std::thread& process : processes) process.join();
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto data = tensor.data<float>();
  return {data.begin(), data.end()};
}

TEST(LinkedWorkers, SumRowsOfTablesLikeOneWorkerDoes) {
  constexpr std::int64_t kRows = 8192, kWidth = 16;
  const Tensor start = reshape(linspace(-1, 1, kRows * kWidth), {kRows, kWidth});
  std::mutex mutex;
  std::vector<std::vector<float>> tables;
  for (const auto& [workers, local] : {std::pair(1, 4), std::pair(2, 2), std::pair(4, 1)})
    train(workers, local, [&](const Strategy& strategy) {
      const auto scope = strategy.scope();
      const Variable table(start);
      optim::SGD sgd({.learning_rate = 0.1});
      for (int step = 0; step < 4; ++step)
        strategy.run([&] {
          const int replica = testing::replica_index();
          GradientTape tape;
          // Another number of rows on each replica, one shared by all.
          const Tensor rows = range(9 * replica, 9 * replica + 10 + (step + replica) % 3);
          const Tensor loss = sum(square(gather(table, rows)));
          sgd.minimize(loss, {table}, tape);
        });
      const std::lock_guard lock(mutex);
      for (const Tensor& component : table.local_values()) tables.push_back(values_of(component));
    });
  ASSERT_EQ(tables.size(), 12u);
  for (const auto& table : tables) EXPECT_EQ(table, tables[0]);
  EXPECT_NE(tables[0], start.to_vector<float>());
}

TEST(LinkedWorkers, INP07_ReadWhatTheirFunctionsGiveUntilTheLastHasEnded) {
  train(2, 1, [](const Strategy& strategy) {
    const auto batches =
        strategy.distribute_datasets_from_function([&](const InputContext& context) {
          EXPECT_EQ(context.num_input_pipelines, 2);
          EXPECT_EQ(context.input_pipeline_id, strategy.workers().rank());
          EXPECT_EQ(context.num_replicas_in_sync, 2);
          return data::range(8 + context.input_pipeline_id).batch(2);
        });
    std::vector<std::int64_t> own, global;
    for (const auto& batch : batches) {
      own.push_back(batch[0].dim(0));
      global.push_back(batch.rows()->global);
    }
    EXPECT_THAT(own, ElementsAre(2, 2, 2, 2, strategy.workers().rank()));
    EXPECT_THAT(global, ElementsAre(4, 4, 4, 4, 1));
  });
}

TEST(LinkedWorkers, INP04_OneShardEachOfAFunctionsDataset) {
  train(2, 1, [](const Strategy& strategy) {
    const auto batches =
        strategy.distribute_datasets_from_function([](const InputContext& context) {
          return data::range(14)
              .batch(context.get_per_replica_batch_size(8))
              .shard(context.num_input_pipelines, context.input_pipeline_id);
        });
    auto steps = batches.iterator();
    steps.next();
    const auto second = steps.next();
    const auto rows = (*second)[0].to_vector<std::int64_t>();
    if (strategy.workers().rank() == 0)
      EXPECT_THAT(rows, ElementsAre(8, 9, 10, 11));
    else
      EXPECT_THAT(rows, ElementsAre(12, 13));
    EXPECT_EQ(second->rows()->global, 6);
  });
}

TEST(LinkedWorkers, AWorkerWithoutAnyBatchOfItsFunctionTakesPart) {
  train(3, 2, [](const Strategy& strategy) {
    const int rank = strategy.workers().rank();
    const auto batches = strategy.distribute_datasets_from_function([&](const InputContext&) {
      return data::from_generator([rank](std::stop_token) {
        return [left = rank == 1 ? 3 : 0]() mutable -> std::optional<Tensor> {
          if (left == 0) return std::nullopt;
          return full({left--, 5}, 1);
        };
      });
    });
    std::vector<float> sums;
    for (const auto& batch : batches)
      sums.push_back(strategy
                         .reduce(ReduceOp::sum, strategy.run(
                                                    [](const Tensor& x) {
                                                      EXPECT_EQ(x.dim(1), 5);
                                                      return sum(x);
                                                    },
                                                    batch))
                         .item<float>());
    EXPECT_THAT(sums, ElementsAre(25, 5));
  });
}

TEST(LinkedWorkers, NumberTheirReplicasThroughAllWorkers) {
  train(2, 2, [](const Strategy& strategy) {
    EXPECT_EQ(strategy.num_replicas_in_sync(), 4);
    EXPECT_EQ(strategy.num_local_replicas(), 2u);
    const int rank = strategy.workers().rank();
    const auto ids = strategy.run([] { return get_replica_context()->replica_id_in_sync_group(); });
    EXPECT_THAT(testing::items<std::int32_t>(ids), ElementsAre(2 * rank, 2 * rank + 1));
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, ids).item<std::int32_t>(), 0 + 1 + 2 + 3);
    EXPECT_EQ(strategy.workers().is_chief(), rank == 0);
  });
}

TEST(LinkedWorkers, MakeAndSeeValuesOfTheirOwnReplicas) {
  train(2, 2, [](const Strategy& strategy) {
    const auto ids = strategy.distribute_values_from_function([](const ValueContext& context) {
      EXPECT_EQ(context.num_replicas_in_sync, 4);
      return context.replica_id_in_sync_group;
    });
    const auto squares = strategy.run(
        [](int id) {
          EXPECT_EQ(id, testing::replica_index());
          return Tensor(id * id);
        },
        ids);
    const int first = 2 * strategy.workers().rank();
    EXPECT_THAT(testing::items<int>(strategy.local_results(squares)),
                ElementsAre(first * first, (first + 1) * (first + 1)));
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, squares).item<int>(), 0 + 1 + 4 + 9);
  });
}

TEST(LinkedWorkers, MetricsAreOverAllOfThem) {
  train(2, 2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    metrics::ConfusionMatrix matrix(4);
    metrics::AUC auc({.num_thresholds = 5});
    const auto inside = strategy.run([&] {
      const auto id = static_cast<std::int64_t>(testing::replica_index());
      matrix.update_state(full({id}, static_cast<double>(id), DType::i64), zeros({id}, DType::i64));
      // Scores 0.4, 0.5, 0.6 and 0.7, of which the second and fourth are of positives.
      auc.update_state(Tensor({1}, {static_cast<float>(id % 2)}),
                       Tensor({1}, {0.4f + 0.1f * static_cast<float>(id)}));
      return auc.result();
    });
    EXPECT_THAT(unstack(matrix.result(), 1)[0].to_vector<double>(), ElementsAre(0, 1, 2, 3));
    // Above 0.25 are all, above 0.5 the last two: (0, 0), (0.5, 0.5), (1, 1).
    EXPECT_EQ(auc.result().item<double>(), 0.5);
    EXPECT_THAT(testing::items(inside), ElementsAre(0.5, 0.5));
  });
}

TEST(LinkedWorkers, RED08_ThePlainValueOfEachWorker) {
  for (const int replicas : {1, 2})
    train(2, replicas, [](const Strategy& strategy) {
      EXPECT_EQ(strategy.reduce(ReduceOp::sum, Tensor(1.0f)).item<float>(), 2);
      const int rank = strategy.workers().rank();
      const auto [total, twice] =
          strategy.reduce(ReduceOp::sum, std::pair(Tensor(rank + 1), 2.0 * rank));
      EXPECT_EQ(total.item<int>(), 1 + 2);
      EXPECT_EQ(twice, 2);
      EXPECT_EQ(strategy.reduce(ReduceOp::mean, Tensor(1.0f * rank)).item<float>(), 0.5);
      EXPECT_EQ(strategy.reduce(ReduceOp::mean, Tensor(rank)).item<double>(), 0.5);
      EXPECT_THAT([&] { strategy.reduce(ReduceOp::mean, rank); },
                  throws<InvalidArgument>("[Strategy::reduce]", "cannot hold the mean"));
    });
}

TEST(LinkedWorkers, ReduceOverAllReplicas) {
  for (const ReplicaThreads threads : testing::kBothModes)
    train(
        2, 2,
        [](const Strategy& strategy) {
          const auto sums = strategy.run([] {
            ReplicaContext& context = *get_replica_context();
            const Tensor id = Tensor(static_cast<float>(context.replica_index()));
            return std::pair(context.all_reduce(ReduceOp::sum, id),
                             context.all_gather(reshape(id, {1})));
          });
          EXPECT_EQ(sums[1].first.item<float>(), 6);
          EXPECT_THAT(values_of(sums[0].second), ElementsAre(0, 1, 2, 3));
          const auto own = strategy.run([] { return Tensor({1}, {testing::replica_id() + 10}); });
          EXPECT_EQ(strategy.reduce(ReduceOp::mean, own).data<float>()[0], 11.5f);
          EXPECT_THAT(values_of(strategy.gather(own)), ElementsAre(10, 11, 12, 13));
        },
        threads);
}

// However many replicas a worker has, so that all workers are refused, or none.
TEST(LinkedWorkers, KnowMirroredValues) {
  for (const auto& [workers, replicas] : {std::pair(1, 2), {2, 1}, {2, 2}})
    train(workers, replicas, [](const Strategy& strategy) {
      const auto scope = strategy.scope();
      const Variable v(Tensor({2}, {3.0f, 4.0f}));
      const auto values = strategy.run([&] { return v.read(); });
      EXPECT_THAT(values_of(strategy.reduce(ReduceOp::mean, values)), ElementsAre(3, 4));
      EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, values); },
                  throws<InvalidArgument>("[Strategy::reduce]", "mirrored", "mean"));
    });
}

TEST(LinkedWorkers, GatherUnevenRows) {
  train(3, 1, [](const Strategy& strategy) {
    const auto own = strategy.run([] {
      const auto id = get_replica_context()->replica_index();
      return full({id, 2}, static_cast<double>(id), DType::f32);
    });
    EXPECT_THAT(values_of(strategy.gather(own)), ElementsAre(1, 1, 2, 2, 2, 2));
  });
}

TEST(LinkedWorkers, S12_COL04_StartFromTheChiefsValues) {
  train(2, 2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const auto own = static_cast<float>(strategy.workers().rank() + 1);
    const Variable v(Tensor({2}, {own, -own}));
    for (const Tensor& value : v.local_values()) EXPECT_THAT(values_of(value), ElementsAre(1, -1));
  });
}

TEST(LinkedWorkers, MakeVariablesInSteps) {
  train(2, 2, [](const Strategy& strategy) {
    const auto values =
        strategy.run([] { return Variable(Tensor(testing::replica_id() + 5)).read(); });
    EXPECT_THAT(testing::items(values), ElementsAre(5, 5)) << "the chief's replica 0's";
  });
}

TEST(LinkedWorkers, TellVariablesOfDifferentShapes) {
  train(2, 1, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const std::int64_t rows = strategy.workers().rank() == 0 ? 10 : 12;
    EXPECT_THAT([&] { Variable v(zeros({rows}), {.name = "kernel"}); },
                throws<PeerError>("kernel", "10", "12"));
  });
}

TEST(LinkedWorkers, CombineOnReadVariables) {
  train(2, 2, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    Variable total(Tensor(0.0f), {.synchronization = VariableSynchronization::on_read,
                                  .aggregation = VariableAggregation::sum});
    strategy.run([&] { Variable(total).assign_add(Tensor(testing::replica_id() + 1)); });
    EXPECT_EQ(total.read().item<float>(), 1 + 2 + 3 + 4);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, total).item<float>(), 10);
  });
}

TEST(LinkedWorkers, TellSumsFromMeans) {
  train(2, 1, [](const Strategy& strategy) {
    const auto op = strategy.workers().is_chief() ? ReduceOp::sum : ReduceOp::mean;
    const auto ones = strategy.run([] { return ones_like(Tensor(0.0f)); });
    EXPECT_THAT([&] { strategy.reduce(op, ones); },
                throws<PeerError>("Strategy::reduce with sum", "Strategy::reduce with mean"));
  });
}

TEST(LinkedWorkers, TellVariablesOfOneName) {
  train(2, 1, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const VariableOptions options{.name = "mean",
                                  .synchronization = VariableSynchronization::on_read,
                                  .aggregation = VariableAggregation::sum};
    const Variable variables[] = {Variable(Tensor(0.0f), options), Variable(Tensor(0.0f), options)};
    EXPECT_THAT([&] { variables[strategy.workers().rank()].read(); },
                throws<PeerError>("variable 0, 'mean'", "variable 1, 'mean'"));
  });
}

// Two lists of equal names, dtypes and shapes, taken in another order by one worker.
TEST(LinkedWorkers, TellGradientsOfVariablesOfOneName) {
  train(2, 1, [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable variables[] = {Variable(Tensor(1.0f), {.name = "w"}),
                                  Variable(Tensor(1.0f), {.name = "w"})};
    optim::SGD optimizer({.learning_rate = 0.5});
    EXPECT_THAT(
        [&] {
          strategy.run([&] {
            GradientTape tape;
            const Variable& w = variables[strategy.workers().rank()];
            optimizer.minimize(w * w, {w}, tape);
            return w.read();
          });
        },
        throws<PeerError>("ranks disagree", "ins with 'w'", "hash"));
  });
}

TEST(LinkedWorkers, RefuseGlobalBatchesOfDifferentSizes) {
  train(2, 1, [](const Strategy& strategy) {
    const auto dataset = strategy.distribute_dataset(
        data::from_tensor_slices(range(0, 48)).batch(strategy.workers().is_chief() ? 8 : 6));
    auto batches = dataset.iterator();
    EXPECT_TRUE(batches.next());
    EXPECT_THAT([&] { batches.next(); },
                throws<InvalidArgument>("worker 1", "6 rows", "8", "one size"));
  });
}

// Otherwise the one worker's first thread would meet the other's second.
TEST(LinkedWorkers, RefuseRunsOfTwoThreadsAtOnce) {
  train(2, 1, [](const Strategy& strategy) {
    strategy.run([&] {
      std::thread([&] {
        EXPECT_THAT([&] { strategy.run([] { return Tensor(0.0f); }); },
                    throws<FailedPrecondition>("[Strategy::run]", "one thread"));
      }).join();
      return Tensor(0.0f);
    });
  });
}

TEST(LinkedWorkers, DealGlobalBatches) {
  train(2, 2, [](const Strategy& strategy) {
    const auto dataset =
        strategy.distribute_dataset(data::from_tensor_slices(range(0, 10)).batch(8));
    std::vector<std::vector<std::int64_t>> seen;
    std::vector<std::int64_t> global;
    for (const auto& batch : dataset) {
      for (const Tensor& part : batch) {
        const auto rows = part.data<std::int64_t>();
        seen.emplace_back(rows.begin(), rows.end());
      }
      global.push_back(batch.rows()->global);
    }
    EXPECT_THAT(global, ElementsAre(8, 2));
    using Rows = std::vector<std::int64_t>;
    if (strategy.workers().rank() == 0)
      EXPECT_THAT(seen, ElementsAre(Rows{0, 1}, Rows{2, 3}, Rows{8}, Rows{9}));
    else
      EXPECT_THAT(seen, ElementsAre(Rows{4, 5}, Rows{6, 7}, Rows{}, Rows{}));
  });
}

// The gradient of (w x - 1)^2 over the rows that there are.
TEST(LinkedWorkers, S45_TakeTheSameNumberOfSteps) {
  train(2, 1, [](const Strategy& strategy) {
    const bool chief = strategy.workers().is_chief();
    const std::int64_t batches = chief ? 5 : 2;
    const auto dataset = strategy.distribute_dataset(
        data::from_tensor_slices(range(0, 4 * batches)).batch(4).prefetch(4));
    std::vector<std::int64_t> local, global;
    for (const auto& batch : dataset) {
      local.push_back(batch[0].dim(0));
      global.push_back(batch.rows()->global);
    }
    EXPECT_THAT(global, ElementsAre(4, 4, 2, 2, 2));
    if (chief)
      EXPECT_THAT(local, ElementsAre(2, 2, 2, 2, 2));
    else
      EXPECT_THAT(local, ElementsAre(2, 2, 0, 0, 0));
  });
}

TEST(LinkedWorkers, EndTogetherWithoutABatchOfTheirOwn) {
  train(2, 1, [](const Strategy& strategy) {
    const std::int64_t rows = strategy.workers().is_chief() ? 4 : 0;
    const auto dataset =
        strategy.distribute_dataset(data::from_tensor_slices(zeros({rows, 3})).batch(4));
    int steps = 0;
    for (const auto& batch : dataset) {
      ++steps;
      EXPECT_EQ(batch[0].shape(), Shape({strategy.workers().is_chief() ? 2 : 0, 3}));
      EXPECT_EQ(batch.rows()->global, 2);
    }
    EXPECT_EQ(steps, 1);
  });
}

TEST(LinkedWorkers, LearnFromOthersWhatABatchLooksLike) {
  train(3, 1, [](const Strategy& strategy) {
    const bool has_data = strategy.workers().rank() == 1;
    const auto dataset = strategy.distribute_dataset(
        data::from_tensor_slices(zeros({has_data ? 9 : 0, 2}))
            .map([](const Tensor& x) {
              return reshape(cast(concat({x, x}, 0), DType::f64), {2, 2});
            })
            .batch(9));
    int steps = 0;
    for (const auto& batch : dataset) {
      ++steps;
      EXPECT_EQ(batch[0].shape(), Shape({has_data ? 3 : 0, 2, 2}));
      EXPECT_EQ(batch[0].dtype(), DType::f64);
      EXPECT_EQ(batch.rows()->global, 3);
    }
    EXPECT_EQ(steps, 1);
  });
}

TEST(LinkedWorkers, AreRefusedInAForkedChild) {
  train(2, 1, [](const Strategy& strategy) {
    strategy.workers().barrier("before");
    if (!strategy.workers().is_chief()) return;
    const pid_t child = fork();
    if (child == 0) {
      int refused = 0;
      const auto count = [&](const auto& call) {
        try {
          call();
        } catch (const FailedPrecondition&) {
          ++refused;
        }
      };
      count([&] { strategy.workers().barrier("in the child"); });
      count([&] { strategy.run([] {}); });
      _exit(refused);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 2);
  });
}

// What 20 steps of a small network leave in its weights, as bytes.
std::vector<std::vector<std::byte>> trained(int workers, int replicas) {
  std::vector<std::vector<std::byte>> weights;
  std::mutex mutex;
  train(workers, replicas, [&](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const nn::Sequential model{nn::Dense(3, 8, {.activation = nn::relu}), nn::Dense(8, 2)};
    optim::Adam optimizer({.learning_rate = 1e-2});
    const auto dataset = strategy.distribute_dataset(
        data::from_tensor_slices(reshape(cast(range(0, 480), DType::f32), {160, 3}) / 480.0)
            .batch(8));
    for (const auto& batch : dataset)
      strategy.run(
          [&](const Tensor& x) {
            GradientTape tape;
            const Tensor y = model(x);
            const Tensor loss = nn::compute_average_loss(sum(y * y, {.axes = {1}}));
            optimizer.minimize(loss, model.trainable_variables(), tape);
          },
          batch);
    const std::lock_guard lock(mutex);
    for (const Variable& variable : model.trainable_variables())
      for (const Tensor& value : variable.local_values()) {
        const auto* const data = static_cast<const std::byte*>(value.raw_data());
        weights.emplace_back(data, data + value.bytes());
      }
  });
  return weights;
}

TEST(LinkedWorkers, TrainToTheSameBitsInEveryTopology) {
  const auto reference = trained(1, 4);
  ASSERT_EQ(reference.size(), 16u);
  for (const auto& [workers, replicas] : {std::pair(2, 2), std::pair(4, 1)}) {
    const auto other = trained(workers, replicas);
    ASSERT_EQ(other.size(), 16u);
    // Both hold 4 variables x 4 replicas, grouped by worker.
    for (std::size_t i = 0; i < other.size(); ++i)
      EXPECT_EQ(other[i], reference[i / static_cast<std::size_t>(replicas) % 4 * 4])
          << workers << "x" << replicas << " value " << i;
  }
}

TEST(LinkedWorkers, AFailureReachesAllReplicasAndEndsTheStrategy) {
  train(2, 2, [](const Strategy& strategy) {
    const auto step = [] {
      if (testing::replica_index() == 3) throw InvalidArgument("[step] no more");
      get_replica_context()->all_reduce(ReduceOp::sum, Tensor(1.0f));
    };
    EXPECT_THAT([&] { strategy.run(step); }, throws<InvalidArgument>("no more"));
    EXPECT_THAT([&] { strategy.reduce(ReduceOp::sum, strategy.run([] { return Tensor(1.0f); })); },
                throws<InvalidArgument>("no more"));
  });
}

TEST(LinkedWorkers, MeetFromOtherPlacesOfTheProgram) {
  train(2, 1, [](const Strategy& strategy) {
    const auto sums = strategy.run([] {
      ReplicaContext& context = *get_replica_context();
      if (context.replica_index() == 0) return context.all_reduce(ReduceOp::sum, Tensor(1.0f));
      return context.all_reduce(ReduceOp::sum, Tensor(2.0f));
    });
    EXPECT_EQ(sums[0].item<float>(), 3);
    if (strategy.workers().is_chief())
      strategy.workers().barrier("saved");
    else
      strategy.workers().barrier("saved");
  });
}

TEST(LinkedWorkers, TellBarriersOfOtherNames) {
  train(2, 1, [](const Strategy& strategy) {
    const char* const name = strategy.workers().is_chief() ? "saved" : "restored";
    EXPECT_THAT([&] { strategy.workers().barrier(name); },
                throws<PeerError>("saved", "restored", "linked_workers_test.cc"));
  });
}

TEST(LinkedWorkers, NeverMixBatchesOfTwoDatasets) {
  train(2, 1, [](const Strategy& strategy) {
    const auto dataset = data::from_tensor_slices(range(0, 8)).batch(4);
    auto a = strategy.distribute_dataset(dataset).iterator();
    auto b = strategy.distribute_dataset(dataset).iterator();
    EXPECT_THAT([&] { static_cast<void>(strategy.workers().is_chief() ? a.next() : b.next()); },
                throws<PeerError>("distributed dataset 0", "distributed dataset 1"));
  });
}

TEST(LinkedWorkers, ToldOfDataThatFailsElsewhere) {
  train(2, 1, [](const Strategy& strategy) {
    const bool chief = strategy.workers().is_chief();
    const auto dataset =
        strategy.distribute_dataset(data::from_tensor_slices(range(0, 8))
                                        .map([chief](const Tensor& x) {
                                          if (!chief && x.item<std::int64_t>() >= 6)
                                            throw DataLoss("[records] record 6 is torn");
                                          return x;
                                        })
                                        .batch(4));
    auto batches = dataset.iterator();
    EXPECT_TRUE(batches.next().has_value());
    if (chief)
      EXPECT_THAT([&] { batches.next(); }, throws<PeerError>("worker 1", "record 6 is torn"));
    else
      EXPECT_THAT([&] { batches.next(); }, throws<DataLoss>("record 6 is torn"));
    EXPECT_EQ(
        strategy.reduce(ReduceOp::sum, strategy.run([] { return Tensor(1.0f); })).item<float>(), 2)
        << "the strategy stays usable";
  });
}

TEST(LinkedWorkers, DivideTimesByTheReplicasHere) {
  train(2, 1, [](const Strategy& strategy) {
    for (int step = 0; step < 3; ++step)
      strategy.run([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    EXPECT_GE(strategy.step_report().compute, 0.06);
  });
}

}  // namespace
}  // namespace lockstep
