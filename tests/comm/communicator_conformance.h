// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <lockstep/comm/communicator.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::testing {

// How the body of one rank ended.
struct Outcome {
  std::exception_ptr error;

  bool ok() const { return error == nullptr; }
  std::string text() const;  // "" if ok
  template <class E>
  bool threw() const {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const E&) {
      return true;
    } catch (...) {
    }
    return false;
  }
};

struct WorldOptions {
  std::chrono::milliseconds collective_timeout = std::chrono::seconds(60);
};

// A group of ranks of one implementation.
class World {
 public:
  virtual ~World() = default;
  // Runs `body` on all ranks at once, in a new epoch, and returns how each ended, by rank. A rank
  // whose body returns has left the epoch; one whose body throws has aborted it.
  virtual std::vector<Outcome> run(const std::function<void(Communicator&)>& body) = 0;
};

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<World>(int size, WorldOptions)> make;
  bool one_process = true;  // ranks share the test's memory

  friend void PrintTo(const Implementation& one, std::ostream* out) { *out << one.name; }
};

// Every implementation passes this suite (communicator_conformance_test.cc). Its tests check values
// on the rank that has them, with expect(), so that a rank may as well be a process.
class CommunicatorConformance : public ::testing::TestWithParam<Implementation> {
 protected:
  std::unique_ptr<World> make_world(int size, WorldOptions options = {}) const {
    return GetParam().make(size, options);
  }
};

// Fails the calling rank's body, and with it the test.
template <class... Parts>
void expect(bool ok, const Parts&... parts) {
  if (ok) return;
  std::ostringstream text;
  (text << ... << parts);
  throw std::runtime_error(std::move(text).str());
}

// Fails the test unless every rank's body returned.
void expect_all_ok(const std::vector<Outcome>& outcomes);

}  // namespace lockstep::testing
