// SPDX-License-Identifier: Apache-2.0
#include "distribute/verify_explain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <utility>

namespace lockstep::testing {
namespace {

// Let g be the gradient of the mean loss over all rows, g_k that over the rows of replica k of R, and p
// that of a penalty on the weights. One replica gives E = g + p, replica k's rows alone S_k = g_k + p,
// and a right step E on any number of replicas. Wrong ones give base + factor * p:
//
//                                                  with p also wrong   with p as it should be
//   loss divided by the replica's rows             sum of S_k          sum of S_k - (R-1) p
//   the same, and the mean over replicas           mean of S_k
//   penalty on each replica                                            E + (R-1) p
//   mean over replicas of what all rows divided    E / R               E / R + (1 - 1/R) p
//   sum over replicas of what is summed already    R E
//
// p is not known, but is the same for all rows and numbers of replicas, which g is not: a formula holds
// when one p fits all cases. The update of an optimizer that is linear in the gradient obeys them like
// the gradient, with what decays as a part of p, and so does the loss.
struct Formula {
  Explanation holds;
  std::function<Numbers(const Case&)> base;
  std::function<double(double replicas)> factor;  // null: p is in the base
};

// a + factor * b
Numbers add(Numbers a, double factor, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
  return a;
}

Numbers times(const Numbers& a, double factor) { return add(Numbers(a.size()), factor, a); }

double norm(const double* begin, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += begin[i] * begin[i];
  return std::sqrt(sum);
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Numbers sum_of_parts(const Case& each) { return combined(each, 1.0); }
Numbers mean_of_parts(const Case& each) { return combined(each, 1.0 / each.replicas); }

constexpr Explanation kDivisor{
    Mistake::per_replica_divisor,
    "it is what comes of dividing by the rows of each replica: divide by the rows of all, as "
    "nn::compute_average_loss does"};
constexpr Explanation kAveraged{
    Mistake::averaged_twice,
    "it is divided by the number of replicas once more: gradients are summed over replicas, so divide the "
    "loss by the rows of all, and neither loss nor gradients by anything else"};
constexpr Explanation kPenalty{
    Mistake::regularizer_per_replica,
    "what is too much does not depend on the rows, and every replica adds it: divide penalties on "
    "weights by nn::scale_regularization_loss"};
constexpr Explanation kSummed{
    Mistake::other, "it is summed over the replicas twice: optimizers sum gradients themselves"};

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> all{
      {kDivisor, sum_of_parts, [](double replicas) { return 1 - replicas; }},
      {kDivisor, mean_of_parts, nullptr},
      {kAveraged, [](const Case& each) { return times(each.expected, 1.0 / each.replicas); },
       [](double replicas) { return 1 - 1 / replicas; }},
      {kPenalty, [](const Case& each) { return each.expected; },
       [](double replicas) { return replicas - 1; }},
      {kSummed, [](const Case& each) { return times(each.expected, each.replicas); }, nullptr}};
  return all;
}
const std::vector<Formula>& metric_formulas() {
  static const std::vector<Formula> all{
      {{Mistake::metric_averaged,
        "it is the mean of what the replicas have: add up numerator and denominator over all rows, as "
        "the metrics of metrics/ do"},
       mean_of_parts,
       nullptr},
      {{Mistake::other, "it is the sum of what the replicas have"}, sum_of_parts, nullptr}};
  return all;
}

// The numbers of the spans that are kept.
Numbers kept_of(const Numbers& numbers, const std::vector<Span>& spans,
                const std::vector<bool>& keep) {
  Numbers kept;
  auto begin = numbers.begin();
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const auto end = begin + static_cast<std::ptrdiff_t>(spans[s].size);
    if (keep[s]) kept.insert(kept.end(), begin, end);
    begin = end;
  }
  return kept;
}

Quantity kept_of(const Quantity& whole, const std::vector<bool>& keep) {
  Quantity kept{.name = whole.name,
                .spans = {},
                .scale = {},
                .tolerance = whole.tolerance,
                .by_parts = whole.by_parts,
                .cases = whole.cases};
  for (std::size_t s = 0; s < keep.size(); ++s) {
    if (!keep[s]) continue;
    kept.spans.push_back(whole.spans[s]);
    kept.scale.push_back(whole.scale[s]);
  }
  for (Case& each : kept.cases) {
    each.observed = kept_of(each.observed, whole.spans, keep);
    each.expected = kept_of(each.expected, whole.spans, keep);
    for (Part& part : each.parts) part.value = kept_of(part.value, whole.spans, keep);
  }
  return kept;
}

std::vector<Case> with_rows(const Quantity& quantity) {
  std::vector<Case> cases;
  std::ranges::copy_if(quantity.cases, std::back_inserter(cases), [](const Case& each) {
    return each.all_have_rows() && finite(each.observed);
  });
  return cases;
}

// The first formula that predicts all cases.
std::optional<Explanation> predicted(const std::vector<Formula>& formulas, const Quantity& quantity,
                                     const std::vector<Case>& cases) {
  for (const Formula& formula : formulas)
    if (std::ranges::all_of(cases, [&](const Case& each) {
          return quantity.close(each.observed, formula.base(each), 2);
        }))
      return formula.holds;
  return std::nullopt;
}

// Dividing by a replica's rows, whatever the model does with the rows of others: where all replicas have
// as many, the factor is their number, or after a mean over replicas nothing is wrong. The latter may also
// be a clip that only the fewer rows need.
bool wrong_by_rows(const Quantity& quantity) {
  if (quantity.even_rows_have([](int replicas) { return replicas; })) return true;
  return !quantity.by_parts && (quantity.cases[0].observed.size() == 1 || linear(quantity)) &&
         quantity.even_rows_have([](int) { return 1; });
}

// What the formula leaves unexplained with the p that fits best, of what differs from the expected: as
// the quotient of two sums of squares.
double unexplained(const Formula& formula, const std::vector<Case>& cases) {
  Numbers p(cases[0].observed.size());
  double weights = 0;
  for (const Case& each : cases) {
    const double factor = formula.factor(each.replicas);
    p = add(std::move(p), factor, add(each.observed, -1, formula.base(each)));
    weights += factor * factor;
  }
  p = times(p, 1 / weights);
  double left = 0, wrong = 0;
  for (const Case& each : cases) {
    const Numbers predicted = add(formula.base(each), formula.factor(each.replicas), p);
    left += std::pow(norm_of(add(each.observed, -1, predicted)), 2);
    wrong += std::pow(norm_of(add(each.observed, -1, each.expected)), 2);
  }
  return left / wrong;
}

}  // namespace

bool finite(const Numbers& numbers) {
  return std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); });
}

double norm_of(const Numbers& numbers) { return norm(numbers.data(), numbers.size()); }

Numbers combined(const Case& each, std::optional<double> factor) {
  Numbers sum(each.expected.size());
  for (const Part& part : each.parts)
    sum = add(std::move(sum), factor.value_or(part.weight), part.value);
  return sum;
}

bool Quantity::close(const Numbers& a, const Numbers& b, double times) const {
  if (!finite(a) || !finite(b)) return false;
  // Of a variable that hardly changes rounding is all that there is to see.
  const double least = 1e-3 * norm_of(b);
  std::size_t begin = 0;
  for (std::size_t s = 0; s < spans.size(); begin += spans[s++].size) {
    double squares = 0;
    for (std::size_t i = begin; i < begin + spans[s].size; ++i)
      squares += (a[i] - b[i]) * (a[i] - b[i]);
    const double allowed = tolerance * std::max(norm(b.data() + begin, spans[s].size), least) +
                           4 * spans[s].rounding * scale[s];
    if (std::sqrt(squares) > times * allowed) return false;
  }
  return true;
}

const Case* Quantity::first_wrong() const {
  const auto found = std::ranges::find_if(cases, [&](const Case& each) { return wrong(each); });
  return found == cases.end() ? nullptr : &*found;
}

bool Quantity::even_rows_have(const std::function<double(int)>& factor) const {
  return std::ranges::all_of(cases, [&](const Case& each) {
    return each.rows % each.replicas != 0 ||
           close(each.observed, times(each.expected, factor(each.replicas)), 2);
  });
}

std::string Quantity::pair(const Numbers& observed, const Numbers& expected) const {
  std::ostringstream text;
  text.precision(6);
  const auto figure = [](const Numbers& a) { return a.size() == 1 ? a[0] : norm_of(a); };
  text << "the " << name << " is " << figure(observed) << ", where " << figure(expected)
       << " is expected";
  const double size = dot(expected, expected);
  if (finite(observed) && size > 0)
    text << " (the factor is " << dot(observed, expected) / size << ")";
  return std::move(text).str();
}

std::string Quantity::figures(const Case& wrong) const {
  return "with " + std::to_string(wrong.replicas) + " replicas and " + std::to_string(wrong.rows) +
         " rows " + pair(wrong.observed, wrong.expected);
}

bool linear(const Quantity& quantity) {
  return std::ranges::all_of(quantity.cases, [&](const Case& each) {
    return quantity.close(each.expected, combined(each), 2);
  });
}

Quantity linear_part(const Quantity& update) {
  std::vector<bool> keep(update.spans.size());
  for (std::size_t s = 0; s < keep.size(); ++s) {
    std::vector<bool> alone(keep.size());
    alone[s] = true;
    keep[s] = linear(kept_of(update, alone));
  }
  return kept_of(update, keep);
}

std::optional<Explanation> explain(const Quantity& quantity) {
  const std::vector<Case> cases = with_rows(quantity);
  if (std::ranges::none_of(cases, [&](const Case& each) { return quantity.wrong(each); }))
    return std::nullopt;
  if (const auto found = predicted(formulas(), quantity, cases)) return found;
  if (wrong_by_rows(quantity)) return kDivisor;
  // A penalty may be small, and of an update then known to few digits. Losses of different rows are
  // rather like each other.
  double least = cases[0].observed.size() == 1 ? 1e-4 : 0.01;
  std::optional<Explanation> best;
  for (const Formula& formula : formulas()) {
    if (!formula.factor) continue;
    const double left = unexplained(formula, cases);
    if (left < least) {
      least = left;
      best = formula.holds;
    }
  }
  return best;
}

std::optional<Explanation> explain_metric(const Quantity& quantity) {
  const std::vector<Case> cases = with_rows(quantity);
  if (std::ranges::none_of(cases, [&](const Case& each) { return quantity.wrong(each); }))
    return std::nullopt;
  return predicted(metric_formulas(), quantity, cases);
}

}  // namespace lockstep::testing
