// SPDX-License-Identifier: Apache-2.0
// What golden values do not show: edges, refusals, state.
#include <lockstep/distribute.h>
#include <lockstep/distribute/tpu.h>
#include <lockstep/metrics.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>

#include <cmath>
#include <limits>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/traced.h"
#include "support/values.h"

namespace lockstep::metrics {
namespace {

using namespace testing;  // NOLINT

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Metrics, AreZeroBeforeTheFirstExample) {
  EXPECT_EQ(Sum().result().item<double>(), 0);
  EXPECT_EQ(BinaryAccuracy().result().item<double>(), 0);
  EXPECT_EQ(RootMeanSquaredError().result().item<double>(), 0);
  EXPECT_EQ(Perplexity().result().item<double>(), 1);
  EXPECT_EQ(Precision().result().item<double>(), 0);
  EXPECT_EQ(Recall().result().item<double>(), 0);
  for (const Curve curve : {Curve::roc, Curve::pr})
    EXPECT_EQ(AUC({.curve = curve}).result().item<double>(), 0);
  EXPECT_THAT(F1Score({.num_classes = 2}).result(), holds<double>({0, 0}));
  EXPECT_THAT(ConfusionMatrix(2).result(), holds<double>({0, 0, 0, 0}));
}

TEST(Metrics, CountNoRowsAsNothing) {
  const Tensor none = zeros({0}, DType::i64), scores = zeros({0, 3});
  SparseTopKCategoricalAccuracy top({.k = 2});
  top.update_state(none, scores);
  EXPECT_EQ(top.result().item<double>(), 0);
  AUC auc;
  auc.update_state(none, zeros({0}));
  EXPECT_EQ(auc.result().item<double>(), 0);
  Recall recall({.top_k = 2});
  recall.update_state(scores, scores);
  EXPECT_EQ(recall.result().item<double>(), 0);
  F1Score f1({.num_classes = 3});
  f1.update_state(scores, scores);
  EXPECT_THAT(f1.result(), holds<double>({0, 0, 0}));
  ConfusionMatrix matrix(3);
  matrix.update_state(none, scores);
  EXPECT_THAT(matrix.result(), holds<double>(std::vector<double>(9, 0)));
  MeanSquaredError error;
  error.update_state(scores, scores);
  EXPECT_EQ(error.result().item<double>(), 0);
}

TEST(Sum, AddsWeightedValues) {
  Sum sum;
  sum.update_state(Tensor({2, 2}, {1, 2, 3, 4}), vec({2, 0.5}));
  EXPECT_EQ(sum.result().item<double>(), 2 * 3 + 0.5 * 7);
  sum.update_state(Tensor(10.0f));
  EXPECT_EQ(sum.result().item<double>(), 19.5);
}

TEST(Mean, WeighsRowsByOneWeightEach) {
  Mean mean;
  mean.update_state(Tensor({2, 2}, {1, 2, 3, 5}), vec({3, 1}));
  EXPECT_EQ(mean.result().item<double>(), (3 * 3 + 8) / 8.0);
  EXPECT_THAT(
      [&] {
        mean.update_state(zeros({2, 3}), zeros({3}));
      },
      throws<InvalidArgument>("[Mean::update_state]", "[2, 3]", "got [3]"));
}

TEST(TopK, TiesDoNotCountAgainstTheLabel) {
  SparseTopKCategoricalAccuracy second({.k = 2});
  const Tensor tied({1, 4}, {0.3f, 0.3f, 0.3f, 0.1f});
  for (const int label : {0, 1, 2, 3}) second.update_state(vec<int>({label}), tied);
  EXPECT_EQ(second.result().item<double>(), 0.75);
}

TEST(TopK, ALabelWithoutAFinitePredictionIsWrong) {
  SparseTopKCategoricalAccuracy top({.k = 3});
  top.update_state(vec<int>({0, 1, 2}),
                   Tensor({3, 3}, {std::nan(""), 0.0, 1.0, 1.0, -kInfinity, 0.5,  //
                                   -kInfinity, -kInfinity, 0.0}));
  EXPECT_NEAR(top.result().item<double>(), 1 / 3.0, 1e-15);
}

TEST(TopK, RefusesALabelThatIsNoClass) {
  SparseTopKCategoricalAccuracy top;
  EXPECT_THAT(
      [&] {
        top.update_state(vec<int>({0, 4}), zeros({2, 4}));
      },
      throws<InvalidArgument>("4"));
}

TEST(RegressionErrors, TakeNumbersOfRowsAsExamples) {
  MeanSquaredError squared;
  MeanAbsoluteError absolute;
  for (const auto& [labels, predictions] :
       {std::pair(vec({1, 2, 3}), vec({1, 4, 3})), std::pair(vec({5}), vec({8}))}) {
    squared.update_state(labels, expand_dims(predictions, -1));
    absolute.update_state(expand_dims(labels, -1), predictions);
  }
  EXPECT_EQ(squared.result().item<double>(), 13 / 4.0);
  EXPECT_EQ(absolute.result().item<double>(), 5 / 4.0);
  EXPECT_THAT(
      [&] {
        squared.update_state(zeros({2, 3}), zeros({3}));
      },
      throws<InvalidArgument>("[MeanSquaredError::update_state]", "[2, 3]", "[3]"));
}

TEST(Perplexity, OfUniformPredictionsIsTheNumberOfTokens) {
  Perplexity perplexity;
  perplexity.update_state(vec<int>({0, 6, 3}), zeros({3, 7}), vec({1, 2, 0}));
  EXPECT_NEAR(perplexity.result().item<double>(), 7, 1e-5);
}

TEST(Precision, ComparesInThePrecisionOfThePredictions) {
  Precision precision({.thresholds = {0.1}});
  precision.update_state(vec({0, 1}), vec({0.1f, 0.11f}));  // 0.1f exceeds 0.1, as numbers
  EXPECT_EQ(precision.result().item<double>(), 1);
}

TEST(Precision, TopKTakesTheFirstOfEqualPredictions) {
  Recall recall({.top_k = 1});
  recall.update_state(Tensor({2, 2}, {1, 0, 0, 1}), ones({2, 2}));
  EXPECT_EQ(recall.result().item<double>(), 0.5);
}

TEST(Precision, RefusesWhatItCannotSelect) {
  EXPECT_THAT([] { Precision({.thresholds = {kInfinity}}); }, throws<InvalidArgument>("finite"));
  EXPECT_THAT([] { Precision({.top_k = 0}); }, throws<InvalidArgument>("top_k"));
  EXPECT_THAT([] { Recall({.class_id = -1}); }, throws<InvalidArgument>("class_id"));
  Recall recall({.class_id = 3});
  EXPECT_THAT(
      [&] {
        recall.update_state(zeros({2, 3}), zeros({2, 3}));
      },
      throws<InvalidArgument>("[recall::update_state]", "class_id", "[2, 3]"));
  Precision first({.class_id = 0});
  const auto error =
      caught<InvalidArgument>([&] { first.update_state(Tensor(1.0f), Tensor(1.0f)); });
  EXPECT_EQ(error->location().line, __LINE__ - 1);
  EXPECT_THAT(error->message(), ::testing::HasSubstr("[precision::update_state]"));
}

// The probability that a positive example is predicted above a negative one, ties counting half.
double rank_statistic(const std::vector<float>& labels, const std::vector<float>& scores) {
  double pairs = 0, ordered = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    for (std::size_t j = 0; j < labels.size(); ++j) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      ++pairs;
      ordered += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  return ordered / pairs;
}

TEST(AUC, OfManyExamplesIsNearTheRankStatistic) {
  Noise noise(3);
  std::vector<float> labels, scores;
  for (int i = 0; i < 5000; ++i) {  // more than are compared at once
    labels.push_back(noise.next() < -0.4 ? 1 : 0);
    scores.push_back(static_cast<float>(0.4 + 0.2 * labels.back() + 0.3 * noise.next()));
  }
  AUC auc;
  auc.update_state(Tensor({5000}, std::span<const float>(labels)),
                   Tensor({5000}, std::span<const float>(scores)));
  EXPECT_NEAR(auc.result().item<double>(), rank_statistic(labels, scores), 1e-3);
}

TEST(AUC, CountsPredictionsOfExactlyZeroAndOne) {
  for (const Curve curve : {Curve::roc, Curve::pr}) {
    AUC auc({.curve = curve});
    auc.update_state(vec({0, 1, 0, 1}), vec({0, 1, 0, 1}));
    EXPECT_EQ(auc.result().item<double>(), 1);
  }
  EXPECT_THAT([] { AUC({.num_thresholds = 1}); }, throws<InvalidArgument>("2 thresholds", "got 1"));
  EXPECT_THAT([] { AUC({.thresholds = {0.5, 1.5}}); }, throws<InvalidArgument>("[0, 1]", "1.5"));
}

TEST(AUC, RefusesWhatIsNoProbability) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  AUC auc;
  for (const float wrong : {-2.5f, 1.5f, static_cast<float>(kInfinity)})
    EXPECT_THAT(
        [&] {
          auc.update_state(vec({0, 1}), vec({0.5f, wrong}));
        },
        throws<InvalidArgument>("[AUC::update_state]", "place 1", ".from_logits"));
  EXPECT_THAT(
      [&] {
        auc.update_state(vec<double>({0, 1}), vec<double>({-0.25, 0}));
      },
      throws<InvalidArgument>("-0.25 at place 0"));
  EXPECT_THAT(
      [&] {
        auc.update_state(vec({0, 1}), cast(vec({2.5f, 0.5f}), DType::f16));
      },
      throws<InvalidArgument>("2.5 at place 0"));
  AUC of_logits({.from_logits = true});
  for (AUC* metric : {&auc, &of_logits}) {
    const auto error = caught<InvalidArgument>([&] {
      metric->update_state(vec({0, 1}), vec({nan, 0.5f}));
    });
    EXPECT_EQ(error->location().line, __LINE__ - 2);
    EXPECT_THAT(error->message(), ::testing::HasSubstr("nan at place 0"));
  }
  EXPECT_EQ(auc.result().item<double>(), 0);  // nothing was counted
  // What has no weight may be anything, and so may logits.
  auc.update_state(vec({0, 1, 1}), vec({0.25f, 0.75f, nan}), vec({1, 1, 0}));
  EXPECT_EQ(auc.result().item<double>(), 1);
  of_logits.update_state(vec({0, 1}), vec({-9, 9}));
  EXPECT_EQ(of_logits.result().item<double>(), 1);
}

TEST(FScore, RefusesOptionsWithoutMeaning) {
  EXPECT_THAT([] { F1Score({}); }, throws<InvalidArgument>("num_classes"));
  EXPECT_THAT([] { F1Score({.num_classes = 1}); }, throws<InvalidArgument>("threshold"));
  EXPECT_THAT([] { F1Score({.num_classes = 2, .beta = 2}); },
              throws<InvalidArgument>("FBetaScore"));
  EXPECT_THAT([] { FBetaScore({.num_classes = 2, .beta = 0}); }, throws<InvalidArgument>("beta"));
  F1Score score({.num_classes = 2});
  EXPECT_EQ(score.name(), "f1_score");
  EXPECT_THAT(
      [&] {
        score.update_state(zeros({2, 3}), zeros({2, 3}));
      },
      throws<InvalidArgument>("[rows, 2]", "[2, 3]"));
}

TEST(ConfusionMatrix, TakesTheLargestScore) {
  ConfusionMatrix matrix(3);
  matrix.update_state(vec<int>({0, 2, 2}), Tensor({3, 3}, {9, 1, 1, 1, 9, 1, 1, 1, 9}),
                      vec({1, 0.5, 2}));
  EXPECT_THAT(matrix.result(), holds<double>({1, 0, 0, 0, 0, 0, 0, 0.5, 2}));
  EXPECT_THROW(matrix.update_state(vec<int>({0}), zeros({1, 4})), InvalidArgument);
  EXPECT_THROW(ConfusionMatrix(0), InvalidArgument);
  const auto error = caught<InvalidArgument>([] { ConfusionMatrix(std::int64_t{1} << 40); });
  EXPECT_EQ(error->location().line, __LINE__ - 1);
  EXPECT_THAT(error->message(), ::testing::HasSubstr("[ConfusionMatrix]"));
}

TEST(ConfusionMatrix, NamesAClassOutOfRange) {
  ConfusionMatrix matrix(3);
  EXPECT_THAT(
      [&] {
        matrix.update_state(vec<int>({0, 3}), vec<int>({0, 1}));
      },
      throws<InvalidArgument>("[ConfusionMatrix::update_state]",
                              "expected labels from 0 to 2, got 3 at place 1", "more classes"));
  EXPECT_THAT([&] { matrix.update_state(vec<int>({0}), vec<int>({-1})); },
              throws<InvalidArgument>("expected predictions from 0 to 2, got -1 at place 0"));
  EXPECT_THAT(matrix.result(), holds<double>(std::vector<double>(9, 0)));
}

class Keeper final : public StateVisitor {
 public:
  void visit(std::string_view name, Tensor& value) override {
    EXPECT_EQ(name, name_);
    if (kept_.defined())
      value = kept_;
    else
      kept_ = value;
  }
  void visit(std::string_view, std::int64_t&) override { FAIL(); }

  explicit Keeper(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
  Tensor kept_;
};

TEST(Metrics, GoOnFromAVisitedState) {
  Keeper keeper("auc");
  AUC first, second;
  first.update_state(vec({0, 1, 1}), vec({0.1f, 0.9f, 0.05f}));
  first.visit_state(keeper);
  second.visit_state(keeper);
  EXPECT_EQ(second.result().item<double>(), 0.5);
}

TEST(Metrics, GiveEachReplicaTheSameResultInAStep) {
  const auto results = [](const Strategy& strategy) {
    const auto scope = strategy.scope();
    AUC auc;
    F1Score score({.num_classes = 2, .threshold = 0.5});
    const auto both = strategy.run([&] {
      const Tensor id = get_replica_context()->replica_id_in_sync_group();
      const Tensor own = cast(id, DType::f32) * 0.3;
      auc.update_state(vec({0, 1}), vec({0.5f, 0.4f}) + own * vec({0, 1}));
      score.update_state(Tensor({1, 2}, {1, 0}), Tensor({1, 2}, {0.4f, 0.6f}) + own);
      return std::pair(auc.result(), score.result());
    });
    for (const auto& [area, scores] : both) {
      EXPECT_NEAR(area.item<double>(), 0.5, 1e-12);
      EXPECT_THAT(scores.to_vector<double>(), ::testing::ElementsAre(2 / 3.0, 0));
    }
  };
  results(replicas(2));
  if (has_plugin()) results(TPUStrategy({.replicas = 2}));
}

}  // namespace
}  // namespace lockstep::metrics
