// SPDX-License-Identifier: Apache-2.0
#include "distribute/verify_compare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::testing {
namespace {

// Of runs that should give the same bits, but on GPUs may not.
constexpr double kSame = 0.1;

// A quantity without cases yet, of which `like` is one.
Quantity of_shape(const char* name, const Outcome& like, const Numbers& value, double tolerance) {
  Quantity quantity{.name = name,
                    .spans = {},
                    .scale = {},
                    .tolerance = tolerance,
                    .by_parts = false,
                    .cases = {}};
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

Numbers Comparison::update_of(const Outcome& outcome) {
  Numbers update = outcome.after;
  for (std::size_t i = 0; i < update.size(); ++i) update[i] -= outcome.before[i];
  return update;
}

Numbers Comparison::metric_of(const Outcome& outcome) { return outcome.metric; }

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

const Outcome& Comparison::on_one(const RowRange& rows, int as_replica, bool reversed) {
  const auto [place, fresh] = on_one_.try_emplace({rows.begin, rows.end, as_replica, reversed});
  if (fresh)
    place->second =
        trials_.run({.rows = rows, .rows_reversed = reversed, .as_replica = as_replica});
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
  quantity.by_parts = by_parts();
  if (!by_parts() && !quantity.first_wrong()) return quantity;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Case& each = quantity.cases[i];
    each.parts = parts(runs_[i], measure);
    if (by_parts()) each.expected = combined(each);
  }
  return quantity;
}

// Elements of the update on one replica that are others when the rows come in another order: zeros but
// for rounding, which optimizers like Adam make large. Of a variable that has many, all.
std::vector<bool> Comparison::rounding_in_update() {
  std::vector<bool> rounding(runs_[0].outcome.before.size());
  for (const Run& run : runs_) {
    const Numbers update = update_of(on_one(run.rows));
    const Numbers reversed = update_of(on_one(run.rows, 0, true));
    for (std::size_t i = 0; i < update.size(); ++i)
      if (!(std::abs(update[i] - reversed[i]) <= options_.tolerance * std::abs(update[i])))
        rounding[i] = true;
  }
  auto begin = rounding.begin();
  for (const Span& span : runs_[0].outcome.spans) {
    const auto end = begin + static_cast<std::ptrdiff_t>(span.size);
    if (std::count(begin, end, true) * 8 > end - begin) std::fill(begin, end, true);
    begin = end;
  }
  return rounding;
}

// Most of the update is so.
bool Comparison::mostly(const std::vector<bool>& rounding) {
  Numbers update = update_of(on_one(runs_[0].rows));
  const double norm = norm_of(update);
  for (std::size_t i = 0; i < update.size(); ++i)
    if (!rounding[i]) update[i] = 0;
  return norm_of(update) > 0.7 * norm;
}

bool Comparison::rows_have_places() {
  const Outcome& ordered = on_one(runs_[0].rows);
  if (ordered.losses.empty()) return mostly(rounding_in_update());
  const Numbers loss = loss_of(ordered);
  return !of_shape("loss", ordered, loss, options_.tolerance)
              .close(loss_of(on_one(runs_[0].rows, 0, true)), loss);
}

Quantity Comparison::update() {
  Quantity update = quantity("update's 2-norm", update_of);
  if (random_ || !update.first_wrong()) return update;
  const std::vector<bool> rounding = rounding_in_update();
  if (mostly(rounding)) return update;
  const auto clear = [&](Numbers& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (rounding[i]) numbers[i] = 0;
  };
  for (Case& each : update.cases) {
    clear(each.observed);
    clear(each.expected);
    for (Part& part : each.parts) clear(part.value);
  }
  return update;
}

}  // namespace lockstep::testing
