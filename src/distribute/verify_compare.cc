// SPDX-License-Identifier: Apache-2.0
#include "distribute/verify_compare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::testing {
namespace {

// Of runs that should give the same bits, but on GPUs may not.
constexpr double kSame = 0.1;

Numbers update_of(const Outcome& outcome) {
  Numbers update = outcome.after;
  for (std::size_t i = 0; i < update.size(); ++i) update[i] -= outcome.before[i];
  return update;
}

Numbers metric_of(const Outcome& outcome) { return outcome.metric; }

// A quantity without cases yet, of which `like` is one.
Quantity of_shape(const char* name, const Outcome& like, const Numbers& value, double tolerance) {
  Quantity quantity{.name = name, .spans = {}, .scale = {}, .tolerance = tolerance, .cases = {}};
  if (value.size() == like.before.size()) {
    quantity.spans = like.spans;
    auto begin = like.before.begin();
    for (const Span& span : like.spans) {
      const auto end = begin + static_cast<std::ptrdiff_t>(span.size);
      quantity.scale.push_back(std::sqrt(std::inner_product(begin, end, begin, 0.0)));
      begin = end;
    }
  } else {
    quantity.spans = {{name, value.size(), 1e-7}};
    quantity.scale = {
        std::sqrt(std::inner_product(value.begin(), value.end(), value.begin(), 0.0))};
  }
  return quantity;
}

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

// On one replica updates are of one size, whatever the rows.
bool keeps_norm(const Quantity& update) {
  const double norm = norm_of(update.cases[0].expected);
  const auto same = [&](const Numbers& value) {
    return std::abs(norm_of(value) - norm) <= 10 * update.tolerance * norm;
  };
  return std::ranges::all_of(update.cases, [&](const Case& each) {
    return same(each.expected) &&
           std::ranges::all_of(each.parts, [&](const Part& part) { return same(part.value); });
  });
}

constexpr Explanation kClipped{
    Mistake::clipped_before_aggregation,
    "only the update is wrong, and it is not linear in the rows: each replica clips or normalises its own "
    "gradients before they are summed: let the optimizer clip, which does so after the sum"};

void report_wrong(const Quantity& quantity, const Explanation& explanation, VerifyReport& report) {
  Finding finding{{explanation.mistake},
                  quantity.figures(*quantity.first_wrong()) + "; " + explanation.text};
  if (explanation.or_mistake) finding.candidates.push_back(*explanation.or_mistake);
  report.findings.push_back(std::move(finding));
}

}  // namespace

Numbers Comparison::loss_of(const Outcome& outcome) {
  Numbers losses;
  for (const Numbers& loss : outcome.losses)
    losses.push_back(std::accumulate(loss.begin(), loss.end(), 0.0));
  if (losses.empty()) return losses;
  if (std::ranges::all_of(losses, [&](double loss) { return loss == losses[0]; }))
    return {losses[0]};
  return {std::accumulate(losses.begin(), losses.end(), 0.0)};
}

std::string Comparison::difference(const Outcome& observed, const Outcome& expected) const {
  if (observed.before != expected.before) return "variables do not start at the same values";
  const std::pair<const char*, Measure> measures[] = {
      {"update's 2-norm", update_of}, {"loss", loss_of}, {"metric", metric_of}};
  for (const auto& [name, measure] : measures) {
    const Numbers a = measure(observed), b = measure(expected);
    if (a.empty() && b.empty()) continue;
    if (!finite(a) && !finite(b)) continue;
    const Quantity quantity = of_shape(name, expected, b, options_.tolerance);
    if (!quantity.close(a, b, kSame)) return quantity.pair(a, b);
  }
  return "";
}

void Comparison::add(int replicas, const RowRange& rows, Outcome outcome) {
  runs_.push_back({replicas, rows, std::move(outcome)});
}

const Outcome& Comparison::on_one(const RowRange& rows, int as_replica) {
  const auto [place, fresh] = on_one_.try_emplace({rows.begin, rows.end, as_replica});
  if (fresh) place->second = trials_.run({.rows = rows, .as_replica = as_replica});
  return place->second;
}

std::vector<Part> Comparison::parts(const Run& run, Measure measure) {
  std::vector<Part> parts;
  for (int part = 0; part < run.replicas; ++part) {
    const RowRange rows = rows_of_part(run.rows.size(), run.replicas, part);
    if (rows.size() == 0) continue;
    const Outcome& alone =
        on_one({run.rows.begin + rows.begin, run.rows.begin + rows.end}, random_ ? part : 0);
    parts.push_back(
        {static_cast<double>(rows.size()) / static_cast<double>(run.rows.size()), measure(alone)});
  }
  return parts;
}

// The quantity in all runs; with parts where they are needed.
Quantity Comparison::quantity(const char* name, Measure measure) {
  const Outcome& like = on_one(runs_[0].rows);
  Quantity quantity = of_shape(name, like, measure(like), options_.tolerance);
  if (measure(like).empty()) return quantity;
  for (const Run& run : runs_)
    quantity.cases.push_back({.replicas = run.replicas,
                              .rows = run.rows.size(),
                              .observed = measure(run.outcome),
                              .expected = measure(on_one(run.rows)),
                              .parts = {}});
  if (!by_parts() && !quantity.first_wrong()) return quantity;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Case& each = quantity.cases[i];
    each.parts = parts(runs_[i], measure);
    if (by_parts()) each.expected = combined(each);
  }
  return quantity;
}

void Comparison::find(VerifyReport& report) {
  const Quantity update = quantity("update's 2-norm", update_of);
  const Quantity loss = quantity("loss", loss_of);
  const Quantity metric = quantity("metric", metric_of);
  const std::optional<Explanation> of_loss = explain(loss);
  const bool loss_wrong = loss.first_wrong() != nullptr;
  if (of_loss) report_wrong(loss, *of_loss, report);
  if (update.first_wrong()) {
    const std::optional<Explanation> of_update = explain_update(update, loss_wrong);
    // A wrong loss makes a wrong update, which says the same or nothing.
    if (of_loss && (!of_update || of_update->mistake == of_loss->mistake))
      report.findings.back().text += "; " + update.figures(*update.first_wrong());
    else
      report_or_note(update, of_update, loss_wrong, report);
  }
  if (loss_wrong && report.findings.empty()) report_or_note(loss, of_loss, true, report);
  if (metric.first_wrong()) report_metric(metric, report);
}

std::optional<Explanation> Comparison::explain_update(const Quantity& update, bool loss_wrong) {
  std::optional<Explanation> found = explain(update);
  if (!found && !by_parts()) {
    const Quantity slots = linear_part(update);
    if (!slots.spans.empty()) found = explain(slots);
  }
  // Clipped gradients of one norm add up as those of the replicas' own means do.
  if (found && found->mistake == Mistake::per_replica_divisor && !loss_wrong && keeps_norm(update))
    return kClipped;
  return found;
}

void Comparison::report_or_note(const Quantity& quantity, const std::optional<Explanation>& found,
                                bool loss_wrong, VerifyReport& report) {
  if (found)
    report_wrong(quantity, *found, report);
  else if (random_)
    note(quantity, report);
  else
    report_wrong(quantity, unexplained(quantity, loss_wrong), report);
}

void Comparison::report_metric(const Quantity& metric, VerifyReport& report) {
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

// One replica gives other numbers for the same rows in another order.
bool Comparison::rows_have_places() {
  const Outcome& ordered = on_one(runs_[0].rows);
  const Outcome reversed = trials_.run({.rows = runs_[0].rows, .rows_reversed = true});
  const bool returns_loss = !ordered.losses.empty();
  const Measure measure = returns_loss ? &Comparison::loss_of : &update_of;
  const Quantity quantity = of_shape("", ordered, measure(ordered), options_.tolerance);
  // An update may be rounding, made large by an optimizer like Adam.
  return !quantity.close(measure(reversed), measure(ordered), returns_loss ? 1 : 100);
}

Explanation Comparison::unexplained(const Quantity& quantity, bool loss_wrong) {
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
  if (!loss_wrong && hides_sizes(quantity))
    return {
        Mistake::clipped_before_aggregation,
        "the optimizer makes updates of one size out of all gradients, so that this may also come of a "
        "penalty that every replica adds: verify the step with SGD, or with the optimizer's slots",
        Mistake::regularizer_per_replica};
  if (!loss_wrong && (options_.local_statistics || !linear(quantity))) return kClipped;
  return {Mistake::other, "no mistake that is known here gives these numbers"};
}

}  // namespace lockstep::testing
