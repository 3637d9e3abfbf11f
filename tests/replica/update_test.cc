// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/elementwise.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/factory.h>

#include "support/errors.h"
#include "support/replicas.h"
#include "support/values.h"

namespace lockstep {
namespace {

using lockstep::testing::holds;
using lockstep::testing::replica_id;
using lockstep::testing::replicas;
using lockstep::testing::throws;
using lockstep::testing::vec;

// An update op in miniature: adds `amount`, in place where nobody else holds the value.
Tensor increase(Tensor value, float amount) {
  if (!value.unique()) value = copy_to(value, value.device());
  auto* const data = static_cast<float*>(value.buffer().data());
  for (std::int64_t i = 0; i < value.num_elements(); ++i) data[i] += amount;
  return value;
}

void add_one(const Variable& v) {
  update_values<1>(
      {v}, [](std::array<Tensor, 1>& values) { values[0] = increase(std::move(values[0]), 1); });
}

TEST(UpdateValues, WritesInPlaceWhatNobodyHolds) {
  const Variable v(vec({1, 2}));
  const void* const before = v.read().raw_data();
  add_one(v);
  EXPECT_EQ(v.read().raw_data(), before);
  EXPECT_THAT(v.read(), holds({2, 3}));
}

TEST(UpdateValues, LeavesAHeldTensorAlone) {
  const Variable v(vec({1, 2}));
  {
    const Tensor held = v.read();
    add_one(v);
    EXPECT_THAT(held, holds({1, 2}));
    EXPECT_NE(v.read().raw_data(), held.raw_data());
  }
  const void* const fresh = v.read().raw_data();
  add_one(v);
  EXPECT_EQ(v.read().raw_data(), fresh) << "in place again once the tensor is gone";
  EXPECT_THAT(v.read(), holds({3, 4}));
}

TEST(UpdateValues, KeepsTheVariablesIdentity) {
  const Variable v(vec({1, 2}));
  update_values<1>({v}, [](std::array<Tensor, 1>& values) { values[0] = vec({5, 6}); });
  EXPECT_EQ(v.read().key(), v.key());
  EXPECT_TRUE(v.read().trainable());
  EXPECT_THAT(v.read(), holds({5, 6}));
}

TEST(UpdateValues, PutsBackWhenTheUpdateThrows) {
  const Variable v(vec({1, 2})), slot = Variable::zeros_like(v, "slot");
  EXPECT_THAT(([&] {
                update_values<2>({v, slot}, [](std::array<Tensor, 2>& values) {
                  values[1] = vec({7, 7});
                  throw std::runtime_error("update");
                });
              }),
              throws<std::runtime_error>("update"));
  EXPECT_THAT(v.read(), holds({1, 2}));
  EXPECT_THAT(slot.read(), holds({7, 7})) << "what the update left is what it left";
}

TEST(UpdateValues, LosesNothingWhenALaterVariableIsRefused) {
  const auto strategy = replicas(2);
  const Variable plain(vec({3, 4}), {.name = "plain"});
  const auto scope = strategy.scope();
  const Variable mirrored(vec({1, 2}));
  EXPECT_THAT(
      [&] {
        strategy.run([&] {
          update_values<2>({mirrored, plain}, [](std::array<Tensor, 2>&) { FAIL() << "called"; });
        });
      },
      throws<FailedPrecondition>("plain", "scope"));
  EXPECT_THAT(mirrored.read(), holds({1, 2}));
  for (const Tensor& value : mirrored.local_values()) EXPECT_THAT(value, holds({1, 2}));
}

TEST(UpdateValues, RefusesAVariableListedTwice) {
  const Variable v(vec({1, 2}), {.name = "v"}), w(vec({3, 4}));
  EXPECT_THAT(([&] {
                update_values<3>({v, w, v}, [](std::array<Tensor, 3>&) { FAIL() << "called"; });
              }),
              throws<InvalidArgument>("[update_values]", "'v'", "twice", "update_test.cc"));
  EXPECT_THAT(v.read(), holds({1, 2}));
  EXPECT_THAT(w.read(), holds({3, 4}));
}

TEST(UpdateValues, ReplicasUpdateTheirOwnComponentsInPlace) {
  const auto strategy = replicas(2);
  const auto scope = strategy.scope();
  const Variable v(vec({1, 2}));
  std::vector<const void*> before;
  for (const Tensor& value : v.local_values()) before.push_back(value.raw_data());
  strategy.run([&] {
    update_values<1>({v}, [](std::array<Tensor, 1>& values) {
      values[0] = increase(std::move(values[0]), 10 + replica_id());
    });
  });
  const auto after = v.local_values();
  EXPECT_THAT(after[0], holds({11, 12}));
  EXPECT_THAT(after[1], holds({12, 13}));
  for (std::size_t r = 0; r < 2; ++r) EXPECT_EQ(after[r].raw_data(), before[r]);
}

}  // namespace
}  // namespace lockstep
