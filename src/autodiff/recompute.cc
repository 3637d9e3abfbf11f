// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/recompute.h>

#include <lockstep/base/check.h>
#include <lockstep/ops/random_scope.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/state_log.h>

#include <memory>

#include "autodiff/capture.h"

namespace lockstep {
namespace {

constexpr const char* kOp = "recompute";

struct Access {
  std::uint64_t state;
  Tensor value;
};

// Of the first run: accesses happen, by way of the log around this one, and are kept.
class Keep final : public StateLog {
 public:
  explicit Keep(std::vector<Access>& accesses) : accesses_(accesses) {}
  Tensor access(std::uint64_t state, const std::function<Tensor()>& run) override {
    const StateLogScope around(outer_);
    Tensor value = logged_access(state, run);
    accesses_.push_back({state, value});
    return value;
  }

 private:
  std::vector<Access>& accesses_;
  StateLog* const outer_ = current_state_log();
};

// Of a later run: accesses give what they gave, and do not happen.
class Replay final : public StateLog {
 public:
  Replay(const std::vector<Access>& accesses, SourceLocation at) : accesses_(accesses), at_(at) {}
  Tensor access(std::uint64_t state, const std::function<Tensor()>&) override {
    if (next_ == accesses_.size() || accesses_[next_].state != state)
      fail("access ", next_, " to a variable is to another one than in the first run");
    return accesses_[next_++].value;
  }
  void require_all() const {
    if (next_ != accesses_.size()) fail("variables were accessed ", next_, " times");
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw FailedPrecondition(message(kOp, parts..., ", of ", accesses_.size(),
                                     " accesses; the function must do the same each time"),
                             at_);
  }

  const std::vector<Access>& accesses_;
  const SourceLocation at_;
  std::size_t next_ = 0;
};

// A recorded call: all that its function saw.
class Call {
 public:
  Call(std::function<std::vector<Tensor>()> function, SourceLocation at)
      : function_(std::move(function)), at_(at) {}

  std::vector<Tensor> run_first(const std::function<std::vector<Tensor>()>& first,
                                Capture& capture) {
    Keep keep(accesses_);
    const StateLogScope keeping(&keep);
    const RecorderScope recording(&capture);
    std::vector<Tensor> results = first();
    require_results(kOp, results, at_);
    for (const Tensor& result : results) capture.use(result, "return");
    for (const auto& input : capture.inputs()) inputs_.push_back(input.value);
    return results;
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }

  void put_gradients(std::span<const Tensor> dy, BackwardSink& pass) const {
    std::vector<int> wanted;
    std::vector<Tensor> sources;
    TapeRecorder tape(false);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!pass.wants(static_cast<int>(i))) continue;
      wanted.push_back(static_cast<int>(i));
      sources.push_back(inputs_[i]);
      tape.records().value_of(inputs_[i]);
    }
    std::vector<Tensor> targets, weights;
    {
      std::vector<Tensor> results = run_again(tape);
      require_same(results, dy);
      for (std::size_t i = 0; i < dy.size(); ++i)
        if (dy[i].defined()) {
          targets.push_back(std::move(results[i]));
          weights.push_back(dy[i]);
        }
    }
    run_backward(tape.records(), {targets, weights, sources, &pass, wanted}, {}, true);
  }

 private:
  std::vector<Tensor> run_again(TapeRecorder& tape) const {
    RandomState random = random_;
    Replay replay(accesses_, at_);
    const RandomScope drawing(random);
    const DeviceScope placing(device_);
    const StateLogScope replaying(&replay);
    const RecorderScope recording(&tape);
    std::vector<Tensor> results = function_();
    replay.require_all();
    return results;
  }

  void require_same(const std::vector<Tensor>& results, std::span<const Tensor> dy) const {
    const auto fail = [&](const auto&... parts) {
      throw FailedPrecondition(message(kOp, parts..., "; the function must do the same each time"),
                               at_);
    };
    if (results.size() != dy.size())
      fail("the function returned ", results.size(), " tensors when it ran again, ", dy.size(),
           " the first time");
    for (std::size_t i = 0; i < dy.size(); ++i)
      if (!results[i].defined() || (dy[i].defined() && (results[i].shape() != dy[i].shape() ||
                                                        results[i].dtype() != dy[i].dtype())))
        fail("result ", i, " was ", dy[i], " the first time, and ", results[i],
             " when the function ran again");
  }

  const std::function<std::vector<Tensor>()> function_;
  const SourceLocation at_;
  const RandomState random_ = current_random_state();
  const Device device_ = current_device();
  std::vector<Access> accesses_;
  std::vector<Tensor> inputs_;  // each value once: arguments, variables, captured ones
};

}  // namespace

std::vector<Tensor> detail::run_recompute(const std::function<std::vector<Tensor>()>& first,
                                          std::function<std::vector<Tensor>()> again,
                                          SourceLocation at) {
  OpRecorder* const outer = current_recorder();
  if (!outer) {
    std::vector<Tensor> results = first();
    require_results(kOp, results, at);
    return results;
  }
  const auto call = std::make_shared<Call>(std::move(again), at);
  Capture capture(*outer);
  std::vector<Tensor> results = call->run_first(first, capture);
  if (call->inputs().empty()) return results;

  for (Tensor& result : results) result = result.with_identity(new_tensor_key(), false);
  std::vector<const Tensor*> inputs;
  for (const Tensor& input : call->inputs()) inputs.push_back(&input);
  outer->record(kOp, inputs, results, [call](std::span<const Tensor> dy, GradientSink& sink) {
    auto* const pass = dynamic_cast<BackwardSink*>(&sink);
    ensure(pass, kOp, "is differentiated by gradient tapes only");
    call->put_gradients(dy, *pass);
  });
  return results;
}

}  // namespace lockstep
