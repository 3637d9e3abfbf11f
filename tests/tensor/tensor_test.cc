// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/tensor.h>

#include <cmath>
#include <functional>
#include <limits>

#include "support/errors.h"

namespace lockstep {
namespace {

using testing::caught;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Int64 = std::numeric_limits<std::int64_t>;

struct Call {
  const char* name;
  std::function<void(const Tensor&)> run;
  int line;
};

TEST(Tensor, UndefinedOnesNameTheCallAndItsLine) {
  const Call calls[] = {
      {"Tensor::dtype", [](const Tensor& x) { x.dtype(); }, __LINE__},
      {"Tensor::shape", [](const Tensor& x) { x.shape(); }, __LINE__},
      {"Tensor::shape", [](const Tensor& x) { x.rank(); }, __LINE__},
      {"Tensor::shape", [](const Tensor& x) { x.dim(0); }, __LINE__},
      {"Tensor::shape", [](const Tensor& x) { x.num_elements(); }, __LINE__},
      {"Tensor::shape", [](const Tensor& x) { x.bytes(); }, __LINE__},
      {"Tensor::device", [](const Tensor& x) { x.device(); }, __LINE__},
      {"Tensor::key", [](const Tensor& x) { x.key(); }, __LINE__},
      {"Tensor::trainable", [](const Tensor& x) { x.trainable(); }, __LINE__},
      {"Tensor::buffer", [](const Tensor& x) { x.buffer(); }, __LINE__},
      {"Tensor::data", [](const Tensor& x) { x.data<float>(); }, __LINE__},
      {"Tensor::data", [](const Tensor& x) { x.to_vector<float>(); }, __LINE__},
      {"Tensor::item", [](const Tensor& x) { x.item<float>(); }, __LINE__},
      {"Tensor::item", [](const Tensor& x) { x.item<int>(); }, __LINE__},
      {"zeros_like", [](const Tensor& x) { zeros_like(x); }, __LINE__},
      {"ones_like", [](const Tensor& x) { ones_like(x); }, __LINE__},
      {"copy_to", [](const Tensor& x) { copy_to(x, Device{}); }, __LINE__},
  };
  for (const Call& call : calls) {
    SCOPED_TRACE(call.line);
    const auto error = caught<InvalidArgument>([&] { call.run(Tensor()); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message(), StartsWith("[" + std::string(call.name) + "] "));
    EXPECT_THAT(error->message(), HasSubstr("undefined"));
    EXPECT_THAT(error->location().file, HasSubstr("tensor_test.cc"));
    EXPECT_EQ(error->location().line, call.line);
  }
}

TEST(Tensor, AxesOutOfRangeNameTheCallersLine) {
  const Tensor x = zeros({2, 3});
  const auto error = caught<InvalidArgument>([&] { x.dim(2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->location().line, __LINE__ - 2);
}

// As cast: what an integer cannot hold is its nearest value, and NaN is 0.
TEST(Tensor, ItemsSaturate) {
  EXPECT_EQ(Tensor(1e30).item<std::int64_t>(), Int64::max());
  EXPECT_EQ(Tensor(-1e30f).item<std::int64_t>(), Int64::min());
  EXPECT_EQ(Tensor(NAN).item<std::int64_t>(), 0);
  EXPECT_EQ(Tensor(300.0).item<std::uint8_t>(), 255);
  EXPECT_EQ(Tensor(-1.0).item<std::uint8_t>(), 0);
  EXPECT_EQ(Tensor(Int64::min()).item<int>(), std::numeric_limits<int>::min());
  EXPECT_EQ(Tensor(std::int64_t{-1}).item<std::uint64_t>(), 0u);
  EXPECT_EQ(Tensor(0.5).item<int>(), 0);
  EXPECT_TRUE(Tensor(0.5).item<bool>());
  EXPECT_EQ(Tensor(std::int64_t{1} << 62).item<std::int64_t>(), std::int64_t{1} << 62);
}

}  // namespace
}  // namespace lockstep
