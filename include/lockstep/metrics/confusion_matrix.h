// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/metrics/metric.h>

#include <cstdint>
#include <string>

namespace lockstep::metrics {

// How often, or with what weight, examples of each class (rows) are taken for each (columns).
class LOCKSTEP_EXPORT ConfusionMatrix : public Metric {
 public:
  // Throws InvalidArgument for fewer than 1 class.
  explicit ConfusionMatrix(std::int64_t num_classes, std::string name = "confusion_matrix",
                           SourceLocation at = SourceLocation::current());

  // labels [..] of i32 or i64; predictions the same, or one score per class [.., num_classes], of
  // which the largest is taken. `weight` as Mean's. Throws as Mean's; a class out of range is
  // InvalidArgument on CPUs and not counted elsewhere.
  void update_state(const Tensor& labels, const Tensor& predictions, const Tensor& weight = {},
                    SourceLocation at = SourceLocation::current());
  // f64 [num_classes, num_classes]; a collective, as Mean's.
  Tensor result(SourceLocation at = SourceLocation::current()) const { return total(at); }

 private:
  std::int64_t num_classes_;
};

}  // namespace lockstep::metrics
