// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/factory.h>
#include <lockstep/tensor/placement.h>

#include <utility>

namespace lockstep {

void TapeRecords::add(const char* op, std::span<const Tensor* const> inputs,
                      std::span<const Tensor> outputs, GradientRule rule) {
  Record& record = records.emplace_back();
  record.op = op;
  record.rule = std::move(rule);
  for (const Tensor* input : inputs)
    record.inputs.push_back(input->defined() && wants(*input) ? value_of(*input)
                                                              : KeyIndex::kAbsent);
  for (const Tensor& output : outputs) record.outputs.push_back(value_of(output));
}

namespace {

constexpr std::size_t kNoSource = static_cast<std::size_t>(-1);

// The sum of several gradients of rows: all rows, one list after the other.
IndexedSlices joined(std::vector<IndexedSlices> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  std::vector<Tensor> values, indices;
  for (const IndexedSlices& part : parts) {
    values.push_back(part.values);
    indices.push_back(cast(part.indices, DType::i64));
  }
  return {.values = concat(values, 0), .indices = concat(indices, 0), .shape = parts[0].shape};
}

// One backward pass. Invariant: a value's gradient is final when `pending`, the number of
// contributions still to come from later records, reaches zero.
class Backward final : public GradientSink {
 public:
  Backward(TapeRecords& tape, std::span<const Tensor> sources, const GradientOptions& options)
      : tape_(tape),
        sources_(sources),
        options_(options),
        values_(tape.values.size()),
        result_(sources.size()) {
    aliases_.assign(sources.size(), kNoSource);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const std::int32_t value = tape.values.find(sources[i].key());
      if (value == KeyIndex::kAbsent) continue;
      Value& known = at(value);
      aliases_[i] = std::exchange(known.source, i);  // the same value may be asked for twice
      known.depends = true;
    }
  }

  std::vector<Tensor> run(const Tensor& target, bool release, SourceLocation location) {
    const std::int32_t value = tape_.values.find(target.key());
    if (value != KeyIndex::kAbsent) {
      mark_needed(value);
      at(value).gradient =
          options_.target_gradient.defined() ? options_.target_gradient : ones_like(target);
      require(at(value).gradient.shape() == target.shape() &&
                  at(value).gradient.dtype() == target.dtype(),
              location, "GradientTape::gradient", "target_gradient must be ",
              name_of(target.dtype()), target.shape().to_string(), ", got ",
              at(value).gradient.to_string());
    }
    announce_unreachable();
    if (value != KeyIndex::kAbsent) {
      finish_if_final(value);
      for (std::size_t i = tape_.records.size(); i-- > 0;) {
        if (needed_.size() > i && needed_[i]) run_rule(tape_.records[i]);
        if (release) tape_.records[i].rule = nullptr;
      }
    }
    return std::move(result_);
  }

  bool wants(int input) const override {
    const std::int32_t value = current_->inputs[static_cast<std::size_t>(input)];
    return value != KeyIndex::kAbsent && values_[static_cast<std::size_t>(value)].depends;
  }

  void put(int input, const std::function<Tensor()>& compute) override {
    if (!wants(input)) return;
    const std::int32_t id = current_->inputs[static_cast<std::size_t>(input)];
    settle(input);
    --at(id).pending;
    add_to(at(id), compute);
    finish_if_final(id);
  }

  void put_slices(int input, const std::function<IndexedSlices()>& compute) override {
    if (!wants(input)) return;
    const std::int32_t id = current_->inputs[static_cast<std::size_t>(input)];
    Value& value = at(id);
    if (!options_.on_slices || value.source == kNoSource || value.computed)
      return GradientSink::put_slices(input, compute);
    settle(input);
    --value.pending;
    value.slices.push_back(compute());
    finish_if_final(id);
  }

 private:
  struct Value {
    bool depends = false;   // on a source, or is one
    bool computed = false;  // by a recorded op
    int pending = 0;
    std::size_t source = kNoSource;
    Tensor gradient;
    std::vector<IndexedSlices> slices;  // what is to be added to it
  };

  Value& at(std::int32_t value) { return values_[static_cast<std::size_t>(value)]; }

  // Which values depend on a source, which records lie between source and target, and how many
  // contributions each value will get.
  void mark_needed(std::int32_t target) {
    needed_.assign(tape_.records.size(), false);
    for (const auto& record : tape_.records) {
      bool depends = false;
      for (std::size_t i = 0; i < record.inputs.size(); ++i)
        depends |= record.inputs[i] != KeyIndex::kAbsent && at(record.inputs[i]).depends;
      for (std::size_t i = 0; i < record.outputs.size(); ++i) {
        at(record.outputs[i]).computed = true;
        at(record.outputs[i]).depends |= depends;
      }
    }
    std::vector<bool> feeds(values_.size(), false);
    feeds[static_cast<std::size_t>(target)] = true;
    for (std::size_t r = tape_.records.size(); r-- > 0;) {
      const auto& record = tape_.records[r];
      bool needed = false;
      for (std::size_t i = 0; i < record.outputs.size(); ++i)
        needed |=
            feeds[static_cast<std::size_t>(record.outputs[i])] && at(record.outputs[i]).depends;
      if (!needed) continue;
      needed_[r] = true;
      for (std::size_t i = 0; i < record.inputs.size(); ++i) {
        const std::int32_t input = record.inputs[i];
        if (input == KeyIndex::kAbsent || !at(input).depends) continue;
        feeds[static_cast<std::size_t>(input)] = true;
        ++at(input).pending;
      }
    }
    reached_ = std::move(feeds);
  }

  void announce_unreachable() {
    std::vector<bool> reachable(result_.size(), false);
    for (std::size_t v = 0; v < values_.size() && !reached_.empty(); ++v)
      if (reached_[v])
        for (std::size_t s = values_[v].source; s != kNoSource; s = aliases_[s])
          reachable[s] = true;
    for (std::size_t s = 0; s < result_.size(); ++s)
      if (!reachable[s] && options_.on_ready) options_.on_ready(s, Tensor());
  }

  void run_rule(const TapeRecords::Record& record) {
    std::array<Tensor, 4> few;
    std::vector<Tensor> many;
    std::span<Tensor> dy(few);
    if (record.outputs.size() > few.size()) {
      many.resize(record.outputs.size());
      dy = many;
    }
    dy = dy.first(record.outputs.size());
    bool any = false;
    for (std::size_t i = 0; i < dy.size(); ++i) {
      Value& output = at(record.outputs[i]);
      dy[i] =
          output.source == kNoSource ? std::exchange(output.gradient, Tensor()) : output.gradient;
      any |= dy[i].defined();
    }
    current_ = &record;
    settled_.assign(record.inputs.size(), false);
    if (any) record.rule(dy, *this);
    // Inputs the rule has nothing for (a comparison's) got their contribution, too: none.
    for (std::size_t i = 0; i < record.inputs.size(); ++i)
      if (!settled_[i] && wants(static_cast<int>(i))) {
        --at(record.inputs[i]).pending;
        finish_if_final(record.inputs[i]);
      }
  }

  void settle(int input) {
    ensure(!settled_[static_cast<std::size_t>(input)], current_->op, "gradient rule put input ",
           input, " twice");
    settled_[static_cast<std::size_t>(input)] = true;
  }

  // compute(), whose last op writes to `place` if it can.
  Tensor computed_at(Buffer place, const Value& value,
                     const std::function<Tensor()>& compute) const {
    if (!place) return compute();
    const Tensor& source = sources_[value.source];
    const Placement placement(std::move(place), source.dtype(), source.num_elements());
    return compute();
  }

  // Adds a contribution, to where the sum is wanted if it is the last one.
  void add_to(Value& value, const std::function<Tensor()>& compute) {
    Buffer place;
    if (value.pending == 0 && value.slices.empty() && value.source != kNoSource && options_.place)
      place = options_.place(value.source);
    if (!value.gradient.defined()) {
      value.gradient = computed_at(std::move(place), value, compute);
      return;
    }
    const Tensor contribution = compute();
    const Tensor sum = value.gradient;
    value.gradient = computed_at(std::move(place), value, [&] { return add(sum, contribution); });
  }

  void finish_if_final(std::int32_t id) {
    Value& value = at(id);
    if (value.pending != 0 || value.source == kNoSource) return;
    if (!value.slices.empty() && !value.gradient.defined()) {
      const IndexedSlices all = joined(std::exchange(value.slices, {}));
      for (std::size_t s = value.source; s != kNoSource; s = aliases_[s])
        options_.on_slices(s, all);
      return;
    }
    while (!value.slices.empty()) {
      const IndexedSlices rows = std::move(value.slices.back());
      value.slices.pop_back();
      add_to(value, [&] { return to_dense(rows); });
    }
    for (std::size_t s = value.source; s != kNoSource; s = aliases_[s]) {
      result_[s] = value.gradient;
      if (options_.on_ready) options_.on_ready(s, value.gradient);
    }
  }

  TapeRecords& tape_;
  std::span<const Tensor> sources_;
  const GradientOptions& options_;
  std::vector<Value> values_;
  std::vector<Tensor> result_;
  std::vector<std::size_t> aliases_;  // next source that names the same value
  std::vector<bool> needed_, reached_, settled_;
  const TapeRecords::Record* current_ = nullptr;
};

}  // namespace

std::vector<Tensor> run_backward(TapeRecords& tape, const Tensor& target,
                                 std::span<const Tensor> sources, const GradientOptions& options,
                                 bool release, SourceLocation at) {
  return Backward(tape, sources, options).run(target, release, at);
}

}  // namespace lockstep
