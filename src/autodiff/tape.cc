// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>

#include <lockstep/base/check.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

#include <algorithm>
#include <utility>

#include "autodiff/backward.h"

namespace lockstep {

class GradientTape::Impl final : public OpRecorder {
 public:
  explicit Impl(TapeOptions options)
      : persistent_(options.persistent), outer_(current_recorder()), installed_(this) {
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

  void watch(const Tensor& value) { records_.value_of(value); }

  std::vector<Tensor> gradient(const Tensor& target, std::span<const Tensor> sources,
                               const GradientOptions& options, SourceLocation at) {
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

  bool wants_itself(const Tensor& input) const {
    return recording_ && !used_ && records_.wants(input);
  }

  const bool persistent_;
  bool recording_ = true;
  bool used_ = false;
  TapeRecords records_;
  OpRecorder* outer_;
  RecorderScope installed_;
};

GradientTape::GradientTape(TapeOptions options) : impl_(std::make_unique<Impl>(options)) {}
GradientTape::~GradientTape() = default;

void GradientTape::watch(const Tensor& value) { impl_->watch(value); }

std::vector<Tensor> GradientTape::gradient(const Tensor& target, std::span<const Tensor> sources,
                                           const GradientOptions& options, SourceLocation at) {
  return impl_->gradient(target, sources, options, at);
}

GradientTape::Pause GradientTape::stop_recording() { return Pause(*impl_); }
GradientTape::Pause::Pause(Impl& tape)
    : tape_(tape), was_recording_(std::exchange(tape.recording_, false)) {}
GradientTape::Pause::~Pause() { tape_.recording_ = was_recording_; }

}  // namespace lockstep
