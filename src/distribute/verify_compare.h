// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
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
  // Replicas draw random numbers from the strategy: others than one replica, but for its part of the
  // rows that one can draw, too.
  void expect_random() { random_ = true; }
  // Adds what is wrong to the report.
  void find(VerifyReport& report);

 private:
  struct Run {
    int replicas;
    RowRange rows;
    Outcome outcome;
  };
  using Measure = Numbers (*)(const Outcome&);

  bool by_parts() const { return options_.local_statistics || random_; }
  static Numbers update_of(const Outcome& outcome);
  static Numbers metric_of(const Outcome& outcome);
  const Outcome& on_one(const RowRange& rows, int as_replica = 0, bool reversed = false);
  std::vector<Part> parts(const Run& run, Measure measure);
  Quantity quantity(const char* name, Measure measure);
  std::vector<bool> rounding_in_update();
  bool mostly(const std::vector<bool>& rounding);
  // One replica gives other numbers for the same rows in another order.
  bool rows_have_places();
  // The update, without what is but rounding.
  Quantity update();

  void find_in_update(const std::optional<Explanation>& of_loss, VerifyReport& report);
  std::optional<Explanation> explain_update(const Quantity& update, bool loss_wrong);
  void find_in_metric(VerifyReport& report);
  void note(const Quantity& quantity, VerifyReport& report);
  Explanation unexplained(const Quantity& quantity, bool of_update);

  const Trials& trials_;
  const VerifyOptions& options_;
  std::vector<Run> runs_;
  std::map<std::tuple<std::int64_t, std::int64_t, int, bool>, Outcome> on_one_;
  bool random_ = false;
};

}  // namespace lockstep::testing
