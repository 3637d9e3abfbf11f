// SPDX-License-Identifier: Apache-2.0
#include "comm/call.h"

#include <gtest/gtest.h>
#include <lockstep/base/error.h>

namespace lockstep {
namespace {

TEST(CollectiveKey, PrintsChannelSequenceAndName) {
  EXPECT_EQ((CollectiveKey{.channel = Channel::gradients, .sequence = 3, .name = "dense/kernel"}
                 .to_string()),
            "gradients/3 \"dense/kernel\"");
  EXPECT_EQ((CollectiveKey{.channel = Channel::control, .sequence = 7}.to_string()), "control/7");
}

TEST(CollectiveCall, PrintsAllThatRanksMustAgreeOn) {
  float x[6];
  const Elements six{x, 6, DType::f32}, three{x, 3, DType::f32};
  const CollectiveKey key{.sequence = 1, .name = "a"};
  EXPECT_EQ(all_reduce_call(key, ReduceOp::mean, six, six).to_string(),
            "all_reduce mean f32[6] user/1 \"a\"");
  EXPECT_EQ(reduce_scatter_call(key, ReduceOp::sum, six, three, 0, 2).to_string(),
            "reduce_scatter sum f32[6] user/1 \"a\"");
  EXPECT_EQ(all_gather_call(key, three, six, {}, 0, 2).to_string(),
            "all_gather f32[3] user/1 \"a\"");
  const std::int64_t counts[] = {3, 1, 2};
  EXPECT_EQ(all_gather_call(key, three, six, counts, 0, 3).to_string(),
            "all_gather f32[6] in all user/1 \"a\"");
  EXPECT_EQ(broadcast_call(key, 1, six, 2).to_string(),
            "broadcast from rank 1 f32[6] user/1 \"a\"");
  EXPECT_EQ(barrier_call(key).to_string(), "barrier user/1 \"a\"");
}

TEST(CollectiveCall, AgreesWithTheSameCallOfAnotherLine) {
  float x[6];
  const Elements six{x, 6, DType::f32}, three{x, 3, DType::f32};
  const auto call = [](std::int64_t sequence, ReduceOp op, Elements range, int line) {
    const CollectiveKey key{.sequence = sequence, .at = {"step.cc", line}};
    return all_reduce_call(key, op, range, range);
  };
  const CollectiveCall first = call(1, ReduceOp::sum, six, 10);
  EXPECT_TRUE(first.agrees_with(call(1, ReduceOp::sum, six, 20)));
  EXPECT_FALSE(first.agrees_with(call(2, ReduceOp::sum, six, 10)));
  EXPECT_FALSE(first.agrees_with(call(1, ReduceOp::mean, six, 10)));
  EXPECT_FALSE(first.agrees_with(call(1, ReduceOp::sum, three, 10)));
}

TEST(CollectiveCall, ArgumentsThatDoNotFitNameTheLineOfTheKey) {
  float x[6];
  const Elements six{x, 6, DType::f32}, three{x, 3, DType::f32};
  try {
    all_reduce_call({.at = {"step.cc", 10}}, ReduceOp::sum, six, three);
    ADD_FAILURE() << "nothing thrown";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.location().file, "step.cc");
    EXPECT_EQ(error.location().line, 10);
  }
}

TEST(CallName, ShowsBothEndsOfALongName) {
  const std::string kernel =
      "model/transformer/encoder/layer_11/attention/query/kernel f32[768, 2]";
  EXPECT_EQ(CallName(kernel).to_string(),
            '"' + kernel.substr(0, 20) + "..." + kernel.substr(kernel.size() - 36) + '"');
}

TEST(CallName, TellsLongNamesApartByTheirHiddenMiddles) {
  const std::string stem(100, 'x');
  EXPECT_EQ(CallName(stem + "a" + stem), CallName(stem + "a" + stem));
  EXPECT_NE(CallName(stem + "a" + stem), CallName(stem + "b" + stem));
  EXPECT_NE(CallName("a"), CallName("b"));
}

}  // namespace
}  // namespace lockstep
