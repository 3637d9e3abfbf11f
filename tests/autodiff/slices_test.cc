// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/gather.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/tensor/factory.h>

#include <map>

#include "support/errors.h"
#include "support/values.h"

namespace lockstep {
namespace {

using namespace testing;  // NOLINT

// What on_slices and on_ready were called with.
struct Received {
  std::map<std::size_t, IndexedSlices> slices;
  std::map<std::size_t, Tensor> dense;

  GradientOptions options() {
    return {.on_ready = [this](std::size_t i, const Tensor& g) { dense[i] = g; },
            .on_slices = [this](std::size_t i, const IndexedSlices& g) { slices[i] = g; }};
  }
};

Tensor table() { return Noise(1).tensor<double>({5, 2}); }
Tensor ids() { return Tensor(Shape{2, 2}, {3, 0, 3, 1}); }

TEST(Slices, OfRowsThatWereRead) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor loss = sum(square(embedding_lookup(x, ids())));
  Received got;
  const auto gradients = tape.gradient(loss, {x}, got.options());
  EXPECT_FALSE(gradients[0].defined());
  EXPECT_TRUE(got.dense.empty());
  const IndexedSlices& slices = got.slices.at(0);
  EXPECT_EQ(slices.shape, x.shape());
  EXPECT_THAT(slices.indices, holds<int>({3, 0, 3, 1}));
  EXPECT_EQ(slices.values.shape(), (Shape{4, 2}));
  EXPECT_THAT(slices.values, holds<double>((2 * gather(x, ids())).to_vector<double>()));
  // Row 3 was read twice.
  const Tensor counts = Tensor(Shape{5, 1}, {1.0, 1.0, 0.0, 2.0, 0.0});
  EXPECT_THAT(to_dense(slices), holds<double>((2 * x * counts).to_vector<double>()));
}

TEST(Slices, OfSeveralReadsAreJoined) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor more = vec<std::int64_t>({2});
  const Tensor loss = sum(gather(x, ids())) + sum(gather(x, more) * 3);
  Received got;
  static_cast<void>(tape.gradient(loss, {x}, got.options()));
  EXPECT_EQ(got.slices.at(0).indices.num_elements(), 5);
  EXPECT_THAT(to_dense(got.slices.at(0)), holds<double>({1, 1, 1, 1, 3, 3, 2, 2, 0, 0}));
}

TEST(Slices, AreDenseForWhoDoesNotAsk) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor loss = sum(gather(x, ids()));
  EXPECT_THAT(tape.gradient(loss, {x})[0], holds<double>({1, 1, 1, 1, 0, 0, 2, 2, 0, 0}));
}

TEST(Slices, AreDenseWhereTheSourceWasUsedOtherwise) {
  const Tensor x = table(), y = table();
  for (const bool first : {true, false}) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(y);
    const Tensor rows = first ? sum(gather(x, ids())) : Tensor();
    const Tensor all = sum(x) * 2 + sum(gather(y, ids()));
    const Tensor loss = all + (first ? rows : sum(gather(x, ids())));
    Received got;
    const auto gradients = tape.gradient(loss, {x, y}, got.options());
    EXPECT_THAT(gradients[0], holds<double>({3, 3, 3, 3, 2, 2, 4, 4, 2, 2}));
    EXPECT_EQ(got.dense.size(), 1u);
    EXPECT_EQ(got.slices.count(0), 0u);
    EXPECT_EQ(got.slices.count(1), 1u);
  }
}

TEST(Slices, OfAColumnOrAComputedSourceAreDense) {
  const Tensor x = table();
  GradientTape tape;
  tape.watch(x);
  const Tensor twice = x * 2;
  const Tensor loss = sum(gather(twice, ids())) + sum(gather(x, vec<std::int64_t>({1}), 1));
  Received got;
  const auto gradients = tape.gradient(loss, {x, twice}, got.options());
  EXPECT_TRUE(got.slices.empty());
  EXPECT_THAT(gradients[0], holds<double>({2, 3, 2, 3, 0, 1, 4, 5, 0, 1}));
  EXPECT_THAT(gradients[1], holds<double>({1, 1, 1, 1, 0, 0, 2, 2, 0, 0}));
}

TEST(Slices, AreRecordedByAnOuterTape) {
  const Tensor x = table();
  GradientTape outer;
  outer.watch(x);
  Received got;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor rows = gather(x, ids());
    static_cast<void>(inner.gradient(sum(rows * rows * rows), {x}, got.options()));
  }
  // The gradient of a row is 3 x^2, the sum of it differentiates to 6 x.
  const Tensor second = outer.gradient(sum(got.slices.at(0).values), {x})[0];
  const Tensor counts = Tensor(Shape{5, 1}, {1.0, 1.0, 0.0, 2.0, 0.0});
  const auto expected = (6 * x * counts).to_vector<double>();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(second.data<double>()[i], expected[i], 1e-12);
}

TEST(Slices, ToDenseChecksItsMembers) {
  const Tensor values = zeros({2, 3});
  EXPECT_THAT(
      [&] {
        to_dense({values, vec<std::int32_t>({0, 4}), {4, 3}});
      },
      throws<InvalidArgument>("index 4", "place 1", "4 rows"));
  EXPECT_THAT(
      [&] {
        to_dense({values, vec<std::int32_t>({0}), {4, 3}});
      },
      throws<InvalidArgument>("[to_dense]", "[1, 3]", "[2, 3]"));
  EXPECT_THAT([&] { to_dense({values, Tensor(1), {4, 3}}); }, throws<InvalidArgument>("[]"));
  EXPECT_THAT(
      [&] {
        to_dense({Tensor(), vec<std::int32_t>({0}), {4, 3}});
      },
      throws<InvalidArgument>("values is undefined"));
}

}  // namespace
}  // namespace lockstep
