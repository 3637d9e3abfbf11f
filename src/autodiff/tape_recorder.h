// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/ops/recorder.h>

#include <algorithm>
#include <utility>

#include "autodiff/backward.h"

namespace lockstep {

inline bool wants_one(const OpRecorder& recorder, std::span<const Tensor* const> values) {
  return std::any_of(values.begin(), values.end(), [&](const Tensor* value) {
    return value->defined() && recorder.wants(*value);
  });
}

// Keeps the records of the ops it wants, and hands what the recorder around it wants on to that one.
class TapeRecorder : public OpRecorder {
 public:
  explicit TapeRecorder(bool watch_trainable) : outer_(current_recorder()) {
    records_.watch_trainable = watch_trainable;
  }

  TapeRecords& records() { return records_; }
  OpRecorder* outer() const { return outer_; }

  bool wants(const Tensor& input) const override {
    return wants_itself(input) || (outer_ && outer_->wants(input));
  }

  void record(const char* op, std::span<const Tensor* const> inputs,
              std::span<const Tensor> outputs, GradientRule rule) override {
    const bool ours = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor* input) {
      return input->defined() && wants_itself(*input);
    });
    if (outer_ && wants_one(*outer_, inputs)) {
      if (!ours) return outer_->record(op, inputs, outputs, std::move(rule));
      outer_->record(op, inputs, outputs, rule);
    }
    if (ours) records_.add(op, inputs, outputs, std::move(rule));
  }

 protected:
  virtual bool wants_itself(const Tensor& input) const { return records_.wants(input); }

  TapeRecords records_;

 private:
  OpRecorder* const outer_;
};

}  // namespace lockstep
