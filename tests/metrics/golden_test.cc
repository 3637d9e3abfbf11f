// SPDX-License-Identifier: Apache-2.0
// Metrics give what Keras gave (tests/golden/generate_metrics.py): on one replica, and with the rows
// dealt unevenly over four, and over two cores, where short parts are padded.
#include <lockstep/data.h>
#include <lockstep/distribute.h>
#include <lockstep/distribute/tpu.h>
#include <lockstep/metrics.h>
#include <lockstep/tensor/rows.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/replicas.h"
#include "support/traced.h"

namespace lockstep::metrics {
namespace {

using Json = nlohmann::json;

struct Example {
  Tensor labels, predictions, weight;
};

Tensor tensor_of(const Json& json, bool integers = false) {
  const Shape shape(json.at("shape").get<std::vector<std::int64_t>>());
  if (integers)
    return Tensor(
        shape, std::span<const std::int64_t>(json.at("values").get<std::vector<std::int64_t>>()));
  return Tensor(shape, std::span<const double>(json.at("values").get<std::vector<double>>()));
}

AUCOptions auc_options(const Json& o) {
  AUCOptions options;
  if (o.value("curve", "ROC") == "PR") options.curve = Curve::pr;
  const std::string rule = o.value("summation_method", "interpolation");
  if (rule == "minoring") options.summation_method = AreaRule::minoring;
  if (rule == "majoring") options.summation_method = AreaRule::majoring;
  options.num_thresholds = o.value("num_thresholds", options.num_thresholds);
  options.thresholds = o.value("thresholds", std::vector<double>());
  options.from_logits = o.value("from_logits", false);
  return options;
}

PrecisionOptions precision_options(const Json& o) {
  PrecisionOptions options{.thresholds = o.value("thresholds", std::vector<double>())};
  if (o.contains("top_k")) options.top_k = o.at("top_k").get<std::int64_t>();
  if (o.contains("class_id")) options.class_id = o.at("class_id").get<std::int64_t>();
  return options;
}

FBetaScoreOptions f_options(const Json& o) {
  FBetaScoreOptions options{.num_classes = 4, .beta = o.value("beta", 1.0)};
  const Json& average = o.at("average");
  if (average == "micro") options.average = ScoreAverage::micro;
  if (average == "macro") options.average = ScoreAverage::macro;
  if (average == "weighted") options.average = ScoreAverage::weighted;
  if (o.contains("threshold")) options.threshold = o.at("threshold").get<double>();
  return options;
}

// Calls use(metric) with the case's metric.
template <class Use>
void with_metric(const Json& one, const Use& use) {
  const std::string name = one.at("metric");
  const Json& o = one.at("options");
  const auto call = [&](auto metric) { use(metric); };
  if (name == "SparseCategoricalAccuracy") return call(SparseCategoricalAccuracy());
  if (name == "CategoricalAccuracy") return call(CategoricalAccuracy());
  if (name == "BinaryAccuracy")
    return call(BinaryAccuracy({.threshold = o.value("threshold", 0.5)}));
  if (name == "SparseTopKCategoricalAccuracy")
    return call(SparseTopKCategoricalAccuracy({.k = o.at("k")}));
  if (name == "TopKCategoricalAccuracy") return call(TopKCategoricalAccuracy({.k = o.at("k")}));
  if (name == "MeanSquaredError") return call(MeanSquaredError());
  if (name == "RootMeanSquaredError") return call(RootMeanSquaredError());
  if (name == "MeanAbsoluteError") return call(MeanAbsoluteError());
  if (name == "Perplexity") return call(Perplexity());
  if (name == "Precision") return call(Precision(precision_options(o)));
  if (name == "Recall") return call(Recall(precision_options(o)));
  if (name == "ConfusionMatrix") return call(ConfusionMatrix(4));
  if (name == "AUC") return call(AUC(auc_options(o)));
  if (name == "F1Score") return call(F1Score(f_options(o)));
  if (name == "FBetaScore") return call(FBetaScore(f_options(o)));
  FAIL() << "no metric " << name;
}

// Keras counts top k in f32, and adds 1e-7 to the denominators of F scores.
void expect_result(const Tensor& got, const Json& one) {
  testing::expect_close(got, tensor_of(one.at("result")), 1e-6, "result");
}

std::vector<Example> batches_of(const Json& one) {
  std::vector<Example> batches;
  for (const Json& batch : one.at("batches")) {
    const bool pair = one.at("metric") == "ConfusionMatrix";
    batches.push_back({tensor_of(batch.at("labels"), one.at("integers")),
                       tensor_of(batch.at("predictions"), pair),
                       batch.contains("weight") ? tensor_of(batch.at("weight")) : Tensor()});
  }
  return batches;
}

void expect_on_one_replica(const Json& one) {
  with_metric(one, [&](auto& metric) {
    for (int round = 0; round < 2; ++round) {
      for (const Example& batch : batches_of(one))
        metric.update_state(batch.labels, batch.predictions, batch.weight);
      expect_result(metric.result(), one);
      metric.reset_state();
    }
  });
}

// All rows as a dataset; without weights 1 stands for them.
data::Dataset<Example> rows_of(const Json& one) {
  std::vector<Tensor> labels, predictions, weights;
  for (const Example& batch : batches_of(one)) {
    labels.push_back(batch.labels);
    predictions.push_back(batch.predictions);
    weights.push_back(batch.weight.defined() ? batch.weight
                                             : ones({batch.labels.dim(0)}, DType::f64));
  }
  return data::from_tensor_slices(
      Example{concat_rows(labels), concat_rows(predictions), concat_rows(weights)});
}

void expect_on_replicas(const Strategy& strategy, const Json& one) {
  const bool weighted = one.at("batches")[0].contains("weight");
  // 13 rows: parts of 2, 2, 1 and 0, at the end of 1, 1, 1 and 0.
  const auto batches = strategy.distribute_dataset(rows_of(one).batch(5));
  const auto scope = strategy.scope();
  with_metric(one, [&](auto& metric) {
    const auto step = [&](const Example& batch) {
      metric.update_state(batch.labels, batch.predictions, weighted ? batch.weight : Tensor());
    };
    for (const auto& batch : batches) strategy.run(step, batch);
    expect_result(metric.result(), one);
  });
}

class GoldenMetrics : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file(std::string(LOCKSTEP_TEST_SOURCE_DIR "/tests/golden/metrics/") + GetParam() +
                       ".json");
    ASSERT_TRUE(file);
    cases_ = Json::parse(file).at("cases");
    ASSERT_FALSE(cases_.empty());
  }
  template <class Check>
  void each_case(Check check) const {
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      SCOPED_TRACE(std::to_string(i) + ": " + cases_[i].at("metric").get<std::string>() +
                   cases_[i].at("options").dump());
      check(cases_[i]);
    }
  }
  Json cases_;
};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenMetrics,
                         ::testing::Values("accuracy", "regression", "confusion", "auc", "f_score"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GoldenMetrics, OnOneReplica) {
  each_case([](const Json& one) { expect_on_one_replica(one); });
}

TEST_P(GoldenMetrics, OnFourReplicas) {
  const MirroredStrategy strategy = testing::replicas(4);
  each_case([&](const Json& one) { expect_on_replicas(strategy, one); });
}

TEST_P(GoldenMetrics, TracedOnTwoCores) {
  LOCKSTEP_REQUIRE_PLUGIN();
  const TPUStrategy strategy({.replicas = 2});
  // Programs take their time to compile: with weights or without, by turns.
  each_case([&, i = 0](const Json& one) mutable {
    const bool chosen = i % 2 == i / 2 % 2;
    ++i;
    if (chosen) expect_on_replicas(strategy, one);
  });
}

}  // namespace
}  // namespace lockstep::metrics
