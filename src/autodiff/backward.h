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

// A gradient on its way to being summed up.
struct GradientSum {
  Tensor dense;                       // undefined: nothing yet
  std::vector<IndexedSlices> slices;  // to be added at the end
};

// The pass that a rule is part of, for rules that run a pass of their own: it goes on from what this
// one has summed up, so that the order of summation is that of its ops standing in the tape
// themselves.
class BackwardSink : public GradientSink {
 public:
  virtual GradientSum so_far(int input) const = 0;
  // In place of put: so_far(input) with the rule's contributions added.
  virtual void put_sum(int input, GradientSum sum) = 0;
  // The sum may have slices added to it.
  virtual bool takes_slices(int input) const = 0;
  // Where the rule's contribution, if it is the last, is best written. An empty Buffer: anywhere.
  virtual Buffer place(int input) const = 0;
};

// Of a backward pass. One that is part of a pass: sources[i] is that one's input inputs[i].
struct BackwardEnds {
  std::span<const Tensor> targets;
  std::span<Tensor> target_gradients;  // of the targets' shapes and dtypes; taken
  std::span<const Tensor> sources;     // each once in a part
  BackwardSink* pass = nullptr;
  std::span<const int> inputs = {};
};

// The gradients of the targets, weighted and summed, with respect to the sources; the options'
// target_gradient is not looked at. A part of a pass gives its sums to that one. With `release`,
// each rule is destroyed once it ran, and with it the activations it holds.
std::vector<Tensor> run_backward(TapeRecords& tape, const BackwardEnds& ends,
                                 const GradientOptions& options, bool release);

}  // namespace lockstep
