// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/from_tensors.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::data {

using Integers = std::vector<std::int64_t>;

// The elements of an iterator of integers, each as the list of its values.
inline std::vector<Integers> drain(Iterator<Tensor>& iterator, std::int64_t limit = 1 << 20) {
  std::vector<Integers> elements;
  while (limit-- > 0) {
    const std::optional<Tensor> element = iterator.next();
    if (!element) break;
    elements.push_back(element->to_vector<std::int64_t>());
  }
  return elements;
}

inline std::vector<Integers> elements_of(const Dataset<Tensor>& dataset,
                                         std::int64_t limit = 1 << 20) {
  Iterator<Tensor> iterator = dataset.iterator();
  return drain(iterator, limit);
}

// The same, one list after the other.
inline Integers values_of(const Dataset<Tensor>& dataset, std::int64_t limit = 1 << 20) {
  Integers values;
  for (const Integers& element : elements_of(dataset, limit))
    values.insert(values.end(), element.begin(), element.end());
  return values;
}

inline Integers iota(std::int64_t end, std::int64_t begin = 0) {
  Integers values;
  for (std::int64_t i = begin; i < end; ++i) values.push_back(i);
  return values;
}

// Keeps what it visits, or hands back what another kept.
class StateMap final : public StateVisitor {
 public:
  void visit(std::string_view name, Tensor& value) override { visit(tensors_, name, value); }
  void visit(std::string_view name, std::int64_t& value) override { visit(integers_, name, value); }

  void restore_from_now_on() { restoring_ = true; }
  std::int64_t& integer(const std::string& name) { return integers_.at(name); }

 private:
  template <class T>
  void visit(std::map<std::string, T, std::less<>>& kept, std::string_view name, T& value) {
    if (restoring_)
      value = kept.at(std::string(name));
    else
      kept[std::string(name)] = value;
  }

  std::map<std::string, Tensor, std::less<>> tensors_;
  std::map<std::string, std::int64_t, std::less<>> integers_;
  bool restoring_ = false;
};

template <class Object>
StateMap save(Object& object) {
  StateMap state;
  object.visit_state(state);
  return state;
}

template <class Object>
void restore(Object& object, StateMap state) {
  state.restore_from_now_on();
  object.visit_state(state);
}

}  // namespace lockstep::data
