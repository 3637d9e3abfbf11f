// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/tensor/indexed_slices.h>
#include <lockstep/tensor/tensor.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <vector>

namespace lockstep {

struct TapeOptions {
  // gradient may be called more than once; otherwise the tape lets go of what it recorded as it
  // goes.
  bool persistent = false;
  // Record what is computed from trainable variables without watch().
  bool watch_trainable = true;
};

struct GradientOptions {
  // Gradient of the target itself; undefined: ones, so that the target's elements are summed.
  Tensor target_gradient = {};
  // Called with each source's index and gradient as soon as no further contribution can come, the
  // last layer's first; at once, with an undefined tensor, for sources that cannot be reached.
  std::function<void(std::size_t, const Tensor&)> on_ready = {};
  // Takes the gradient of a source of which only rows were read, by gather along the first axis or
  // embedding_lookup, in place of on_ready; the result is then undefined. Without it, and where the
  // source was used otherwise, too, such a gradient is a dense tensor.
  std::function<void(std::size_t, const IndexedSlices&)> on_slices = {};
  // Where the gradient of a source is best written: its last op writes there if it can, and a
  // gradient that stands elsewhere tells by its buffer. An empty Buffer: anywhere.
  std::function<Buffer(std::size_t)> place = {};
};

// Records the differentiable ops of the thread that made it, from construction on: those that touch
// a watched tensor, a value read from a trainable variable, or the result of a recorded op. Tapes
// nest: an outer tape also records what inner tapes compute in gradient(). To be used and destroyed
// by that thread, innermost first.
class [[nodiscard]] LOCKSTEP_EXPORT GradientTape {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Record what is computed from this value, too.
  void watch(const Tensor& value, SourceLocation at = SourceLocation::current());

  // The gradient of `target` (its sum, unless target_gradient is given) with respect to each
  // source; undefined for a source that the target does not depend on. Throws FailedPrecondition
  // for a second call on a tape that is not persistent, InvalidArgument for undefined tensors and
  // when target_gradient does not fit.
  std::vector<Tensor> gradient(const Tensor& target, std::span<const Tensor> sources,
                               const GradientOptions& options = {},
                               SourceLocation at = SourceLocation::current());
  // The same for anything that reads as tensors: a list of variables.
  template <std::ranges::input_range R>
    requires std::convertible_to<std::ranges::range_reference_t<R>, Tensor>
  std::vector<Tensor> gradient(const Tensor& target, const R& sources,
                               const GradientOptions& options = {},
                               SourceLocation at = SourceLocation::current()) {
    const std::vector<Tensor> values(std::ranges::begin(sources), std::ranges::end(sources));
    return gradient(target, std::span<const Tensor>(values), options, at);
  }
  std::vector<Tensor> gradient(const Tensor& target, std::initializer_list<Tensor> sources,
                               const GradientOptions& options = {},
                               SourceLocation at = SourceLocation::current()) {
    return gradient(target, std::span<const Tensor>(sources.begin(), sources.size()), options, at);
  }

  // The derivative of each element of the target by each element of a source, [target's shape +
  // source's shape], one backward pass per element of the target; undefined for a source that the
  // target does not depend on. One call, like gradient, unless the tape is persistent. Outer tapes
  // record it. Throws as gradient does, and InvalidArgument for more axes than a Shape has.
  std::vector<Tensor> jacobian(const Tensor& target, std::span<const Tensor> sources,
                               SourceLocation at = SourceLocation::current());
  template <std::ranges::input_range R>
    requires std::convertible_to<std::ranges::range_reference_t<R>, Tensor>
  std::vector<Tensor> jacobian(const Tensor& target, const R& sources,
                               SourceLocation at = SourceLocation::current()) {
    const std::vector<Tensor> values(std::ranges::begin(sources), std::ranges::end(sources));
    return jacobian(target, std::span<const Tensor>(values), at);
  }
  std::vector<Tensor> jacobian(const Tensor& target, std::initializer_list<Tensor> sources,
                               SourceLocation at = SourceLocation::current()) {
    return jacobian(target, std::span<const Tensor>(sources.begin(), sources.size()), at);
  }
  // The same row by row, of a target [rows, ...] and a source [rows, ...]: [target's shape +
  // source's shape without its rows], one backward pass per element of a row. Right only where a
  // row of the target depends on the same row of the source alone; where it depends on others, too,
  // their derivatives are added. InvalidArgument unless both have as many rows.
  Tensor batch_jacobian(const Tensor& target, const Tensor& source,
                        SourceLocation at = SourceLocation::current());

  // Nothing is recorded while the returned guard lives.
  class [[nodiscard]] Pause;
  Pause stop_recording();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class [[nodiscard]] LOCKSTEP_EXPORT GradientTape::Pause {
 public:
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  friend class GradientTape;
  explicit Pause(Impl& tape);
  Impl& tape_;
  bool was_recording_;
};

}  // namespace lockstep
