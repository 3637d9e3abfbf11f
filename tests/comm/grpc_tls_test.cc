// SPDX-License-Identifier: Apache-2.0
// Workers that talk by TLS, and those they do not talk to.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/comm/grpc.h>

#include <optional>
#include <thread>
#include <vector>

#include "comm/communicator_conformance.h"
#include "support/certificates.h"
#include "support/ports.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Two workers: two authorities, leaves "zero" and "one" of the first, "stranger" of the second.
class GrpcTls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    certificates_ = new Certificates;
    certificates_->make_authority("ca");
    certificates_->make_authority("other-ca");
    certificates_->make_leaf("zero", "ca");
    certificates_->make_leaf("one", "ca");
    certificates_->make_leaf("stranger", "other-ca");
  }
  static void TearDownTestSuite() { delete std::exchange(certificates_, nullptr); }

  static TlsFiles files(const std::string& leaf, const std::string& authority = "ca") {
    return {.ca = certificates_->certificate(authority),
            .certificate = certificates_->certificate(leaf),
            .key = certificates_->key(leaf)};
  }

  // How the workers end that start with these files, or without TLS, and sum once.
  static std::vector<Outcome> start(std::optional<TlsFiles> zero, std::optional<TlsFiles> one) {
    const std::vector<std::string> addresses = free_addresses(2);
    const std::optional<TlsFiles> tls[] = {std::move(zero), std::move(one)};
    std::vector<Outcome> outcomes(2);
    std::vector<std::thread> threads;
    for (const int rank : {0, 1})
      threads.emplace_back([&, rank] {
        try {
          GrpcGroup group(
              {.rank = rank, .addresses = addresses, .startup_timeout = 3s, .tls = tls[rank]});
          for (const std::size_t count : {10, 1'000'000}) {
            std::vector<float> values(count, 1.5F);
            const Elements range = elements(std::span(values));
            group.communicator().all_reduce({}, ReduceOp::sum, range, range).wait();
            expect(values.front() == 3 && values.back() == 3, "wrong sum");
          }
        } catch (...) {
          outcomes[static_cast<std::size_t>(rank)].error = std::current_exception();
        }
      });
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  static Certificates* certificates_;
};

Certificates* GrpcTls::certificates_ = nullptr;

}  // namespace

TEST_F(GrpcTls, S29_WorkersOfOneAuthorityMeet) {
  expect_all_ok(start(files("zero"), files("one")));
}

TEST_F(GrpcTls, S29_APlainWorkerIsRefused) {
  for (const Outcome& outcome : start(files("zero"), std::nullopt)) {
    EXPECT_TRUE(outcome.threw<DeadlineExceeded>()) << outcome.text();
    EXPECT_THAT(outcome.text(), HasSubstr("TLS"));
  }
}

TEST_F(GrpcTls, S29_AWorkerOfAnotherAuthorityIsRefused) {
  for (const Outcome& outcome : start(files("zero"), files("stranger"))) {
    EXPECT_TRUE(outcome.threw<DeadlineExceeded>()) << outcome.text();
    EXPECT_THAT(outcome.text(), HasSubstr("certificate"));
  }
}

TEST_F(GrpcTls, S29_AMissingFileIsNamed) {
  TlsFiles broken = files("zero");
  broken.key = "/nowhere/worker.key";
  try {
    GrpcGroup group({.addresses = free_addresses(1), .tls = broken});
    FAIL() << "expected InvalidArgument";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/nowhere/worker.key"), HasSubstr("key")));
  }
}

TEST_F(GrpcTls, AnUnusableFileIsNamed) {
  TlsFiles broken = files("zero");
  broken.key = broken.certificate;
  try {
    GrpcGroup group({.addresses = free_addresses(1), .tls = broken});
    FAIL() << "expected InvalidArgument";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("TLS files"), HasSubstr(broken.key)));
  }
}

}  // namespace lockstep::testing
