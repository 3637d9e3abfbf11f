// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/optim/optimizer.h>

namespace lockstep::optim {

struct AdafactorOptions {
  LearningRate learning_rate = 0.001;
  double beta_2_decay = -0.8;  // 0 or less
  double epsilon_1 = 1e-30;    // added to squares
  double epsilon_2 = 1e-3;     // the least RMS of weights that a step is in proportion to
  double clip_threshold = 1;   // above 0
  bool relative_step = true;   // the rate is at most 1 / sqrt(t)
  double weight_decay = 0;     // decoupled, see Optimizer
  Clip clip = {};
  Ema ema = {};
  std::int64_t gradient_accumulation_steps = 1;  // see Optimizer
};

// Adafactor (Shazeer and Stern, arXiv:1804.04235), by the formula of Keras: the second moment of a
// variable of rank 2 or more is remembered by its means over the last and over the last but one axis.
// t counts updates from 1, RMS(x) = sqrt(mean(x^2)):
//   b = 1 - t^beta_2_decay;  s = g^2 + epsilon_1
//   r = b r + (1 - b) mean(s, -1);  c = b c + (1 - b) mean(s, -2);  v = r c / mean(r, -1)
//   or, of rank 0 and 1, v = b v + (1 - b) s
//   u = g / sqrt(v);  w -= max(epsilon_2, RMS(w)) rate u / max(1, RMS(u) / clip_threshold)
// Slots: "r" and "c", or "v", the others without elements; f32 for variables of 16-bit types. An
// update reads memory several times and is not in place.
class LOCKSTEP_EXPORT Adafactor final : public Optimizer {
 public:
  // Throws InvalidArgument for a beta_2_decay above 0, a clip_threshold of 0, or another number that
  // is negative.
  explicit Adafactor(const AdafactorOptions& options = {},
                     SourceLocation at = SourceLocation::current());

 private:
  void update(const Update& update) const override;

  AdafactorOptions options_;
};

}  // namespace lockstep::optim
