// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"

#include <lockstep/base/check.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/scatter.h>
#include <lockstep/ops/shape_ops.h>
#include <lockstep/tensor/placement.h>

#include <algorithm>
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
class Backward final : public BackwardSink {
 public:
  Backward(TapeRecords& tape, const BackwardEnds& ends, const GradientOptions& options)
      : tape_(tape),
        ends_(ends),
        options_(options),
        values_(tape.values.size()),
        result_(ends.sources.size()) {
    aliases_.assign(ends.sources.size(), kNoSource);
    for (std::size_t i = 0; i < ends.sources.size(); ++i) {
      const std::int32_t value = tape.values.find(ends.sources[i].key());
      if (value == KeyIndex::kAbsent) continue;
      Value& known = at(value);
      aliases_[i] = std::exchange(known.source, i);  // the same value may be asked for twice
      known.depends = true;
      if (ends.pass) known.sum = ends.pass->so_far(ends.inputs[i]);
    }
  }

  std::vector<Tensor> run(bool release) {
    const std::vector<std::int32_t> targets = start();
    mark_needed(targets);
    announce_unreachable();
    for (const std::int32_t value : targets) finish_if_final(value);
    for (std::size_t i = tape_.records.size(); i-- > 0;) {
      if (needed_[i]) run_rule(tape_.records[i]);
      if (release) tape_.records[i].rule = nullptr;
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
    if (!takes_slices(input)) return GradientSink::put_slices(input, compute);
    settle(input);
    --at(id).pending;
    at(id).sum.slices.push_back(compute());
    finish_if_final(id);
  }

  GradientSum so_far(int input) const override { return value_of(input).sum; }

  void put_sum(int input, GradientSum sum) override {
    const std::int32_t id = current_->inputs[static_cast<std::size_t>(input)];
    settle(input);
    --at(id).pending;
    at(id).sum = std::move(sum);
    finish_if_final(id);
  }

  bool takes_slices(int input) const override {
    const Value& value = value_of(input);
    if (value.source == kNoSource || value.computed) return false;
    return ends_.pass ? ends_.pass->takes_slices(ends_.inputs[value.source])
                      : static_cast<bool>(options_.on_slices);
  }

  Buffer place(int input) const override {
    const Value& value = value_of(input);
    return value.pending == 1 ? place_of(value) : Buffer();
  }

 private:
  struct Value {
    bool depends = false;   // on a source, or is one
    bool computed = false;  // by a recorded op
    int pending = 0;
    std::size_t source = kNoSource;
    GradientSum sum;
  };

  Value& at(std::int32_t value) { return values_[static_cast<std::size_t>(value)]; }

  const Value& value_of(int input) const {
    return values_[static_cast<std::size_t>(current_->inputs[static_cast<std::size_t>(input)])];
  }

  // The targets that stand in the tape, each once, with their gradients added to what there is.
  std::vector<std::int32_t> start() {
    std::vector<std::int32_t> targets;
    for (std::size_t i = 0; i < ends_.targets.size(); ++i) {
      const std::int32_t id = tape_.values.find(ends_.targets[i].key());
      if (id == KeyIndex::kAbsent) continue;
      Tensor gradient = std::exchange(ends_.target_gradients[i], Tensor());
      Tensor& sum = at(id).sum.dense;
      sum = sum.defined() ? add(sum, gradient) : std::move(gradient);
      if (std::find(targets.begin(), targets.end(), id) == targets.end()) targets.push_back(id);
    }
    return targets;
  }

  // Which values depend on a source, which records lie between sources and targets, and how many
  // contributions each value will get.
  void mark_needed(const std::vector<std::int32_t>& targets) {
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
    for (const std::int32_t target : targets) feeds[static_cast<std::size_t>(target)] = true;
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
    for (std::size_t v = 0; v < values_.size(); ++v)
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
          output.source == kNoSource ? std::exchange(output.sum.dense, Tensor()) : output.sum.dense;
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
    const Tensor& source = ends_.sources[value.source];
    const Placement placement(std::move(place), source.dtype(), source.num_elements());
    return compute();
  }

  // Where the last contribution to the gradient of a source is best written.
  Buffer place_of(const Value& value) const {
    if (value.source == kNoSource || !value.sum.slices.empty()) return {};
    if (ends_.pass) return ends_.pass->place(ends_.inputs[value.source]);
    return options_.place ? options_.place(value.source) : Buffer();
  }

  // Adds a contribution, to where the sum is wanted if it is the last one.
  void add_to(Value& value, const std::function<Tensor()>& compute) {
    Buffer place = value.pending == 0 ? place_of(value) : Buffer();
    Tensor& dense = value.sum.dense;
    if (!dense.defined()) {
      dense = computed_at(std::move(place), value, compute);
      return;
    }
    const Tensor contribution = compute();
    const Tensor sum = dense;
    dense = computed_at(std::move(place), value, [&] { return add(sum, contribution); });
  }

  void finish_if_final(std::int32_t id) {
    Value& value = at(id);
    if (value.pending != 0 || value.source == kNoSource) return;
    auto& [dense, slices] = value.sum;
    if (ends_.pass) {
      if (dense.defined() || !slices.empty())
        ends_.pass->put_sum(ends_.inputs[value.source], std::move(value.sum));
      return;
    }
    if (!slices.empty() && !dense.defined()) {
      const IndexedSlices all = joined(std::exchange(slices, {}));
      for (std::size_t s = value.source; s != kNoSource; s = aliases_[s])
        options_.on_slices(s, all);
      return;
    }
    while (!slices.empty()) {
      const IndexedSlices rows = std::move(slices.back());
      slices.pop_back();
      add_to(value, [&] { return to_dense(rows); });
    }
    for (std::size_t s = value.source; s != kNoSource; s = aliases_[s]) {
      result_[s] = dense;
      if (options_.on_ready) options_.on_ready(s, dense);
    }
  }

  TapeRecords& tape_;
  const BackwardEnds ends_;
  const GradientOptions& options_;
  std::vector<Value> values_;
  std::vector<Tensor> result_;
  std::vector<std::size_t> aliases_;  // next source that names the same value
  std::vector<bool> needed_, reached_, settled_;
  const TapeRecords::Record* current_ = nullptr;
};

}  // namespace

std::vector<Tensor> run_backward(TapeRecords& tape, const BackwardEnds& ends,
                                 const GradientOptions& options, bool release) {
  // A target that no op has touched may be a source itself: a variable's value.
  for (const Tensor& target : ends.targets)
    for (const Tensor& source : ends.sources)
      if (target.key() == source.key() && tape.wants(target)) tape.value_of(target);
  return Backward(tape, ends, options).run(release);
}

}  // namespace lockstep
