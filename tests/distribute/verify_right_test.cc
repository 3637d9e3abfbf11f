// SPDX-License-Identifier: Apache-2.0
// verify() finds nothing in steps that are right, and what is planted in models like theirs.
#include "distribute/verify_programs.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(VerifyFindsNothing, InGradientDescent) { EXPECT_RIGHT(report_of<Right>()); }
TEST(VerifyFindsNothing, InMomentumWithDecay) {
  const auto make = [] {
    return Right(optim::SGDOptions{
        .learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1});
  };
  EXPECT_RIGHT(verify(make, rows(), soon()));
}
TEST(VerifyFindsNothing, InClippingByTheOptimizer) {
  const auto make = [] {
    return Right(optim::SGDOptions{.learning_rate = 0.1, .clip = {.global_norm = 0.5}});
  };
  EXPECT_RIGHT(verify(make, rows(), soon()));
}
TEST(VerifyFindsNothing, InAccumulation) {
  const auto make = [] {
    return Right(optim::SGDOptions{.learning_rate = 0.1, .gradient_accumulation_steps = 3});
  };
  EXPECT_RIGHT(verify(make, rows(13), soon()));
}

struct MakesAVariable : Regression {
  Tensor step(const Rows& batch) {
    const Variable factor(Tensor(testing::replica_id() + 2));
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch) * factor.read());
    minimize(loss, tape);
    return loss;
  }
};
TEST(VerifyFindsNothing, InAVariableThatTheStepMakes) { EXPECT_RIGHT(report_of<MakesAVariable>()); }

struct MakesItsOptimizer : Regression {
  Tensor step(const Rows& batch) {
    optim::SGD sgd({.learning_rate = 0.1, .momentum = 0.9});
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    sgd.minimize(loss, variables(), tape);
    return loss;
  }
};
TEST(VerifyFindsNothing, InAnOptimizerThatTheStepMakes) {
  EXPECT_RIGHT(report_of<MakesItsOptimizer>());
}

struct ByAdam : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    adam.minimize(loss, variables(), tape);
    return loss;
  }
  optim::Adam adam;
};
TEST(VerifyFindsNothing, InAdam) { EXPECT_RIGHT(report_of<ByAdam>()); }

struct ScaledPenalty : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss =
        nn::compute_average_loss(errors(batch)) + nn::scale_regularization_loss(penalty());
    minimize(loss, tape);
    return loss;
  }
};
TEST(VerifyFindsNothing, InAPenaltyThatCountsOnce) { EXPECT_RIGHT(report_of<ScaledPenalty>()); }

struct ReducesTheLoss : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    minimize(loss, tape);
    return get_replica_context()->all_reduce(ReduceOp::sum, loss);
  }
};
TEST(VerifyFindsNothing, InALossThatAllReplicasReturn) {
  EXPECT_RIGHT(report_of<ReducesTheLoss>());
}

struct WithDropout : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor kept = dropout(batch.x, {.training = true});
    const Tensor loss = nn::compute_average_loss(errors({kept, batch.y}));
    update(loss, tape);
    return loss;
  }
  virtual ~WithDropout() = default;
  virtual void update(const Tensor& loss, GradientTape& tape) { minimize(loss, tape); }
  nn::Dropout dropout{0.5};
};
TEST(VerifyFindsNothing, InDropout) {
  const auto report = report_of<WithDropout>();
  EXPECT_RIGHT(report);
  EXPECT_THAT(report.notes, IsEmpty());
}

struct DropoutUnderAdam : WithDropout {
  void update(const Tensor& loss, GradientTape& tape) override {
    adam.minimize(loss, variables(), tape);
  }
  optim::Adam adam;
};
TEST(VerifyFindsNothing, InDropoutUnderAdamWhichItNotes) {
  const auto report = report_of<DropoutUnderAdam>();
  EXPECT_RIGHT(report);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("random numbers")));
}

struct DropoutAveragedTwice : WithDropout {
  void update(const Tensor& loss, GradientTape& tape) override {
    minimize(loss / replica_count(), tape);
  }
};
TEST(VerifyNames, ALossWithDropoutAveragedTwice) {
  EXPECT_NAMED(report_of<DropoutAveragedTwice>(), Mistake::averaged_twice);
}

struct DropoutWithPenalty : WithDropout {
  void update(const Tensor& loss, GradientTape& tape) override { minimize(loss + penalty(), tape); }
};
TEST(VerifyNames, APenaltyBesidesDropoutThatEachReplicaAdds) {
  EXPECT_NAMED(report_of<DropoutWithPenalty>(), Mistake::regularizer_per_replica);
}

template <bool synchronized>
struct Normalised : Regression {
  std::vector<Variable> variables() const {
    std::vector<Variable> all = model.trainable_variables();
    for (const Variable& each : norm.trainable_variables()) all.push_back(each);
    return all;
  }
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor x = norm(batch.x, {.training = true});
    const Tensor loss = nn::compute_average_loss(errors({x, batch.y}));
    optimizer.minimize(loss, variables(), tape);
    return loss;
  }
  nn::BatchNorm norm{4, {.synchronized = synchronized}};
};
TEST(VerifyFindsNothing, InSynchronizedBatchNorm) { EXPECT_RIGHT(report_of<Normalised<true>>()); }
TEST(VerifyFindsNothing, InLocalBatchNormThatIsMeant) {
  VerifyOptions options = soon();
  options.local_statistics = true;
  EXPECT_RIGHT(report_of<Normalised<false>>(options));
  const auto unmeant = report_of<Normalised<false>>();
  EXPECT_NAMED(unmeant, Mistake::other);
  EXPECT_THAT(unmeant.to_string(), HasSubstr("local_statistics"));
}

struct OwnRowsWithSynchronizedBatchNorm : Normalised<true> {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor x = norm(batch.x, {.training = true});
    const Tensor loss = mean(errors({x, batch.y})) / (averaged ? replica_count() : 1);
    optimizer.minimize(loss, variables(), tape);
    return loss;
  }
  bool averaged = false;
};
struct MeanOfMeansWithSynchronizedBatchNorm : OwnRowsWithSynchronizedBatchNorm {
  MeanOfMeansWithSynchronizedBatchNorm() { averaged = true; }
};
TEST(VerifyNames, ALossDividedByTheRowsOfAReplicaWhereAllRowsMeet) {
  EXPECT_NAMED(report_of<OwnRowsWithSynchronizedBatchNorm>(), Mistake::per_replica_divisor);
  EXPECT_NAMED(report_of<MeanOfMeansWithSynchronizedBatchNorm>(), Mistake::per_replica_divisor);
}

struct ClipsWithLocalBatchNorm : Normalised<false> {
  void step(const Rows& batch) {
    GradientTape tape;
    const Tensor x = norm(batch.x, {.training = true});
    const Tensor loss = nn::compute_average_loss(errors({x, batch.y}));
    optimizer.apply_gradients(optim::clip_by_global_norm(tape.gradient(loss, variables()), 0.2),
                              variables());
  }
};
TEST(VerifyNames, GradientsClippedBeforeTheyAreSummedBesidesALocalBatchNorm) {
  VerifyOptions options = soon();
  options.local_statistics = true;
  EXPECT_NAMED(report_of<ClipsWithLocalBatchNorm>(options), Mistake::clipped_before_aggregation);
}

// The first bias has no gradient but rounding, of which Adam makes full steps.
struct BiasBeforeBatchNorm {
  std::vector<Variable> variables() const { return model.trainable_variables(); }
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor errors = square(model(batch.x, {.training = true}) - batch.y);
    const Tensor loss = nn::compute_average_loss(errors);
    optimizer.minimize(loss, variables(), tape);
    return loss;
  }
  nn::Sequential model{nn::Dense(4, 64), nn::BatchNorm(64, {.synchronized = true}),
                       nn::Dense(64, 3)};
  optim::Adam optimizer;
};
TEST(VerifyFindsNothing, InRoundingThatAdamMakesLarge) {
  EXPECT_RIGHT(report_of<BiasBeforeBatchNorm>());
}

struct MixedFloat16 {
  std::vector<Variable> variables() const { return model.trainable_variables(); }
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(nn::mean_squared_error(batch.y, model(batch.x)));
    optimizer.minimize(loss, variables(), tape);
    return loss;
  }
  nn::Sequential model{nn::Dense(4, 5, {.activation = nn::tanh, .dtype = nn::mixed_float16}),
                       nn::Dense(5, 3, {.dtype = nn::mixed_float16})};
  optim::SGD sgd{{.learning_rate = 0.1}};
  optim::LossScaleOptimizer optimizer{sgd};
};
TEST(VerifyFindsNothing, InMixedPrecisionWithALossScale) {
  VerifyOptions options = soon();
  options.tolerance = 2e-2;
  EXPECT_RIGHT(report_of<MixedFloat16>(options));
}

struct WithMetric : Right {
  Tensor step(const Rows& batch) {
    mean_error.update_state(errors(batch));
    return Right::step(batch);
  }
  Tensor metric() const { return mean_error.result(); }
  metrics::Mean mean_error;
};
TEST(VerifyFindsNothing, InAMetricOverAllRows) { EXPECT_RIGHT(report_of<WithMetric>()); }

struct Words {
  Tensor word, next;
};
struct WithEmbedding {
  std::vector<Variable> variables() const { return model.trainable_variables(); }
  Tensor step(const Words& batch) {
    GradientTape tape;
    const Tensor loss =
        nn::compute_average_loss(nn::sparse_softmax_cross_entropy(batch.next, model(batch.word)));
    optimizer.minimize(loss, variables(), tape);
    return loss;
  }
  nn::Sequential model{nn::Embedding(20, 4), nn::Dense(4, 6)};
  optim::SGD optimizer{{.learning_rate = 0.1}};
};
TEST(VerifyFindsNothing, InAnEmbedding) {
  const Words words{testing::vec<std::int64_t>({1, 5, 1, 19, 3, 3, 7, 5}),
                    testing::vec<std::int64_t>({0, 1, 2, 3, 4, 5, 0, 1})};
  EXPECT_RIGHT(verify<WithEmbedding>(words, soon()));
}

}  // namespace
}  // namespace lockstep
