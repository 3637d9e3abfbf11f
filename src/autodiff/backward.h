// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/autodiff/tape.h>
#include <lockstep/ops/recorder.h>

#include <array>
#include <cstdint>
#include <vector>

#include "autodiff/key_index.h"

namespace lockstep {

// Indices of a record's inputs or outputs: most ops have few.
class ValueList {
 public:
  void push_back(std::int32_t value) {
    if (size_ < kInline)
      few_[size_] = value;
    else
      many_.push_back(value);
    ++size_;
  }
  std::size_t size() const { return size_; }
  std::int32_t operator[](std::size_t i) const {
    return i < kInline ? few_[i] : many_[i - kInline];
  }

 private:
  static constexpr std::size_t kInline = 4;
  std::array<std::int32_t, kInline> few_{};
  std::vector<std::int32_t> many_;
  std::size_t size_ = 0;
};

// What a tape knows: the ops in order, over values that are numbered as they appear.
struct TapeRecords {
  struct Record {
    const char* op;
    ValueList inputs;  // KeyIndex::kAbsent for those that are not wanted
    ValueList outputs;
    GradientRule rule;
  };
  std::vector<Record> records;
  KeyIndex values;  // watched, and computed from such
  bool watch_trainable = true;

  bool wants(const Tensor& value) const {
    return (watch_trainable && value.trainable()) || values.find(value.key()) != KeyIndex::kAbsent;
  }
  std::int32_t value_of(const Tensor& value) { return values.insert(value.key()); }
  void add(const char* op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
           GradientRule rule);
};

// The gradients of `target` with respect to `sources`. With `release`, each rule is destroyed once
// it ran, and with it the activations it holds.
std::vector<Tensor> run_backward(TapeRecords& tape, const Tensor& target,
                                 std::span<const Tensor> sources, const GradientOptions& options,
                                 bool release, SourceLocation at);

}  // namespace lockstep
