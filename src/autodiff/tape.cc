// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/tape.h>

#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/ops/recorder.h>
#include <lockstep/tensor/factory.h>

#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "autodiff/jacobian.h"
#include "autodiff/tape_recorder.h"

namespace lockstep {

class GradientTape::Impl final : public TapeRecorder {
 public:
  explicit Impl(TapeOptions options)
      : TapeRecorder(options.watch_trainable),
        persistent_(options.persistent),
        installed_(std::in_place, this) {}

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
    require_ends(kOp, target, sources, at);
    Tensor weight = options.target_gradient;
    require(
        !weight.defined() || (weight.shape() == target.shape() && weight.dtype() == target.dtype()),
        at, kOp, "target_gradient must be ", name_of(target.dtype()), target.shape(), ", got ",
        weight);
    return serve(kOp, at, [&](TapeRecords& records, bool release) {
      if (!weight.defined()) weight = ones_like(target);
      return run_backward(records, {{&target, 1}, {&weight, 1}, sources}, options, release);
    });
  }

  std::vector<Tensor> jacobian(const Tensor& target, std::span<const Tensor> sources,
                               SourceLocation at) {
    constexpr const char* kOp = "GradientTape::jacobian";
    require_ends(kOp, target, sources, at);
    return serve(kOp, at, [&](TapeRecords& records, bool) {
      return jacobian_of(kOp, records, target, sources, at);
    });
  }

  Tensor batch_jacobian(const Tensor& target, const Tensor& source, SourceLocation at) {
    constexpr const char* kOp = "GradientTape::batch_jacobian";
    require_ends(kOp, target, {&source, 1}, at);
    require(target.rank() >= 1 && source.rank() >= 1 && target.dim(0) == source.dim(0), at, kOp,
            "expected a target and a source with as many rows, got ", target.shape(), " and ",
            source.shape());
    return serve(kOp, at, [&](TapeRecords& records, bool) {
      return batch_jacobian_of(kOp, records, target, source, at);
    });
  }

 private:
  friend class GradientTape::Pause;

  void require_own_thread(const char* op, SourceLocation at) const {
    if (std::this_thread::get_id() == thread_) return;
    throw FailedPrecondition(
        message(op, "the tape was made by another thread; it records and serves that thread only"),
        at);
  }
  void require_ends(const char* op, const Tensor& target, std::span<const Tensor> sources,
                    SourceLocation at) const {
    require_own_thread(op, at);
    require(target.defined(), at, op, "expected a target, got an undefined tensor");
    for (std::size_t i = 0; i < sources.size(); ++i)
      require(sources[i].defined(), at, op,
              "expected tensors as sources, got an undefined one as number ", i);
  }

  // run(records, release) with recording paused; a tape that is not persistent has given its
  // records away.
  template <class Run>
  std::invoke_result_t<Run, TapeRecords&, bool> serve(const char* op, SourceLocation at,
                                                      Run&& run) {
    if (used_)
      throw FailedPrecondition(
          message(op,
                  "expected one call, got a second one; make the tape with {.persistent = true}"),
          at);
    const Pause pause(*this);
    used_ = !persistent_;
    if (!used_) return run(records_, false);
    TapeRecords records = std::exchange(records_, {});
    return run(records, true);
  }

  bool wants_itself(const Tensor& input) const override {
    return recording_ && !used_ && records_.wants(input);
  }

  const bool persistent_;
  const std::thread::id thread_ = std::this_thread::get_id();
  bool recording_ = true;
  bool used_ = false;
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

std::vector<Tensor> GradientTape::jacobian(const Tensor& target, std::span<const Tensor> sources,
                                           SourceLocation at) {
  return impl_->jacobian(target, sources, at);
}

Tensor GradientTape::batch_jacobian(const Tensor& target, const Tensor& source, SourceLocation at) {
  return impl_->batch_jacobian(target, source, at);
}

GradientTape::Pause GradientTape::stop_recording() { return Pause(*impl_); }
GradientTape::Pause::Pause(Impl& tape)
    : tape_(tape), was_recording_(std::exchange(tape.recording_, false)) {}
GradientTape::Pause::~Pause() { tape_.recording_ = was_recording_; }

}  // namespace lockstep
