// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/tensor/indexed_slices.h>
#include <lockstep/tensor/tensor.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <utility>

namespace lockstep {

// Receives the gradients of one recorded op's inputs.
class LOCKSTEP_EXPORT GradientSink {
 public:
  virtual ~GradientSink();
  // Somebody needs the gradient of this input; rules skip the others.
  virtual bool wants(int input) const = 0;
  // Hands over the gradient of an input, of the input's shape and dtype. `compute` runs at once; its
  // last op may write straight to where the gradient is needed (see Placement), so it must not be
  // computed before put is called. At most once per input.
  virtual void put(int input, const std::function<Tensor()>& compute) = 0;
  // The same for a gradient that is zero but for some rows. Unless a sink knows better it puts the
  // dense tensor.
  virtual void put_slices(int input, const std::function<IndexedSlices()>& compute);
};

// The gradient rule of an op: given the gradients of its outputs (undefined where no gradient flows;
// at least one is defined), puts those of its inputs. Written with public ops, so that every device
// and nested tapes get it. Small and weight gradients come before those of activations.
using GradientRule = std::function<void(std::span<const Tensor> dy, GradientSink& sink)>;

// What listens to the ops of a thread: the gradient tape.
class LOCKSTEP_EXPORT OpRecorder {
 public:
  virtual ~OpRecorder();
  // Ops that take this input are to be recorded.
  virtual bool wants(const Tensor& input) const = 0;
  virtual void record(const char* op, std::span<const Tensor* const> inputs,
                      std::span<const Tensor> outputs, GradientRule rule) = 0;
};

// The calling thread's recorder, null when nothing records.
LOCKSTEP_EXPORT OpRecorder* current_recorder() noexcept;

// Sets the calling thread's recorder while it lives; null suspends recording.
class [[nodiscard]] LOCKSTEP_EXPORT RecorderScope {
 public:
  explicit RecorderScope(OpRecorder* recorder) noexcept;
  ~RecorderScope();
  RecorderScope(const RecorderScope&) = delete;
  RecorderScope& operator=(const RecorderScope&) = delete;

 private:
  OpRecorder* previous_;
};

// Some recorder wants one of the inputs; tells ops whether to keep what their gradient rule needs.
inline bool recording(std::initializer_list<const Tensor*> inputs) {
  const OpRecorder* recorder = current_recorder();
  if (!recorder) return false;
  for (const Tensor* input : inputs)
    if (input->defined() && recorder->wants(*input)) return true;
  return false;
}

// Records an op of one output if somebody listens; `rule(dy, sink)` takes the output's gradient.
// Undefined inputs (an absent bias) keep their position and are never wanted.
template <class Rule>
void record(const char* op, std::initializer_list<const Tensor*> inputs, const Tensor& output,
            Rule&& rule) {
  if (!recording(inputs)) return;
  current_recorder()->record(
      op, {inputs.begin(), inputs.size()}, {&output, 1},
      [rule = std::forward<Rule>(rule)](std::span<const Tensor> dy, GradientSink& sink) {
        rule(dy[0], sink);
      });
}

}  // namespace lockstep
