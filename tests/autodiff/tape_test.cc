// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/matmul.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/replica/variable.h>

#include <thread>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::throws;
using lockstep::testing::vec;

double gradient_of(const Tensor& y, const Tensor& x, GradientTape& tape) {
  return tape.gradient(y, {x})[0].item<double>();
}

TEST(Tape, FollowsAChain) {
  const Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(gradient_of(square(square(x)), x, tape), 32);  // (x^4)' = 4 x^3
}

TEST(Tape, AddsTheContributionsOfEveryUse) {
  const Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(gradient_of(x * x * x + 3 * x, x, tape), 15);  // 3 x^2 + 3
}

TEST(Tape, TakesOneValueAsBothArguments) {
  const Tensor x(5.0f);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(gradient_of(mul(x, x), x, tape), 10);
}

TEST(Tape, AnswersForASourceThatIsNamedTwice) {
  const Tensor x(5.0f);
  GradientTape tape;
  tape.watch(x);
  std::vector<std::size_t> ready;
  const auto gradients =
      tape.gradient(square(x), {x, x}, {.on_ready = [&](std::size_t i, const Tensor& g) {
                      ready.push_back(i);
                      EXPECT_EQ(g.item<float>(), 10);
                    }});
  EXPECT_EQ(gradients[0].item<float>(), 10);
  EXPECT_EQ(gradients[1].item<float>(), 10);
  EXPECT_THAT(ready, ::testing::UnorderedElementsAre(0, 1));
}

TEST(Tape, TargetThatIsTheSource) {
  const Tensor x = vec({4, 5});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(x, {x})[0], holds({1, 1}));
}

TEST(Tape, TargetThatIsAVariablesValue) {
  const Variable v(vec({1, 2}));
  GradientTape tape;
  const Tensor value = v.read();
  EXPECT_THAT(tape.gradient(value, std::vector<Variable>{v})[0], holds({1, 1}));
}

TEST(Tape, SumsTheElementsOfTheTarget) {
  const Tensor x = vec({1, 2, 3});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(square(x), {x})[0], holds({2, 4, 6}));
}

TEST(Tape, WeighsTheElementsOfTheTarget) {
  const Tensor x = vec({1, 2, 3});
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(tape.gradient(square(x), {x}, {.target_gradient = vec({1, 0, -1})})[0],
              holds({2, 0, -6}));
}

TEST(Tape, RefusesATargetGradientThatDoesNotFit) {
  const Tensor x = vec({1, 2, 3});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = square(x);
  EXPECT_THAT(
      [&] {
        tape.gradient(y, {x}, {.target_gradient = vec({1, 0})});
      },
      throws<InvalidArgument>("[GradientTape::gradient]", "f32[3]", "f32[2]"));
}

TEST(Tape, LeavesOutWhatTheTargetDoesNotDependOn) {
  const Tensor used(3.0f), unused(4.0f), elsewhere(5.0f);
  GradientTape tape;
  tape.watch(used);
  tape.watch(elsewhere);
  const Tensor y = square(used);
  const Tensor other = square(elsewhere);
  const auto gradients = tape.gradient(y, {used, unused, elsewhere});
  EXPECT_EQ(gradients[0].item<float>(), 6);
  EXPECT_FALSE(gradients[1].defined()) << "never watched";
  EXPECT_FALSE(gradients[2].defined()) << "on the tape, but not on the way to the target";
}

TEST(Tape, DoesNotWatchAConstantThatStandsBesideAWatchedValue) {
  const Tensor x(3.0f), constant(4.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * constant;
  EXPECT_FALSE(recording({&constant}));
  const auto gradients = tape.gradient(y * square(constant), {x, constant});
  EXPECT_EQ(gradients[0].item<float>(), 64);
  EXPECT_FALSE(gradients[1].defined());
}

TEST(Tape, GivesNothingForATargetOffTheTape) {
  const Tensor x(3.0f), y(4.0f);
  GradientTape tape;
  tape.watch(x);
  int ready = 0;
  const auto gradients =
      tape.gradient(square(y), {x}, {.on_ready = [&](std::size_t, const Tensor& g) {
                      ++ready;
                      EXPECT_FALSE(g.defined());
                    }});
  EXPECT_FALSE(gradients[0].defined());
  EXPECT_EQ(ready, 1);
}

TEST(Tape, PassesOverOpsWithoutGradient) {
  const Tensor x(-3.0f);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(gradient_of(x * sign(x) + floor(x), x, tape), -1);  // sign and floor count as constants
}

TEST(Tape, GivesTheGradientsOfIntermediateValues) {
  const Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor h = square(x);
  const auto gradients = tape.gradient(square(h), {h, x});
  EXPECT_EQ(gradients[0].item<float>(), 8);   // 2 h
  EXPECT_EQ(gradients[1].item<float>(), 32);  // 4 x^3
}

TEST(Tape, WatchesTrainableVariablesByItself) {
  const Variable w(Tensor(3.0f)), fixed(Tensor(4.0f), {.trainable = false});
  GradientTape tape;
  const auto gradients = tape.gradient(w * fixed, std::vector{w, fixed});
  EXPECT_EQ(gradients[0].item<float>(), 4);
  EXPECT_FALSE(gradients[1].defined());
}

TEST(Tape, WatchesAFixedVariableOnRequest) {
  const Variable fixed(Tensor(4.0f), {.trainable = false});
  GradientTape tape;
  tape.watch(fixed.read());
  EXPECT_EQ(gradient_of(square(fixed), fixed, tape), 8);
}

TEST(Tape, CanBeToldToWatchNothingByItself) {
  const Variable w(Tensor(3.0f));
  const Tensor x(2.0f);
  GradientTape tape({.watch_trainable = false});
  tape.watch(x);
  const auto gradients = tape.gradient(w * x, {w, x});
  EXPECT_FALSE(gradients[0].defined());
  EXPECT_EQ(gradients[1].item<float>(), 3);
}

TEST(Tape, KnowsAVariableByItsKeyAfterAnAssignment) {
  Variable w(Tensor(3.0f));
  w.assign(Tensor(5.0f));
  GradientTape tape;
  EXPECT_EQ(gradient_of(square(w), w, tape), 10);
}

TEST(Tape, RecordsNothingWhilePaused) {
  const Tensor x(3.0f);
  GradientTape tape;
  tape.watch(x);
  Tensor factor;
  {
    const auto paused = tape.stop_recording();
    const auto again = tape.stop_recording();
    factor = square(x);
  }
  EXPECT_EQ(gradient_of(factor * x, x, tape), 9) << "the factor counts as a constant";
}

TEST(Tape, ServesOneCall) {
  const Tensor x(3.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = square(x);
  tape.gradient(y, {x});
  EXPECT_THAT([&] { tape.gradient(y, {x}); },
              throws<FailedPrecondition>("[GradientTape::gradient]", "persistent"));
}

TEST(Tape, ServesManyCallsWhenPersistent) {
  const Tensor x(3.0f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = square(x);
  const Tensor z = y * x;
  EXPECT_EQ(gradient_of(y, x, tape), 6);
  EXPECT_EQ(gradient_of(z, x, tape), 27);
  EXPECT_EQ(gradient_of(y, x, tape), 6);
  const Tensor later = z * 2;  // recording goes on between the calls
  EXPECT_EQ(gradient_of(later, x, tape), 54);
}

TEST(Tape, SurvivesARuleThatThrows) {
  const Tensor x(3.0f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = square(x);
  EXPECT_THAT(
      [&] {
        tape.gradient(y, {x}, {.on_ready = [](std::size_t, const Tensor&) {
                        throw std::runtime_error("stop");
                      }});
      },
      throws<std::runtime_error>("stop"));
  EXPECT_EQ(gradient_of(y, x, tape), 6);
}

TEST(NestedTapes, GiveTheSecondDerivative) {
  const Tensor x(2.0f);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(x * x * x, {x})[0];
  }
  EXPECT_EQ(first.item<float>(), 12);
  EXPECT_EQ(gradient_of(first, x, outer), 12);  // 6 x
}

TEST(NestedTapes, GiveTheThirdDerivative) {
  const Tensor x(2.0f);
  GradientTape first, second, third;
  for (GradientTape* tape : {&first, &second, &third}) tape->watch(x);
  const Tensor d1 = third.gradient(square(square(x)), {x})[0];
  const Tensor d2 = second.gradient(d1, {x})[0];
  EXPECT_EQ(gradient_of(d2, x, first), 48);  // 24 x
}

TEST(NestedTapes, FollowAMatrixProductTwice) {
  // f = sum((x w)^2) has the Hessian-vector product 2 x^T x v.
  const Tensor x(Shape{2, 2}, {1.0f, 2.0f, 3.0f, 4.0f});
  const Tensor w(Shape{2, 1}, {1.0f, -1.0f}), v(Shape{2, 1}, {1.0f, 0.0f});
  GradientTape outer;
  outer.watch(w);
  GradientTape inner;
  inner.watch(w);
  const Tensor gradient = inner.gradient(sum(square(matmul(x, w))), {w})[0];
  EXPECT_THAT(outer.gradient(sum(gradient * v), {w})[0], holds({20, 28}));
}

TEST(NestedTapes, SeeOnlyWhatEachWatches) {
  const Tensor a(2.0f), b(3.0f);
  GradientTape outer;
  outer.watch(a);
  GradientTape inner;
  inner.watch(b);
  const Tensor y = a * b;
  EXPECT_EQ(gradient_of(y, b, inner), 2);
  EXPECT_EQ(gradient_of(y, a, outer), 3);
}

TEST(Tape, DoesNotSeeOtherThreads) {
  const Variable w(Tensor(3.0f));
  GradientTape tape;
  Tensor y;
  std::thread([&] { y = square(w); }).join();
  EXPECT_FALSE(tape.gradient(y, {w})[0].defined());
}

TEST(Tape, EachThreadHasItsOwn) {
  const Variable w(Tensor(3.0f));
  std::vector<double> gradients(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        GradientTape tape;
        gradients[i] = gradient_of(square(w) * static_cast<double>(i), w, tape);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(gradients, ::testing::ElementsAre(0, 6, 12, 18));
}

}  // namespace
}  // namespace lockstep
