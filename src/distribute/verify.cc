// SPDX-License-Identifier: Apache-2.0
#include <lockstep/distribute/verify.h>

#include <lockstep/base/check.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "distribute/verify_compare.h"
#include "distribute/verify_trial.h"

namespace lockstep::testing {
namespace {

// Runs trials until one of the things that make all others meaningless is found: failures, numbers that
// change from run to run, replicas that come apart; then compares with one replica.
class Verification {
 public:
  Verification(const Trials& trials, const VerifyOptions& options, std::int64_t rows)
      : trials_(trials),
        comparison_(trials, options),
        // Four replicas get: the same number each; 2, 2, 2, 1; 2, 2, 1, 0.
        ranges_{{0, rows / 4 * 4}, {rows - 7, rows}, {0, 5}} {}

  VerifyReport run() {
    if (!repeats_on_one_replica()) return report_;
    for (const int replicas : {2, 4})
      for (const RowRange& rows : ranges_)
        if (!same_in_every_way(replicas, rows)) return report_;
    comparison_.find(report_);
    return report_;
  }

 private:
  bool repeats_on_one_replica() {
    const Trial trial{.rows = ranges_[0]};
    const Outcome first = trials_.run(trial);
    if (first.before == first.after)
      return found(
          {Mistake::other},
          "on one replica many calls of step() update none of variables(); what step() makes "
          "is new in every call");
    if (!finite(first.after) || !finite(comparison_.loss_of(first)))
      return found({Mistake::other}, "on one replica the update or the loss is not finite");
    if (const std::string difference = comparison_.difference(trials_.run(trial), first);
        !difference.empty())
      return found(
          {Mistake::outside_randomness},
          "two runs on one replica that begin alike differ: " + difference +
              "; draw random numbers by ops/random.h, and keep nothing from run to run outside "
              "of the program");
    if (first.random) comparison_.expect_random();
    return true;
  }

  bool same_in_every_way(int replicas, const RowRange& rows) {
    Trial trial{.replicas = replicas, .rows = rows};
    const Outcome first = trials_.run(trial);
    if (!ran(trial, first)) return false;
    const bool full = rows.begin == ranges_[0].begin && rows.end == ranges_[0].end;
    if (full && !same(trial, first)) return false;
    trial.threads = ReplicaThreads::concurrent;
    for (int repeat = 0; repeat < (full ? 3 : 1); ++repeat)
      if (!same(trial, first)) return false;
    trial.last_enters_first = true;
    if (full && !same(trial, first)) return false;
    if (!first.apart.empty())
      return found({Mistake::collective_missed},
                   "the replicas' variables differ after a step: " + first.apart +
                       "; what is applied must be summed over the replicas, or made from what is");
    comparison_.add(replicas, rows, first);
    return true;
  }

  // The trial ran to its end.
  bool ran(const Trial& trial, const Outcome& outcome) {
    if (outcome.error.empty()) return true;
    const std::string where = "with " + std::to_string(trial.replicas) + " replicas and " +
                              std::to_string(trial.rows.size()) + " rows the step fails: ";
    if (!outcome.missed) return found({Mistake::other}, where + outcome.error);
    return found(
        {Mistake::collective_missed},
        where + outcome.error +
            "; every replica must make the same collectives (minimize, all_reduce, making a "
            "variable, a batch norm in training), without rows, too");
  }

  // The trial gives what the first gave with the same rows, one replica at a time.
  bool same(const Trial& trial, const Outcome& first) {
    const Outcome outcome = trials_.run(trial);
    if (!ran(trial, outcome)) return false;
    const std::string difference = comparison_.difference(outcome, first);
    if (difference.empty()) return true;
    const std::string replicas = std::to_string(trial.replicas) + " replicas ";
    if (trial.threads == ReplicaThreads::one_at_a_time)
      return found({Mistake::outside_randomness},
                   "two runs of " + replicas + "one at a time that begin alike differ: " +
                       difference + "; draw random numbers by ops/random.h");
    return found(
        {Mistake::shared_state_raced},
        replicas + "at the same time give other numbers than one at a time: " + difference +
            "; they change something that they share (a counter, a buffer, a random engine): "
            "give each its own, by ReplicaLocal");
  }

  bool found(std::vector<Mistake> candidates, std::string text) {
    report_.findings.push_back({std::move(candidates), std::move(text)});
    return false;
  }

  const Trials& trials_;
  Comparison comparison_;
  const RowRange ranges_[3];
  VerifyReport report_;
};

}  // namespace

std::string_view to_string(Mistake mistake) {
  constexpr std::string_view names[] = {
      "per_replica_divisor", "regularizer_per_replica", "clipped_before_aggregation",
      "shared_state_raced",  "collective_missed",       "averaged_twice",
      "metric_averaged",     "outside_randomness",      "other"};
  return names[static_cast<std::size_t>(mistake)];
}

bool VerifyReport::names(Mistake mistake) const {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    return std::ranges::find(finding.candidates, mistake) != finding.candidates.end();
  });
}

std::string VerifyReport::to_string() const {
  std::ostringstream text;
  if (ok()) text << "verify: nothing found\n";
  for (const Finding& finding : findings) {
    const char* before = "verify: ";
    for (const Mistake mistake : finding.candidates)
      text << std::exchange(before, " or ") << testing::to_string(mistake);
    text << ": " << finding.text << '\n';
  }
  for (const std::string& note : notes) text << "note: " << note << '\n';
  return std::move(text).str();
}

namespace detail {

AnyProgram::~AnyProgram() = default;

VerifyReport verify(const MakeProgram& make, const std::vector<Tensor>& leaves,
                    const VerifyOptions& options, SourceLocation at) {
  const std::int64_t rows = common_rows(leaves, "verify");
  require(rows >= 8, at, "verify", "expected a batch of at least 8 rows, got ", rows);
  require(options.tolerance > 0, at, "verify", "expected a tolerance above 0, got ",
          options.tolerance);
  require(options.deadline.count() > 0, at, "verify", "expected a deadline above 0, got ",
          options.deadline.count(), " ms");
  const Trials trials(make, leaves, options);
  return Verification(trials, options, rows).run();
}

}  // namespace detail
}  // namespace lockstep::testing
