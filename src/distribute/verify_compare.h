// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distribute/verify_explain.h"
#include "distribute/verify_trial.h"

namespace lockstep::testing {

// Compares what several replicas gave with what one gives, and explains the difference.
class Comparison {
 public:
  Comparison(const Trials& trials, const VerifyOptions& options)
      : trials_(trials), options_(options) {}

  // The loss that the replicas returned: their sum, or what all returned alike; empty without.
  static Numbers loss_of(const Outcome& outcome);
  // Where two outcomes that should be the same differ; empty when they are.
  std::string difference(const Outcome& observed, const Outcome& expected) const;
  // What came of these rows on so many replicas.
  void add(int replicas, const RowRange& rows, Outcome outcome);
  // Adds what is wrong to the report.
  void find(VerifyReport& report);

 private:
  struct Run {
    int replicas;
    RowRange rows;
    Outcome outcome;
  };
  using Measure = Numbers (*)(const Outcome&);

  const Outcome& on_one(const RowRange& rows);
  std::vector<Part> parts(const Run& run, Measure measure);
  Quantity quantity(const char* name, Measure measure);
  void find_in_updates(const Quantity& update, const std::optional<Explanation>& of_loss,
                       bool loss_wrong, VerifyReport& report);
  Explanation unexplained(const Quantity& update, bool loss_wrong);
  bool rows_have_places();

  const Trials& trials_;
  const VerifyOptions& options_;
  std::vector<Run> runs_;
  std::map<std::pair<std::int64_t, std::int64_t>, Outcome> on_one_;
};

}  // namespace lockstep::testing
