// SPDX-License-Identifier: Apache-2.0
// What the numbers say of a step.
#include <algorithm>
#include <cmath>
#include <utility>

#include "distribute/verify_compare.h"

namespace lockstep::testing {
namespace {

// Nothing but the rows of each replica decides what it adds.
bool composed(const Quantity& quantity) {
  return std::ranges::all_of(quantity.cases, [&](const Case& each) {
    return quantity.close(each.observed, combined(each), 2);
  });
}

double largest(const Numbers& update) {
  double largest = 0;
  for (const double change : update) largest = std::max(largest, std::abs(change));
  return largest;
}

// Most elements change by the same, however many replicas there are, as in the first step of Adam: the
// size of gradients is hidden.
bool hides_sizes(const Quantity& update) {
  return std::ranges::all_of(update.cases, [&](const Case& each) {
    const double size = largest(each.expected);
    const auto moved =
        std::ranges::count_if(each.observed, [](double change) { return change != 0; });
    const auto alike = std::ranges::count_if(
        each.observed, [&](double change) { return std::abs(change) > 0.95 * size; });
    return moved > 4 && alike * 2 > moved && largest(each.observed) < 1.05 * size;
  });
}

// The norms of what the replicas' rows give alone are the same.
bool parts_keep_norm(const Quantity& update) {
  const double norm = norm_of(update.cases[0].parts[0].value);
  return std::ranges::all_of(update.cases, [&](const Case& each) {
    return std::ranges::all_of(each.parts, [&](const Part& part) {
      return std::abs(norm_of(part.value) - norm) <= 10 * update.tolerance * norm;
    });
  });
}

// So are those of all rows, however many replicas share them: what is limited is the sum.
bool keeps_norm(const Quantity& update) {
  return parts_keep_norm(update) && std::ranges::all_of(update.cases, [&](const Case& each) {
           const double norm = norm_of(each.parts[0].value);
           const double allowed = 10 * update.tolerance * norm;
           return std::abs(norm_of(each.expected) - norm) <= allowed &&
                  std::abs(norm_of(each.observed) - norm) <= allowed;
         });
}

// The parts' are, and that of all replicas together is larger somewhere: what each gave was added up.
bool adds_up_norms(const Quantity& update) {
  return parts_keep_norm(update) && std::ranges::any_of(update.cases, [](const Case& each) {
           return norm_of(each.observed) > 1.1 * norm_of(each.parts[0].value);
         });
}

constexpr Mistake kHidden[] = {Mistake::regularizer_per_replica, Mistake::averaged_twice};
constexpr Mistake kMeanOfMeans[] = {Mistake::per_replica_divisor};
constexpr Explanation kClipped{
    Mistake::clipped_before_aggregation,
    "only the update is wrong, and it is not linear in the rows: each replica clips or normalises its own "
    "gradients before they are summed: let the optimizer clip, which does so after the sum"};

void report_wrong(const Quantity& quantity, const Explanation& explanation, VerifyReport& report) {
  Finding finding{{explanation.mistake},
                  quantity.figures(*quantity.first_wrong()) + "; " + explanation.text};
  finding.candidates.insert(finding.candidates.end(), explanation.or_as.begin(),
                            explanation.or_as.end());
  report.findings.push_back(std::move(finding));
}

}  // namespace

void Comparison::find(VerifyReport& report) {
  const Quantity loss = quantity("loss", loss_of);
  const bool loss_wrong = loss.first_wrong() != nullptr;
  const std::optional<Explanation> of_loss = explain(loss);
  if (of_loss) {
    report_wrong(loss, *of_loss, report);
  } else if (loss_wrong) {  // all else follows from it
    if (random_)
      note(loss, report);
    else
      report_wrong(loss, unexplained(loss, false), report);
    return;
  }
  find_in_update(of_loss, report);
  find_in_metric(report);
}

void Comparison::find_in_update(const std::optional<Explanation>& of_loss, VerifyReport& report) {
  const Quantity update = this->update();
  if (!update.first_wrong()) return;
  const std::optional<Explanation> found = explain_update(update, of_loss.has_value());
  // A wrong loss makes a wrong update, which says the same or nothing.
  if (of_loss && (!found || found->mistake == of_loss->mistake))
    report.findings.back().text += "; " + update.figures(*update.first_wrong());
  else if (found)
    report_wrong(update, *found, report);
  else if (by_parts())
    note(update, report);
  else
    report_wrong(update, unexplained(update, true), report);
}

std::optional<Explanation> Comparison::explain_update(const Quantity& update, bool loss_wrong) {
  std::optional<Explanation> found = explain(update);
  if (!found && !by_parts()) {
    const Quantity slots = linear_part(update);
    if (!slots.spans.empty()) found = explain(slots);
  }
  // Clipped gradients of one norm add up as those of the replicas' own means do.
  const bool divisor = found && found->mistake == Mistake::per_replica_divisor;
  if (!loss_wrong && (divisor || (!found && by_parts())) && adds_up_norms(update)) return kClipped;
  return found;
}

void Comparison::find_in_metric(VerifyReport& report) {
  const Quantity metric = quantity("metric", metric_of);
  if (!metric.first_wrong()) return;
  if (const std::optional<Explanation> found = explain_metric(metric))
    report_wrong(metric, *found, report);
  else if (by_parts())
    note(metric, report);
  else
    report_wrong(metric,
                 {Mistake::other, "it is neither the mean nor the sum of what the replicas have"},
                 report);
}

// Parts are no yardstick for what is not the sum of them.
void Comparison::note(const Quantity& quantity, VerifyReport& report) {
  report.notes.push_back(
      "the " + quantity.name + " could not be compared: " +
      (random_ ? "the step draws random numbers, which are others on one replica, "
               : "the model looks at the rows of a replica together, ") +
      "and it is not the weighted mean of what each replica's rows give alone; verify the step with SGD, "
      "or without them, too");
}

Explanation Comparison::unexplained(const Quantity& quantity, bool of_update) {
  if (std::ranges::none_of(quantity.cases, [&](const Case& each) {
        return quantity.wrong(each) && each.all_have_rows();
      }))
    return {Mistake::other,
            "it is wrong only where a replica has no rows: a mean over no rows is NaN"};
  if (rows_have_places())
    return {
        Mistake::outside_randomness,
        "on one replica, too, the same rows in another order give another: if the step adds numbers "
        "that each replica draws for itself from an engine that begins alike, draw them by "
        "ops/random.h"};
  if (!options_.local_statistics && composed(quantity))
    return {
        Mistake::other,
        "it is the weighted mean of what each replica's rows give alone, so the model looks at the "
        "rows of a replica together, as BatchNorm does: if this is meant, verify it with "
        "local_statistics, else with {.synchronized = true}"};
  if (of_update && (hides_sizes(quantity) || keeps_norm(quantity)))
    return {
        Mistake::clipped_before_aggregation,
        "the optimizer makes updates of one size out of all gradients, so that it is not seen which of "
        "these it is: verify the step with SGD that does not clip, or with the optimizer's slots",
        kHidden};
  if (of_update && !linear(quantity)) {
    Explanation clipped = kClipped;
    // A mean of means; where the loss is known, it would be wrong.
    if (runs_[0].outcome.losses.empty() && quantity.even_rows_have([](int) { return 1; }))
      clipped.or_as = kMeanOfMeans;
    return clipped;
  }
  return {Mistake::other, "no mistake that is known here gives these numbers"};
}

}  // namespace lockstep::testing
