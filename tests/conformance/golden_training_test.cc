// SPDX-License-Identifier: Apache-2.0
// Training as TensorFlow trains: see golden_training.h.
#include <gtest/gtest.h>

#include "conformance/golden_training.h"

namespace lockstep::testing {
namespace {

const GoldenProgram kMlp = {
    .data =
        [](Noise& noise, std::int64_t rows) {
          return classified(noise, {rows, 64}, 10);
        },
    .make =
        [] {
          return classifier(nn::Sequential{nn::Dense(64, 256, {.activation = nn::relu}),
                                           nn::Dense(256, 144, {.activation = nn::tanh}),
                                           nn::Dense(144, 10)});
        },
};

TEST(GoldenTraining, MlpWithSgd) { expect_trained_as_golden("mlp_sgd", kMlp); }
TEST(GoldenTraining, MlpWithMomentum) { expect_trained_as_golden("mlp_momentum", kMlp); }
TEST(GoldenTraining, MlpWithAdam) { expect_trained_as_golden("mlp_adam", kMlp); }

}  // namespace
}  // namespace lockstep::testing
