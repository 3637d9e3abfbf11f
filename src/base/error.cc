// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/error.h>

namespace lockstep {
namespace {

std::string text_of(const std::string& message, SourceLocation at, const ErrorContext& context) {
  std::string text = message;
  std::string details;
  const auto add = [&](const std::string& detail) {
    details += (details.empty() ? "" : ", ") + detail;
  };
  if (context.replica) add("replica " + std::to_string(*context.replica));
  if (!context.peer.empty()) add("peer " + context.peer);
  if (!context.collective.empty()) add("collective " + context.collective);
  if (context.step) add("step " + std::to_string(*context.step));
  if (!details.empty()) text += " (" + details + ")";
  if (at.line > 0) text += std::string(" at ") + at.file + ":" + std::to_string(at.line);
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, std::string message, SourceLocation at, ErrorContext context)
    : kind_(kind),
      message_(std::move(message)),
      at_(at),
      context_(std::move(context)),
      what_(text_of(message_, at_, context_)) {}

Error::~Error() = default;

}  // namespace lockstep
