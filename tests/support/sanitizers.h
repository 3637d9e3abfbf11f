// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_TEST_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOCKSTEP_TEST_SANITIZED true
#endif
#endif
#ifndef LOCKSTEP_TEST_SANITIZED
#define LOCKSTEP_TEST_SANITIZED false
#endif

// Built with a sanitizer, under which time and resident memory say nothing of the program's own.
inline constexpr bool kSanitized = LOCKSTEP_TEST_SANITIZED;

}  // namespace lockstep::testing
