// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "autodiff/backward.h"

namespace lockstep {

class GradientTape::Impl final : public OpRecorder {
 public:
  explicit Impl(TapeOptions options)
      : persistent_(options.persistent),
        outer_(current_recorder()),
        installed_(std::in_place, this) {
    records_.watch_trainable = options.watch_trainable;
  }

  bool wants(const Tensor& input) const override {
    return wants_itself(input) || (outer_ && outer_->wants(input));
  }

  void record(const char* op, std::span<const Tensor* const> inputs,
              std::span<const Tensor> outputs, GradientRule rule) override {
    const bool ours = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor* input) {
      return input->defined() && wants_itself(*input);
    });
    if (outer_ && std::any_of(inputs.begin(), inputs.end(), [&](const Tensor* input) {
          return input->defined() && outer_->wants(*input);
        })) {
      if (!ours) return outer_->record(op, inputs, outputs, std::move(rule));
      outer_->record(op, inputs, outputs, rule);
    }
    if (ours) records_.add(op, inputs, outputs, std::move(rule));
  }

  void watch(const Tensor& value, SourceLocation at) {
    require_own_thread("GradientTape::watch", at);
    require(value.defined(), at, "GradientTape::watch", "expected a tensor, got an undefined one");
    records_.value_of(value);
  }

  // Lets go of all it holds. False when it cannot be taken off its thread's recorders, because
  // this is another thread or an inner tape is still there: then it must stay behind, deaf.
  bool retire() noexcept {
    used_ = true;
    records_ = {};
    if (std::this_thread::get_id() != thread_ || current_recorder() != this) return false;
    installed_.reset();
    return true;
  }

  std::vector<Tensor> gradient(const Tensor& target, std::span<const Tensor> sources,
                               const GradientOptions& options, SourceLocation at) {
    constexpr const char* kOp = "GradientTape::gradient";
    require_own_thread(kOp, at);
    require(target.defined(), at, kOp, "expected a target, got an undefined tensor");
    for (std::size_t i = 0; i < sources.size(); ++i)
      require(sources[i].defined(), at, kOp,
              "expected tensors as sources, got an undefined one as number ", i);
    if (used_)
      throw FailedPrecondition(
          "[GradientTape::gradient] expected one call, got a second one; make the "
          "tape with {.persistent = true}",
          at);
    const Pause pause(*this);
    used_ = !persistent_;
    if (!used_) return run_backward(records_, target, sources, options, false, at);
    TapeRecords records = std::exchange(records_, {});
    return run_backward(records, target, sources, options, true, at);
  }

 private:
  friend class GradientTape::Pause;

  void require_own_thread(const char* op, SourceLocation at) const {
    if (std::this_thread::get_id() == thread_) return;
    throw FailedPrecondition(
        message(op, "the tape was made by another thread; it records and serves that thread only"),
        at);
  }
  bool wants_itself(const Tensor& input) const {
    return recording_ && !used_ && records_.wants(input);
  }

  const bool persistent_;
  const std::thread::id thread_ = std::this_thread::get_id();
  bool recording_ = true;
  bool used_ = false;
  TapeRecords records_;
  OpRecorder* outer_;
  std::optional<RecorderScope> installed_;
};

GradientTape::GradientTape(TapeOptions options) : impl_(std::make_unique<Impl>(options)) {}
GradientTape::~GradientTape() {
  if (impl_->retire()) return;
  logging::error(
      "[GradientTape] destroyed by another thread than its own, or before a tape made after it; a "
      "little memory stays behind");
  static_cast<void>(impl_.release());
}

void GradientTape::watch(const Tensor& value, SourceLocation at) { impl_->watch(value, at); }

std::vector<Tensor> GradientTape::gradient(const Tensor& target, std::span<const Tensor> sources,
                                           const GradientOptions& options, SourceLocation at) {
  return impl_->gradient(target, sources, options, at);
}

GradientTape::Pause GradientTape::stop_recording() { return Pause(*impl_); }
GradientTape::Pause::Pause(Impl& tape)
    : tape_(tape), was_recording_(std::exchange(tape.recording_, false)) {}
GradientTape::Pause::~Pause() { tape_.recording_ = was_recording_; }

}  // namespace lockstep
