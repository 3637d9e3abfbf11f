// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/nest.h>

namespace lockstep {
namespace {

using testing::ElementsAre;

struct Example {
  Tensor image, label;
};
struct Deep {
  Example example;
  std::vector<Example> more;
  std::optional<Tensor> mask;
  std::map<std::string, Tensor> named;
  std::array<Tensor, 2> two;
  double weight = 0;
};
struct Sixteen {
  Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct Seventeen {
  Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct Nothing {};
struct Base {
  Tensor x;
};
struct Derived : Base {
  Tensor y;
};
struct WithArray {
  Tensor x[2];
};
struct WithArrayOfOne {
  Tensor x[1];
};
struct WithArrayInside {
  Tensor a;
  struct {
    Tensor b;
    int n[3];
  } inner;
};
struct WithReference {
  Tensor& x;
};
struct WithPointer {
  Tensor* x;
};
struct WithText {
  std::string name;
  Tensor x;
};

// A class that says what its parts are.
class Private {
 public:
  explicit Private(double x = 0) : x_(x) {}
  friend auto nest_members(Private& p) { return std::tie(p.x_, p.count_); }
  friend auto nest_members(const Private& p) { return std::tie(p.x_, p.count_); }
  int count() const { return count_; }

 private:
  Tensor x_;
  int count_ = 5;
};
class Hidden {
  Tensor x_;
};

static_assert(Nest<Tensor> && Nest<float> && Nest<bool> && Nest<Example> && Nest<Deep>);
static_assert(Nest<std::tuple<Tensor, int, Example>> && Nest<std::pair<Tensor, Tensor>>);
static_assert(Nest<Sixteen> && !Nest<Seventeen>);
static_assert(Nest<Nothing> && Nest<std::tuple<>>);
static_assert(Nest<Private> && !Nest<Hidden>);
static_assert(!Nest<WithArray> && !Nest<WithArrayOfOne> && !Nest<WithArrayInside>);
static_assert(!Nest<Derived> && !Nest<WithReference> && !Nest<WithPointer> && !Nest<WithText>);
static_assert(!Nest<std::string> && !Nest<Tensor*> && !Nest<std::vector<std::string>>);
static_assert(Nest<const Example&> && Nest<std::vector<std::map<int, Example>>>);
static_assert(detail::member_count<Example>() == 2 && detail::member_count<Sixteen>() == 16);
static_assert(detail::member_count<Nothing>() == 0 && detail::member_count<Deep>() == 6);

std::vector<double> values(const std::vector<Tensor>& leaves) {
  std::vector<double> result;
  for (const Tensor& leaf : leaves) result.push_back(leaf.item<double>());
  return result;
}

Deep deep() {
  return {.example = {1.f, 2.f},
          .more = {{3.f, 4.f}, {5.f, 6.f}},
          .mask = Tensor(7.f),
          .named = {{"b", 9.f}, {"a", 8.f}},
          .two = {Tensor(10.f), Tensor(11.f)},
          .weight = 12};
}

TEST(Nest, FlattensInDeclarationAndKeyOrder) {
  EXPECT_THAT(values(flatten(deep())), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(values(flatten(Tensor(3.f))), ElementsAre(3));
  EXPECT_TRUE(flatten(std::vector<Tensor>()).empty());
  EXPECT_TRUE(flatten(std::optional<Example>()).empty());
  EXPECT_TRUE(flatten(Nothing()).empty());
}

TEST(Nest, SixteenMembersInOrder) {
  Sixteen x;
  std::vector<Tensor> leaves;
  for (int i = 0; i < 16; ++i) leaves.emplace_back(static_cast<double>(i));
  x = with_leaves(x, std::span<const Tensor>(leaves));
  EXPECT_EQ(x.a.item<int>(), 0);
  EXPECT_EQ(x.n.item<int>(), 13);
  EXPECT_EQ(x.p.item<int>(), 15);
  EXPECT_EQ(values(flatten(x)), values(leaves));
}

TEST(Nest, NumbersBecomeScalarsOfTheirType) {
  const auto leaves =
      flatten(std::tuple(true, std::int32_t{2}, 3.f, 4., short{5}, 6u, std::int64_t{7}));
  std::vector<DType> dtypes;
  for (const Tensor& leaf : leaves) dtypes.push_back(leaf.dtype());
  EXPECT_THAT(dtypes, ElementsAre(DType::boolean, DType::i32, DType::f32, DType::f64, DType::i64,
                                  DType::i64, DType::i64));
  EXPECT_THAT(values(leaves), ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST(Nest, WithLeavesIsTheInverseOfFlatten) {
  std::vector<Tensor> leaves = flatten(deep());
  for (Tensor& leaf : leaves) leaf = Tensor(leaf.item<double>() + 100);
  const Deep other = with_leaves(deep(), std::span<const Tensor>(leaves));
  EXPECT_EQ(values(flatten(other)), values(leaves));
  EXPECT_EQ(other.named.at("a").item<int>(), 108);
  EXPECT_EQ(other.weight, 112);
}

TEST(Nest, WithLeavesNeedsAsManyAsThereAre) {
  const std::vector<Tensor> one(1, Tensor(1.f)), three(3, Tensor(1.f));
  EXPECT_THROW(with_leaves(Example(), std::span<const Tensor>(one)), InternalError);
  EXPECT_THROW(with_leaves(Example(), std::span<const Tensor>(three)), InternalError);
  const std::vector<Tensor> vector(1, zeros({2}));
  EXPECT_THROW(with_leaves(1.f, std::span<const Tensor>(vector)), InvalidArgument);
}

TEST(Nest, ClassesNameTheirMembers) {
  const Private p(3);
  EXPECT_THAT(values(flatten(p)), ElementsAre(3, 5));
  const std::vector<Tensor> leaves = {Tensor(1.f), Tensor(std::int32_t{9})};
  EXPECT_EQ(with_leaves(p, std::span<const Tensor>(leaves)).count(), 9);
}

TEST(Nest, VisitingChangesLeavesInPlace) {
  Deep x = deep();
  visit_leaves(x, []<class Leaf>(Leaf& leaf) { leaf = Leaf(0.f); });
  EXPECT_THAT(values(flatten(x)), testing::Each(0));
}

TEST(LeafPaths, TellWhereEachLeafStands) {
  EXPECT_THAT(leaf_paths(deep()),
              ElementsAre(".0.0", ".0.1", ".1[0].0", ".1[0].1", ".1[1].0", ".1[1].1", ".2", ".3[a]",
                          ".3[b]", ".4.0", ".4.1", ".5"));
  EXPECT_THAT(leaf_paths(Tensor(1.f)), ElementsAre("value"));
  EXPECT_THAT(leaf_paths(std::vector<float>{1, 2}), ElementsAre("[0]", "[1]"));
}

}  // namespace
}  // namespace lockstep
