// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::name_of;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;

class Loss : public ::testing::TestWithParam<ReplicaThreads> {
 protected:
  // The sum over two replicas of what each computes.
  template <class F>
  double on_two_replicas(const F& step) const {
    const auto strategy = replicas(2, GetParam());
    return strategy.reduce(ReduceOp::sum, strategy.run(step)).template item<double>();
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, Loss, ::testing::ValuesIn(testing::kBothModes),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Loss, LOS01_TheMeanOverTheGlobalBatch) {
  const Tensor losses = vec({2.5f, 6.2f, 5});
  EXPECT_NEAR(nn::compute_average_loss(losses).item<double>(), 4.566667, 1e-6);
  EXPECT_NEAR(on_two_replicas([&] { return nn::compute_average_loss(losses); }), 4.566667, 1e-6);
}

TEST_P(Loss, LOS03_ByAGivenSize) {
  const Tensor losses = vec({1, 2, 3, 4, 5});
  const auto divided_by = [&](std::int64_t size) {
    return nn::compute_average_loss(losses, {.global_batch_size = size}).item<double>();
  };
  EXPECT_EQ(divided_by(5), 3);
  EXPECT_EQ(divided_by(10), 1.5);
  EXPECT_EQ(divided_by(0), 0);
  EXPECT_THAT([&] { divided_by(-1); }, throws<InvalidArgument>("[compute_average_loss]", "-1"));
  // 10.0 and [10], which TensorFlow refuses when they are used, do not compile.
  static_assert(!std::is_convertible_v<double, nn::ExampleCount>);
  static_assert(!std::is_convertible_v<Tensor, nn::ExampleCount>);
  EXPECT_THAT(
      [&] {
        nn::compute_average_loss(losses, {.count = vec<std::int64_t>({10, 10})});
      },
      throws<InvalidArgument>("[compute_average_loss]"));
}

TEST_P(Loss, LOS04_NoRowsScalarsAndTheCrossReplicaSide) {
  EXPECT_EQ(on_two_replicas([] { return nn::compute_average_loss(zeros({0})); }), 0);
  EXPECT_THAT([] { nn::compute_average_loss(Tensor(1.0f)); },
              throws<InvalidArgument>("[compute_average_loss]"));
  const auto strategy = replicas(2, GetParam());
  const auto scope = strategy.scope();
  EXPECT_THAT(
      [] {
        nn::compute_average_loss(vec({2, 3}));
      },
      throws<FailedPrecondition>("[compute_average_loss]"));
  EXPECT_EQ(nn::compute_average_loss(vec({2, 3}), {.global_batch_size = 2}).item<double>(), 2.5);
}

TEST_P(Loss, LOS06_APenaltyCountsOnce) {
  const Tensor penalty = vec({2.5f, 6.2f, 5});
  EXPECT_NEAR(on_two_replicas([&] { return nn::scale_regularization_loss(penalty); }), 13.7, 1e-5);
  const auto strategy = replicas(2, GetParam());
  const auto scope = strategy.scope();
  EXPECT_THAT([&] { nn::scale_regularization_loss(penalty); },
              throws<FailedPrecondition>("[scale_regularization_loss]"));
}

}  // namespace
}  // namespace lockstep
