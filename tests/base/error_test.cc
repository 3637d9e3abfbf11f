// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/check.h>
#include <lockstep/base/error.h>
#include <lockstep/base/shape.h>

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

template <class E>
struct KindOf;
template <>
struct KindOf<InvalidArgument> {
  static constexpr auto kind = ErrorKind::invalid_argument;
};
template <>
struct KindOf<FailedPrecondition> {
  static constexpr auto kind = ErrorKind::failed_precondition;
};
template <>
struct KindOf<Unimplemented> {
  static constexpr auto kind = ErrorKind::unimplemented;
};
template <>
struct KindOf<Unavailable> {
  static constexpr auto kind = ErrorKind::unavailable;
};
template <>
struct KindOf<PeerError> {
  static constexpr auto kind = ErrorKind::peer_error;
};
template <>
struct KindOf<DeadlineExceeded> {
  static constexpr auto kind = ErrorKind::deadline_exceeded;
};
template <>
struct KindOf<ResourceExhausted> {
  static constexpr auto kind = ErrorKind::resource_exhausted;
};
template <>
struct KindOf<DataLoss> {
  static constexpr auto kind = ErrorKind::data_loss;
};
template <>
struct KindOf<InternalError> {
  static constexpr auto kind = ErrorKind::internal;
};

template <class E>
class EveryError : public testing::Test {};
using AllErrors =
    testing::Types<InvalidArgument, FailedPrecondition, Unimplemented, Unavailable, PeerError,
                   DeadlineExceeded, ResourceExhausted, DataLoss, InternalError>;
TYPED_TEST_SUITE(EveryError, AllErrors);

TYPED_TEST(EveryError, IsCaughtAsErrorWithItsKindAndTheCallersLine) {
  try {
    throw TypeParam("[op] text");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), KindOf<TypeParam>::kind);
    EXPECT_EQ(error.message(), "[op] text");
    EXPECT_EQ(error.location().line, __LINE__ - 4);
    EXPECT_THAT(error.what(), AllOf(StartsWith("[op] text at "), HasSubstr("error_test.cc:")));
  }
}

TYPED_TEST(EveryError, IsRethrownAsItselfWithAContext) {
  try {
    try {
      throw TypeParam("[op] text", SourceLocation{"user.cc", 7});
    } catch (const Error& error) {
      error.rethrow_with(
          {.replica = 3, .peer = "worker/1", .collective = "gradients/4", .step = 12});
    }
  } catch (const TypeParam& error) {
    EXPECT_STREQ(
        error.what(),
        "[op] text (replica 3, peer worker/1, collective gradients/4, step 12) at user.cc:7");
    EXPECT_EQ(error.context().replica, 3);
    EXPECT_EQ(error.kind(), KindOf<TypeParam>::kind);
  }
}

TEST(Error, ShowsOnlyWhatIsKnown) {
  EXPECT_STREQ(DataLoss("[op] text", SourceLocation{}).what(), "[op] text");
  ErrorContext context;
  context.step = 0;
  EXPECT_STREQ(PeerError("[op] text", SourceLocation{}, context).what(), "[op] text (step 0)");
}

TEST(Error, CopiesKeepTheirText) {
  const auto original =
      std::make_unique<InvalidArgument>("[op] a text that is too long to be stored in place");
  const InvalidArgument copy = *original;
  const std::string text = original->what();
  EXPECT_EQ(copy.what(), text);
}

// An argument that tells how often its text was asked for.
struct Counting {
  int* times;
  std::string to_string() const {
    ++*times;
    return "counted";
  }
};

TEST(Require, ThrowsTheCallersMistakeAtTheCallersLine) {
  EXPECT_NO_THROW(require(true, SourceLocation{"user.cc", 3}, "op", "never"));
  try {
    require(false, SourceLocation{"user.cc", 3}, "op", "expected ", 2, ", got ", Shape{2, 3});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "[op] expected 2, got [2, 3] at user.cc:3");
  }
}

TEST(Require, WritesTheTextOnlyWhenItThrows) {
  int times = 0;
  require(true, SourceLocation{}, "op", Counting{&times});
  EXPECT_EQ(times, 0);
  EXPECT_THROW(require(false, SourceLocation{}, "op", Counting{&times}), InvalidArgument);
  EXPECT_EQ(times, 1);
}

TEST(Ensure, ThrowsOurMistake) {
  EXPECT_NO_THROW(ensure(true, "where", "never"));
  EXPECT_THROW(ensure(false, "where", "because"), InternalError);
}

}  // namespace
}  // namespace lockstep
