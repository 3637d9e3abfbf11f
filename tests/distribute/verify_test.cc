// SPDX-License-Identifier: Apache-2.0
// verify() names the mistake that is planted in a step.
#include <atomic>
#include <map>
#include <mutex>

#include "distribute/verify_programs.h"
#include "support/errors.h"
#include "support/replicas.h"

namespace lockstep {
namespace {

using lockstep::testing::replica_index;
using lockstep::testing::throws;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- The eight mistakes, and forms of them.

struct MeanOfOwnRows : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = mean(errors(batch));
    minimize(loss, tape);
    return loss;
  }
};
TEST(VerifyNames, ALossDividedByTheRowsOfAReplica) {
  const auto report = report_of<MeanOfOwnRows>();
  EXPECT_NAMED(report, Mistake::per_replica_divisor);
  EXPECT_TRUE(report.names(Mistake::per_replica_divisor));
  EXPECT_FALSE(report.names(Mistake::averaged_twice));
  EXPECT_THAT(report.to_string(), HasSubstr("the factor is 2"));
  EXPECT_THAT(report.to_string(), HasSubstr("compute_average_loss"));
}

struct MeanOfMeans : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = sum(errors(batch)) / std::max(1.0, batch.x.dim(0) * replica_count());
    minimize(loss, tape);
    return loss;
  }
};
TEST(VerifyNames, AMeanOfMeans) {
  EXPECT_NAMED(report_of<MeanOfMeans>(), Mistake::per_replica_divisor);
}

struct OwnRowsWithRightPenalty : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    minimize(mean(errors(batch)) + nn::scale_regularization_loss(penalty()), tape);
  }
};
TEST(VerifyNames, ALossDividedByTheRowsOfAReplicaBesidesARightPenalty) {
  EXPECT_NAMED(report_of<OwnRowsWithRightPenalty>(), Mistake::per_replica_divisor);
}

struct PenaltyOnEach : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch)) + penalty();
    minimize(loss, tape);
    return loss;
  }
};
TEST(VerifyNames, APenaltyThatEachReplicaAdds) {
  const auto report = report_of<PenaltyOnEach>();
  EXPECT_NAMED(report, Mistake::regularizer_per_replica);
  EXPECT_THAT(report.to_string(), HasSubstr("scale_regularization_loss"));
}

struct SmallPenaltyUntold : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    minimize(loss + penalty(0.004), tape);
    return loss;
  }
};
TEST(VerifyNames, ASmallPenaltyThatOnlyTheUpdateKnows) {
  EXPECT_NAMED(report_of<SmallPenaltyUntold>(), Mistake::regularizer_per_replica);
}

struct ClipsOwnGradients : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    optimizer.apply_gradients(optim::clip_by_global_norm(gradients(loss, tape), norm), variables());
    return loss;
  }
  double norm = 0.5;
};
TEST(VerifyNames, GradientsClippedBeforeTheyAreSummed) {
  const auto report = report_of<ClipsOwnGradients>();
  EXPECT_NAMED(report, Mistake::clipped_before_aggregation);
  EXPECT_THAT(report.to_string(), HasSubstr("optimizer clip"));
}

struct ClipsFewGradients : ClipsOwnGradients {
  ClipsFewGradients() { norm = 2; }
};
TEST(VerifyNames, GradientsOfWhichFewAreClippedBeforeTheyAreSummed) {
  EXPECT_NAMED(report_of<ClipsFewGradients>(), Mistake::clipped_before_aggregation);
}

struct ClipsSomeElements : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    std::vector<Tensor> clipped = gradients(nn::compute_average_loss(errors(batch)), tape);
    for (Tensor& gradient : clipped) gradient = minimum(maximum(gradient, -0.1), 0.1);
    optimizer.apply_gradients(clipped, variables());
  }
};
TEST(VerifyNames, GradientsWhoseElementsAreClippedBeforeTheyAreSummed) {
  EXPECT_NAMED(report_of<ClipsSomeElements>(), Mistake::clipped_before_aggregation);
}

struct CountsItsCalls : Regression {
  Tensor step(const Rows& batch) {
    const double turn = calls++;  // whose turn it is
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    minimize(loss * (1 + 0.1 * turn), tape);
    return loss;
  }
  std::atomic<int> calls{0};  // atomic: what is planted is the order, not undefined behaviour
};
TEST(VerifyNames, StateThatReplicasRaceFor) {
  const auto report = report_of<CountsItsCalls>();
  EXPECT_NAMED(report, Mistake::shared_state_raced);
  EXPECT_THAT(report.to_string(), HasSubstr("ReplicaLocal"));
}

struct SharesAnEngine : Regression {
  void step(const Rows& batch) {
    const double noise = draw();
    GradientTape tape;
    minimize(nn::compute_average_loss(errors({batch.x + noise, batch.y})), tape);
  }
  double draw() {
    const std::lock_guard lock(mutex);
    return static_cast<double>(engine() % 1000) / 1000;
  }
  std::mutex mutex;
  std::minstd_rand engine{7};
};
TEST(VerifyNames, ARandomEngineThatReplicasShare) {
  EXPECT_NAMED(report_of<SharesAnEngine>(), Mistake::shared_state_raced);
}

struct LastReplicaSkips : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    if (replica_index() == 1) return;
    minimize(loss, tape);
  }
};
TEST(VerifyNames, ACollectiveThatAReplicaMisses) {
  const auto report = report_of<LastReplicaSkips>();
  EXPECT_NAMED(report, Mistake::collective_missed);
  EXPECT_THAT(report.to_string(), HasSubstr("with 2 replicas and 8 rows"));
}

struct NoRowsNoStep : Regression {
  void step(const Rows& batch) {
    if (batch.x.dim(0) == 0) return;
    GradientTape tape;
    minimize(nn::compute_average_loss(errors(batch)), tape);
  }
};
TEST(VerifyNames, ACollectiveThatAReplicaWithoutRowsMisses) {
  const auto report = report_of<NoRowsNoStep>();
  EXPECT_NAMED(report, Mistake::collective_missed);
  EXPECT_THAT(report.to_string(), HasSubstr("with 4 replicas and 5 rows"));
}

struct MakesAVariableWithRows : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    Tensor loss = nn::compute_average_loss(errors(batch));
    if (batch.x.dim(0) > 0) loss = loss * Variable(Tensor(2.0f)).read();
    minimize(loss, tape);
  }
};
TEST(VerifyNames, AVariableThatAReplicaWithoutRowsDoesNotMake) {
  const auto report = report_of<MakesAVariableWithRows>();
  EXPECT_NAMED(report, Mistake::collective_missed);
  EXPECT_THAT(report.to_string(), HasSubstr("making a variable"));
}

struct AppliesItsOwn : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    optimizer.apply_gradients(gradients(loss, tape), variables(), {.aggregate = false});
  }
};
TEST(VerifyNames, GradientsThatNobodySums) {
  const auto report = report_of<AppliesItsOwn>();
  EXPECT_NAMED(report, Mistake::collective_missed);
  EXPECT_THAT(report.to_string(), HasSubstr("differ after a step"));
}

struct DividedByReplicasToo : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    minimize(loss / replica_count(), tape);
    return loss;
  }
};
TEST(VerifyNames, ALossAveragedTwice) {
  const auto report = report_of<DividedByReplicasToo>();
  EXPECT_NAMED(report, Mistake::averaged_twice);
  EXPECT_THAT(report.to_string(), HasSubstr("the factor is 0.5"));
}

struct DividedBesidesARightPenalty : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch)) / replica_count();
    minimize(loss + nn::scale_regularization_loss(penalty()), tape);
  }
};
TEST(VerifyNames, ALossAveragedTwiceBesidesARightPenalty) {
  EXPECT_NAMED(report_of<DividedBesidesARightPenalty>(), Mistake::averaged_twice);
}

struct MeanOfMetrics : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    const Tensor all = errors(batch);
    minimize(nn::compute_average_loss(all), tape);
    own.assign(sum(all) / std::max<double>(1, all.num_elements()));
  }
  Tensor metric() const { return own.read(); }
  Variable own{Tensor(0.0f),
               {.synchronization = VariableSynchronization::on_read,
                .aggregation = VariableAggregation::mean}};
};
TEST(VerifyNames, AMetricAveragedOverReplicas) {
  const auto report = report_of<MeanOfMetrics>();
  EXPECT_NAMED(report, Mistake::metric_averaged);
  EXPECT_THAT(report.to_string(), HasSubstr("with 2 replicas and 7 rows"));
}

struct NoiseOfTheProcess : Regression {
  void step(const Rows& batch) {
    static std::atomic<unsigned> draws{0};  // goes on from run to run
    std::minstd_rand engine(++draws);
    engine.discard(3);
    const double noise = static_cast<double>(engine() % 1000) / 1000;
    GradientTape tape;
    minimize(nn::compute_average_loss(errors({batch.x + noise, batch.y})), tape);
  }
};
TEST(VerifyNames, RandomNumbersThatARerunDoesNotRepeat) {
  const auto report = report_of<NoiseOfTheProcess>();
  EXPECT_NAMED(report, Mistake::outside_randomness);
  EXPECT_THAT(report.to_string(), HasSubstr("ops/random.h"));
}

struct SameNoiseOnAllReplicas : Regression {
  Tensor step(const Rows& batch) {
    Noise noise(3);
    GradientTape tape;
    const Tensor x = batch.x + noise.tensor<float>(batch.x.shape());
    const Tensor loss = nn::compute_average_loss(errors({x, batch.y}));
    minimize(loss, tape);
    return loss;
  }
};
TEST(VerifyNames, RandomNumbersThatAreTheSameOnAllReplicas) {
  EXPECT_NAMED(report_of<SameNoiseOnAllReplicas>(), Mistake::outside_randomness);
}

struct WeightsOfTheProcess : Regression {
  WeightsOfTheProcess() {
    static std::atomic<int> made{0};
    Variable bias = model.variables()[1];
    bias.assign(zeros({5}) + static_cast<double>(made++));
  }
  void step(const Rows& batch) {
    GradientTape tape;
    minimize(nn::compute_average_loss(errors(batch)), tape);
  }
};
TEST(VerifyNames, WeightsThatBeginElsewhereEachTime) {
  const auto report = report_of<WeightsOfTheProcess>();
  EXPECT_NAMED(report, Mistake::outside_randomness);
  EXPECT_THAT(report.to_string(), HasSubstr("do not start at the same values"));
}

// ---- Two at once, and what has no name.

struct TwoMistakes : MeanOfMetrics {
  void step(const Rows& batch) {
    GradientTape tape;
    const Tensor all = errors(batch);
    minimize(nn::compute_average_loss(all) + penalty(), tape);
    own.assign(sum(all) / std::max<double>(1, all.num_elements()));
  }
};
TEST(VerifyNames, EachOfTwoMistakes) {
  EXPECT_NAMED(report_of<TwoMistakes>(), Mistake::regularizer_per_replica,
               Mistake::metric_averaged);
}

struct PenaltyUnderAdam : Regression {
  Tensor step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch));
    adam.minimize(loss + penalty(0.5), Regression::variables(), tape);
    return loss;
  }
  optim::Adam adam;
};
TEST(VerifyNames, AllThatGiveTheSameNumbers) {
  EXPECT_NAMED(report_of<PenaltyUnderAdam>(), Mistake::clipped_before_aggregation,
               Mistake::regularizer_per_replica, Mistake::averaged_twice);
}

template <class P>
struct TellsSlots : P {
  TellsSlots() { this->adam.build(P::variables()); }
  std::vector<Variable> variables() const {
    std::vector<Variable> all = P::variables();
    for (const Variable& weight : P::variables()) all.push_back(this->adam.slot(weight, "m"));
    return all;
  }
};
TEST(VerifyNames, TheOneOfThemThatSlotsTell) {
  EXPECT_NAMED(report_of<TellsSlots<PenaltyUnderAdam>>(), Mistake::regularizer_per_replica);
}

struct DividedUnderAdam : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(errors(batch)) / replica_count();
    adam.minimize(loss, Regression::variables(), tape);
  }
  optim::Adam adam;
};
TEST(VerifyNames, AnAverageThatAdamHidesAndItsSlotsTell) {
  EXPECT_RIGHT(report_of<DividedUnderAdam>()) << "the update is right";
  EXPECT_NAMED(report_of<TellsSlots<DividedUnderAdam>>(), Mistake::averaged_twice);
}

struct SummedTwice : Regression {
  void step(const Rows& batch) {
    GradientTape tape;
    std::vector<Tensor> summed = gradients(nn::compute_average_loss(errors(batch)), tape);
    for (Tensor& each : summed) each = get_replica_context()->all_reduce(ReduceOp::sum, each);
    optimizer.apply_gradients(summed, variables());
  }
};
TEST(VerifyNames, NoneOfThemForGradientsSummedTwice) {
  const auto report = report_of<SummedTwice>();
  EXPECT_NAMED(report, Mistake::other);
  EXPECT_THAT(report.to_string(), HasSubstr("twice"));
}

struct Throws : Regression {
  void step(const Rows& batch) {
    require(batch.x.dim(0) > 0, SourceLocation::current(), "test", "no rows");
    GradientTape tape;
    minimize(nn::compute_average_loss(errors(batch)), tape);
  }
};
TEST(VerifyNames, NoneOfThemForAStepThatThrows) {
  const auto report = report_of<Throws>();
  EXPECT_NAMED(report, Mistake::other);
  EXPECT_THAT(report.to_string(), HasSubstr("no rows"));
}

struct DoesNothing : Regression {
  void step(const Rows&) {}
};
TEST(VerifyNames, NoneOfThemForAStepWithoutUpdate) {
  const auto report = report_of<DoesNothing>();
  EXPECT_NAMED(report, Mistake::other);
  EXPECT_THAT(report.to_string(), HasSubstr("update none"));
}

struct MakesItsModel : Regression {
  Tensor step(const Rows& batch) {
    Right made;
    return made.step(batch);
  }
};
TEST(VerifyNames, NoneOfThemForAStepThatMakesItsModel) {
  const auto report = report_of<MakesItsModel>();
  EXPECT_NAMED(report, Mistake::other);
  EXPECT_THAT(report.to_string(), HasSubstr("what step() makes is new in every call"));
}

// ---- What it asks for.

TEST(Verify, RefusesWhatItCannotCompare) {
  EXPECT_THAT([] { verify<Right>(rows(7)); },
              throws<InvalidArgument>("[verify]", "at least 8 rows", "got 7"));
  EXPECT_THAT([] { verify<Right>(rows(), {.tolerance = 0}); },
              throws<InvalidArgument>("tolerance", "got 0"));
  EXPECT_THAT([] { verify<Right>(rows(), {.deadline = std::chrono::seconds(0)}); },
              throws<InvalidArgument>("deadline", "got 0 ms"));
}

struct Broken : Regression {
  void step(const Rows&) { throw ResourceExhausted("[test] out of paper"); }
};
TEST(Verify, ThrowsWhatAStepThrowsOnOneReplica) {
  EXPECT_THAT([] { report_of<Broken>(); }, throws<ResourceExhausted>("out of paper"));
}

TEST(Verify, AsksForTheStrategiesItRuns) {
  std::map<std::size_t, int> made;
  VerifyOptions options = soon();
  options.seed = 9;
  options.make_strategy = [&](const MirroredOptions& of) {
    ++made[of.devices.size()];
    EXPECT_EQ(of.seed, 9u);
    EXPECT_EQ(of.communication.timeout, std::chrono::seconds(2));
    return MirroredStrategy(of);
  };
  EXPECT_RIGHT(report_of<Right>(options));
  EXPECT_THAT(made, ElementsAre(::testing::Key(1), ::testing::Key(2), ::testing::Key(4)));
}

}  // namespace
}  // namespace lockstep
