// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/ops/recorder.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "autodiff/key_index.h"
#include "autodiff/tape_recorder.h"

namespace lockstep {

// Throws InvalidArgument for an undefined one among what a user's function returned.
inline void require_results(const char* op, const std::vector<Tensor>& results, SourceLocation at) {
  for (std::size_t i = 0; i < results.size(); ++i)
    require(results[i].defined(), at, op, "expected tensors, got an undefined one as result ", i);
}

// Keeps the ops that run under it from the recorder around it, and notes which values they use that
// this one wants: by these the results of the ops depend on what is recorded.
class Capture final : public OpRecorder {
 public:
  // `further`, if any, is to record the ops all the same. The recorder around is it or leads to it.
  explicit Capture(OpRecorder& outer, OpRecorder* further = nullptr)
      : outer_(outer), further_(further) {}

  struct Input {
    Tensor value;
    const char* op;  // the first that used it
  };
  // Each value once; none that the ops themselves computed.
  const std::vector<Input>& inputs() const { return inputs_; }

  // Notes `value` if the recorder around wants it.
  void use(const Tensor& value, const char* op) {
    if (!outer_.wants(value) || computed_.find(value.key()) != KeyIndex::kAbsent) return;
    const bool known = std::any_of(inputs_.begin(), inputs_.end(), [&](const Input& input) {
      return input.value.key() == value.key();
    });
    if (!known) inputs_.push_back({value, op});
  }

  bool wants(const Tensor& input) const override { return outer_.wants(input); }

  void record(const char* op, std::span<const Tensor* const> inputs,
              std::span<const Tensor> outputs, GradientRule rule) override {
    for (const Tensor* input : inputs)
      if (input->defined()) use(*input, op);
    for (const Tensor& output : outputs) computed_.insert(output.key());
    if (further_ && wants_one(*further_, inputs))
      further_->record(op, inputs, outputs, std::move(rule));
  }

 private:
  OpRecorder& outer_;
  OpRecorder* const further_;
  std::vector<Input> inputs_;
  KeyIndex computed_;
};

}  // namespace lockstep
