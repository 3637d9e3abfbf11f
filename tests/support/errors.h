// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <lockstep/base/error.h>

#include <exception>
#include <optional>

namespace lockstep::testing {

// Matches a callable that throws an E (or what derives from it) whose text has all these words.
template <class E, class... Words>
auto throws(const Words&... words) {
  return ::testing::ThrowsMessage<E>(
      ::testing::AllOf(::testing::HasSubstr(""), ::testing::HasSubstr(words)...));
}

// The E that f throws; fails the test and gives nothing when it throws none.
template <class E, class F>
std::optional<E> caught(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return std::nullopt;
  }
  ADD_FAILURE() << "no exception";
  return std::nullopt;
}

}  // namespace lockstep::testing
