// SPDX-License-Identifier: Apache-2.0
// Each row of tests/golden/semantics/ is what TensorFlow gave for one call on a distributed variable,
// value or loss; here the same call is made. Where lockstep differs on purpose, what it does instead
// is checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/lockstep.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/replicas.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using testing::replica_index;
using testing::replicas;

// A row of a fixture, by its number.
struct Row {
  std::string fixture;
  Json json;
  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.json.dump(); }
};

std::vector<Row> rows_of(const std::string& fixture) {
  std::ifstream file(LOCKSTEP_TEST_SOURCE_DIR "/tests/golden/semantics/" + fixture + ".json");
  const Json all = Json::parse(file);
  std::vector<Row> rows;
  for (const Json& row : all.at("rows")) rows.push_back({fixture, row});
  return rows;
}

std::string number_of(const ::testing::TestParamInfo<Row>& info) {
  return std::to_string(info.index);
}

int count_of(const Json& row) { return row.at("replicas").get<int>(); }

DType dtype_of(const std::string& name) {
  const std::map<std::string, DType> dtypes{{"float32", DType::f32},
                                            {"float64", DType::f64},
                                            {"int32", DType::i32},
                                            {"int64", DType::i64}};
  return dtypes.at(name);
}

ReduceOp op_of(const Json& row) { return row.at("op") == "sum" ? ReduceOp::sum : ReduceOp::mean; }

// Of a list or one number; null is NaN.
void expect_numbers(const Tensor& actual, const Json& expected) {
  const Json flat = expected.is_array() ? expected : Json::array({expected});
  const auto values = cast(actual, DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), flat.size());
  std::size_t i = 0;
  for (const auto& number : flat) {
    if (number.is_null())
      EXPECT_TRUE(std::isnan(values[i])) << i;
    else
      EXPECT_NEAR(values[i], number.get<double>(), 1e-6 * (1 + std::abs(number.get<double>())))
          << i;
    ++i;
  }
}

// ---- variables

void change(Variable& variable, const std::string& operation, int replica) {
  const auto own = static_cast<float>(replica);
  if (operation.starts_with("assign")) {
    const Tensor values({3}, {1.5f * (own + 1), -2.0f - own, 0.25f});
    if (operation == "assign") variable.assign(values);
    if (operation == "assign_add") variable.assign_add(values);
    if (operation == "assign_sub") variable.assign_sub(values);
    return;
  }
  const IndexedSlices slices{Tensor({2}, {2 + own, 0.5f}),
                             Tensor({2}, {replica % 3, (replica + 1) % 3}), Shape{3}};
  if (operation == "scatter_add") variable.scatter_add(slices);
  if (operation == "scatter_sub") variable.scatter_sub(slices);
  if (operation == "scatter_mul") variable.scatter_mul(slices);
  if (operation == "scatter_div") variable.scatter_div(slices);
  if (operation == "scatter_min") variable.scatter_min(slices);
  if (operation == "scatter_max") variable.scatter_max(slices);
  if (operation == "scatter_update") variable.scatter_update(slices);
}

VariableSynchronization synchronization_of(const Json& row) {
  const std::map<std::string, VariableSynchronization> all{
      {"automatic", VariableSynchronization::automatic},
      {"on_write", VariableSynchronization::on_write},
      {"on_read", VariableSynchronization::on_read}};
  return all.at(row.at("synchronization"));
}

VariableAggregation aggregation_of(const Json& row) {
  const std::map<std::string, VariableAggregation> all{
      {"none", VariableAggregation::none},
      {"sum", VariableAggregation::sum},
      {"mean", VariableAggregation::mean},
      {"only_first_replica", VariableAggregation::only_first_replica}};
  return all.at(row.at("aggregation"));
}

class VariableRows : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(, VariableRows, ::testing::ValuesIn(rows_of("variables")), number_of);

TEST_P(VariableRows, AreTensorFlows) {
  const Json& row = GetParam().json;
  const auto strategy = replicas(count_of(row));
  const auto scope = strategy.scope();
  Variable variable(Tensor({3}, {1.0f, 2.0f, 4.0f}), {.name = "v",
                                                      .trainable = false,
                                                      .synchronization = synchronization_of(row),
                                                      .aggregation = aggregation_of(row)});
  const std::string operation = row.at("operation");
  const auto act = [&] {
    if (row.at("context") == "replica")
      strategy.run([&] {
        Variable own = variable;
        change(own, operation, replica_index());
      });
    else
      change(variable, operation, 0);
  };
  if (row.contains("raises")) {
    EXPECT_THROW(act(), Error);
    return;
  }
  act();
  const auto components = variable.local_values();
  ASSERT_EQ(components.size(), row.at("components").size());
  for (std::size_t i = 0; i < components.size(); ++i)
    expect_numbers(components[i], row.at("components")[i]);
  if (row.contains("read_raises"))
    EXPECT_THROW((void)variable.read(), Error);
  else
    expect_numbers(variable.read(), row.at("read"));
}

// ---- reductions and gathers

Tensor component_of(const Json& row, int replica) {
  const auto at = static_cast<std::size_t>(replica);
  const auto dims = row.at("shapes")[at].get<std::vector<std::int64_t>>();
  const auto values = row.at("values")[at].get<std::vector<double>>();
  return cast(Tensor(Shape(dims), std::span<const double>(values)), dtype_of(row.at("dtype")));
}

class CollectiveRows : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(, CollectiveRows, ::testing::ValuesIn(rows_of("collectives")), number_of);

TEST_P(CollectiveRows, AreTensorFlows) {
  const Json& row = GetParam().json;
  const auto strategy = replicas(count_of(row));
  const std::string call = row.at("call");
  const auto values = strategy.distribute_values_from_function([&](const ValueContext& context) {
    return component_of(row, context.replica_id_in_sync_group);
  });
  std::vector<Tensor> gradients(strategy.num_local_replicas());
  const auto in_replicas = [&](const auto& collective) {
    const auto results = strategy.run(
        [&](const Tensor& x) {
          GradientTape tape;
          tape.watch(x);
          const Tensor y = collective(x);
          const Tensor loss = sum(y) * (1.0f + static_cast<float>(replica_index()));
          gradients[static_cast<std::size_t>(replica_index())] = tape.gradient(loss, {x})[0];
          return y;
        },
        values);
    for (std::size_t r = 1; r < results.size(); ++r)
      EXPECT_EQ(results[r].template to_vector<float>(), results[0].template to_vector<float>());
    return results[0];
  };
  const auto act = [&]() -> Tensor {
    if (call == "reduce" && row.at("axis").is_null()) return strategy.reduce(op_of(row), values);
    if (call == "reduce") return strategy.reduce(op_of(row), values, row.at("axis").get<int>());
    if (call == "gather") return strategy.gather(values, row.at("axis").get<int>());
    if (call == "all_reduce")
      return in_replicas(
          [&](const Tensor& x) { return get_replica_context()->all_reduce(op_of(row), x); });
    return in_replicas([&](const Tensor& x) {
      return get_replica_context()->all_gather(x, row.at("axis").get<int>());
    });
  };
  // TensorFlow hands on what one replica has without a look at it; here one replica is as several are.
  const bool one = values.size() == 1;
  const bool no_axis = call == "gather" && row.at("axis") >= row.at("shapes")[0].size();
  if (row.contains("raises") || (one && no_axis)) {
    EXPECT_THROW(act(), Error);
    return;
  }
  const Tensor result = act();
  const bool mean_of_integers =
      call == "reduce" && row.at("op") == "mean" && row.at("dtype") == "int32";
  EXPECT_EQ(result.dtype(),
            one && mean_of_integers ? DType::f64 : dtype_of(row.at("result_dtype")));
  EXPECT_EQ(result.shape(), Shape(row.at("result_shape").get<std::vector<std::int64_t>>()));
  expect_numbers(result, row.at("result"));
  if (!row.contains("gradients")) return;
  for (std::size_t r = 0; r < gradients.size(); ++r)
    expect_numbers(gradients[r], row.at("gradients")[r]);
}

// ---- losses

class LossRows : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(, LossRows, ::testing::ValuesIn(rows_of("losses")), number_of);

TEST_P(LossRows, AreTensorFlows) {
  const Json& row = GetParam().json;
  const auto strategy = replicas(count_of(row));
  const auto list = [](const Json& numbers) {
    const auto values = numbers.get<std::vector<float>>();
    return Tensor({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  };
  const auto results = strategy.run([&] {
    const auto own = static_cast<std::size_t>(replica_index());
    const Tensor losses = list(row.at("losses")[own]);
    nn::AverageLossOptions options;
    if (!row.at("weights").is_null()) options.sample_weight = list(row.at("weights")[own]);
    if (!row.at("global_batch_size").is_null())
      options.global_batch_size = row.at("global_batch_size").get<std::int64_t>();
    return std::pair(nn::compute_average_loss(losses, options),
                     nn::scale_regularization_loss(losses));
  });
  // TensorFlow divides by a replica's own rows times the number of replicas, lockstep by all rows: the
  // same unless rows are dealt unevenly, where the sum of TensorFlow's parts is no mean.
  const auto rows_on = [&](std::size_t r) {
    return static_cast<double>(row.at("losses")[r].size());
  };
  double all = 0;
  for (std::size_t r = 0; r < results.size(); ++r) all += rows_on(r);
  for (std::size_t r = 0; r < results.size(); ++r) {
    const double of_all = row.at("global_batch_size").is_null()
                              ? rows_on(r) * static_cast<double>(results.size()) / all
                              : 1;
    expect_numbers(results[r].first, row.at("average")[r].get<double>() * of_all);
    expect_numbers(results[r].second, row.at("regularization")[r]);
  }
}

}  // namespace
}  // namespace lockstep
