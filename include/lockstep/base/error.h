// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace lockstep {

// What the caller may do about an Error; each kind has a class of its own below.
enum class ErrorKind {
  invalid_argument,
  failed_precondition,
  unimplemented,
  unavailable,
  peer_error,
  deadline_exceeded,
  resource_exhausted,
  data_loss,
  internal
};

// Where in a distributed run an error arose; unset fields do not apply.
struct ErrorContext {
  std::optional<int> replica;        // global replica id
  std::string peer;                  // task, rank or address of the peer
  std::string collective;            // key of the collective
  std::optional<std::int64_t> step;  // step index
};

// Base of everything lockstep throws. what() is one text: the call in brackets, what was expected
// and observed, what to do, then the context and the source location. Copyable; copies share the
// text.
class LOCKSTEP_EXPORT Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, SourceLocation at, ErrorContext context = {});
  ~Error() override;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;

  const char* what() const noexcept override { return what_.c_str(); }
  ErrorKind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  SourceLocation location() const noexcept { return at_; }
  const ErrorContext& context() const noexcept { return context_; }

  // Throws an error of the same class with `context` in place of its own.
  [[noreturn]] virtual void rethrow_with(ErrorContext context) const = 0;

 private:
  ErrorKind kind_;
  std::string message_;
  SourceLocation at_;
  ErrorContext context_;
  std::string what_;
};

// The caller's mistake: shape, dtype, option, cluster spec. Fix the program.
class LOCKSTEP_EXPORT InvalidArgument : public Error {
 public:
  explicit InvalidArgument(std::string message, SourceLocation at = SourceLocation::current(),
                           ErrorContext context = {})
      : Error(ErrorKind::invalid_argument, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw InvalidArgument(message(), location(), std::move(context));
  }
};

// The wrong context: run inside run, mixed strategies. Fix the program.
class LOCKSTEP_EXPORT FailedPrecondition : public Error {
 public:
  explicit FailedPrecondition(std::string message, SourceLocation at = SourceLocation::current(),
                              ErrorContext context = {})
      : Error(ErrorKind::failed_precondition, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw FailedPrecondition(message(), location(), std::move(context));
  }
};

// Not offered, and never will silently be. Choose another way.
class LOCKSTEP_EXPORT Unimplemented : public Error {
 public:
  explicit Unimplemented(std::string message, SourceLocation at = SourceLocation::current(),
                         ErrorContext context = {})
      : Error(ErrorKind::unimplemented, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw Unimplemented(message(), location(), std::move(context));
  }
};

// A feature or device not built or not present; the text says how to enable it.
class LOCKSTEP_EXPORT Unavailable : public Error {
 public:
  explicit Unavailable(std::string message, SourceLocation at = SourceLocation::current(),
                       ErrorContext context = {})
      : Error(ErrorKind::unavailable, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw Unavailable(message(), location(), std::move(context));
  }
};

// A named peer failed, left or disagrees. Restart from a checkpoint.
class LOCKSTEP_EXPORT PeerError : public Error {
 public:
  explicit PeerError(std::string message, SourceLocation at = SourceLocation::current(),
                     ErrorContext context = {})
      : Error(ErrorKind::peer_error, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw PeerError(message(), location(), std::move(context));
  }
};

// A bounded wait ended; the text says who is missing. Retry or give up.
class LOCKSTEP_EXPORT DeadlineExceeded : public Error {
 public:
  explicit DeadlineExceeded(std::string message, SourceLocation at = SourceLocation::current(),
                            ErrorContext context = {})
      : Error(ErrorKind::deadline_exceeded, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw DeadlineExceeded(message(), location(), std::move(context));
  }
};

// Host or device memory: asked, in use, peak, limit. Use a smaller batch.
class LOCKSTEP_EXPORT ResourceExhausted : public Error {
 public:
  explicit ResourceExhausted(std::string message, SourceLocation at = SourceLocation::current(),
                             ErrorContext context = {})
      : Error(ErrorKind::resource_exhausted, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw ResourceExhausted(message(), location(), std::move(context));
  }
};

// A checkpoint or record is corrupt: file, offset. Use an older checkpoint.
class LOCKSTEP_EXPORT DataLoss : public Error {
 public:
  explicit DataLoss(std::string message, SourceLocation at = SourceLocation::current(),
                    ErrorContext context = {})
      : Error(ErrorKind::data_loss, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw DataLoss(message(), location(), std::move(context));
  }
};

// A defect of lockstep, with values and location. Report it.
class LOCKSTEP_EXPORT InternalError : public Error {
 public:
  explicit InternalError(std::string message, SourceLocation at = SourceLocation::current(),
                         ErrorContext context = {})
      : Error(ErrorKind::internal, std::move(message), at, std::move(context)) {}
  [[noreturn]] void rethrow_with(ErrorContext context) const override {
    throw InternalError(message(), location(), std::move(context));
  }
};

}  // namespace lockstep
