// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "distribute/verify_trial.h"

namespace lockstep::testing {

// A replica's rows alone on one replica.
struct Part {
  double weight = 0;  // its share of all rows
  Numbers value;
};

// One quantity, an update of the variables or a loss, on several replicas and on one.
struct Case {
  int replicas = 0;
  std::int64_t rows = 0;
  Numbers observed, expected;
  std::vector<Part>
      parts;  // of replicas that have rows; filled in where something is to be explained

  bool all_have_rows() const { return parts.size() == static_cast<std::size_t>(replicas); }
};

// A quantity in all cases that were run.
struct Quantity {
  std::string name;
  std::vector<Span> spans;
  Numbers scale;  // of each span, what its rounding refers to
  double tolerance = 0;
  bool by_parts = false;  // what is expected is the weighted mean of the parts
  std::vector<Case> cases;

  // a is b but for rounding and the tolerance, allowed so many times.
  bool close(const Numbers& a, const Numbers& b, double times = 1) const;
  bool wrong(const Case& each) const { return !close(each.observed, each.expected); }
  // Where all replicas have as many rows, it is as expected times the factor for so many replicas.
  bool even_rows_have(const std::function<double(int replicas)>& factor) const;
  // The first case that is not as expected; null when all are.
  const Case* first_wrong() const;
  // "with 4 replicas and 8 rows ..." and pair().
  std::string figures(const Case& wrong) const;
  // "the loss is 8.2, where 2.05 is expected (the factor is 4)"
  std::string pair(const Numbers& observed, const Numbers& expected) const;
};

bool finite(const Numbers& numbers);
double norm_of(const Numbers& numbers);
// The sum of weights times parts; with equal weights where `factor` is given.
Numbers combined(const Case& each, std::optional<double> factor = {});

// On one replica, the whole is the weighted mean of its parts.
bool linear(const Quantity& quantity);
// The spans that are: where an optimizer hides the size of gradients, its slots.
Quantity linear_part(const Quantity& update);

struct Explanation {
  Mistake mistake = Mistake::other;
  const char* text = "";                // why the numbers say so, and what to do
  std::span<const Mistake> or_as = {};  // others that give the same numbers; static
};
// Which mistake turns what is expected, and the parts, into what was observed in all cases where every
// replica has rows; nothing when none of those that a formula describes does, or none of them is wrong.
std::optional<Explanation> explain(const Quantity& update_or_loss);
std::optional<Explanation> explain_metric(const Quantity& metric);

}  // namespace lockstep::testing
