// SPDX-License-Identifier: Apache-2.0
#include "ops/einsum_equation.h"

#include <lockstep/base/check.h>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

constexpr const char* kOp = "einsum";
constexpr int kDots = -1;  // "..." before it is known how many axes it stands for

// The equation and shapes, for messages.
class Text {
 public:
  Text(std::string_view equation, std::span<const Shape> shapes)
      : equation_(equation), shapes_(shapes) {}
  std::string to_string() const {
    std::string text = "\"" + std::string(equation_) + "\" of ";
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      text += (i ? ", " : "") + shapes_[i].to_string();
    return text;
  }

 private:
  std::string_view equation_;
  std::span<const Shape> shapes_;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string name_of_label(int label) {
  return label < kEllipsis ? std::string(1, static_cast<char>(label)) : "...";
}

// "i...j"; kDots stands for the dots.
Labels read_labels(std::string_view text, const Text& all, SourceLocation at) {
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "..." && !has(labels, kDots)) {
      labels.push_back(kDots);
      i += 2;
      continue;
    }
    require(is_letter(text[i]), at, kOp,
            "expected letters and at most one \"...\" per operand, got '", text[i], "' in ", all);
    labels.push_back(text[i]);
  }
  return labels;
}

// The dots written out as `count` axes.
Labels expanded(const Labels& labels, std::int64_t count) {
  Labels all;
  for (const int label : labels) {
    if (label != kDots) {
      all.push_back(label);
      continue;
    }
    for (std::int64_t i = count; i-- > 0;) all.push_back(kEllipsis + static_cast<int>(i));
  }
  return all;
}

void add_extent(EinsumEquation& to, int label, std::int64_t extent, const Text& all,
                SourceLocation at) {
  const auto [known, added] = to.extents.emplace(label, extent);
  if (added || known->second == extent) return;
  const bool broadcasts = label >= kEllipsis && (known->second == 1 || extent == 1);
  require(broadcasts, at, kOp, "expected one extent of axis ", name_of_label(label), ", got ",
          known->second, " and ", extent, " in ", all);
  known->second *= extent;  // one of them is 1
}

// What is not written: the axes of "...", then the letters that occur once.
Labels implied(const EinsumEquation& equation, std::int64_t dots) {
  Labels letters;
  for (const Labels& labels : equation.operands)
    letters.insert(letters.end(), labels.begin(), labels.end());
  Labels result = expanded({kDots}, dots);
  for (const auto& [label, extent] : equation.extents)
    if (label < kEllipsis && std::count(letters.begin(), letters.end(), label) == 1)
      result.push_back(label);
  return result;
}

void check_result(const EinsumEquation& equation, std::int64_t dots, const Text& all,
                  SourceLocation at) {
  for (const int label : equation.result) {
    require(std::count(equation.result.begin(), equation.result.end(), label) == 1, at, kOp,
            "the result has axis ", name_of_label(label), " twice in ", all);
    require(equation.extents.count(label) == 1, at, kOp, "no operand has axis ",
            name_of_label(label), " of the result in ", all);
  }
  require(dots == 0 || has(equation.result, kEllipsis), at, kOp,
          "the result lacks the \"...\" of the operands in ", all, "; write it there, too");
}

std::vector<std::string_view> split_by_comma(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

EinsumEquation read_einsum(std::string_view equation, std::span<const Shape> shapes,
                           SourceLocation at) {
  const Text all(equation, shapes);
  std::string text(equation);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t arrow = text.find("->");
  const auto parts = split_by_comma(std::string_view(text).substr(0, arrow));
  require(parts.size() == shapes.size(), at, kOp, "expected ", parts.size(), " operands, got ",
          shapes.size(), " for ", all);
  EinsumEquation read;
  std::int64_t most_dots = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Labels labels = read_labels(parts[i], all, at);
    const bool dots = has(labels, kDots);
    const std::int64_t rest =
        shapes[i].rank() - static_cast<std::int64_t>(labels.size()) + (dots ? 1 : 0);
    require(rest >= 0 && (dots || rest == 0), at, kOp, "operand ", i, ", ", shapes[i],
            ", has another rank than \"", parts[i], "\" says in ", all);
    read.operands.push_back(expanded(labels, rest));
    most_dots = std::max(most_dots, dots ? rest : 0);
    for (int axis = 0; axis < shapes[i].rank(); ++axis)
      add_extent(read, read.operands[i][static_cast<std::size_t>(axis)], shapes[i][axis], all, at);
  }
  if (arrow == std::string::npos)
    read.result = implied(read, most_dots);
  else
    read.result =
        expanded(read_labels(std::string_view(text).substr(arrow + 2), all, at), most_dots);
  check_result(read, most_dots, all, at);
  return read;
}

}  // namespace lockstep
