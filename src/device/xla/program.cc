// SPDX-License-Identifier: Apache-2.0
#include "device/xla/program.h"

#include <lockstep/base/log.h>
#include <lockstep/telemetry/telemetry.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::xla {
namespace {

using Traces = std::span<const std::unique_ptr<Trace>>;

bool same_kind(const Trace::Argument& a, const Trace::Argument& b) {
  return a.type == b.type && a.literal.has_value() == b.literal.has_value();
}

// The first line in which two programs differ, with its number.
std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t begin = 0, line = 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (a[i] == '\n') {
      begin = i + 1;
      ++line;
    }
  const auto text = [&](const std::string& of) {
    return of.substr(begin, of.find('\n', begin) - begin);
  };
  return "instruction " + std::to_string(line) + " is" + text(a) + " on one and" + text(b) +
         " on the other";
}

std::string argument_name(std::size_t index) { return "%a" + std::to_string(index); }

}  // namespace

void Programs::check_alike(Traces traces, std::span<const Outputs> outputs) const {
  const Trace& first = *traces[0];
  for (std::size_t r = 1; r < traces.size(); ++r) {
    const Trace& other = *traces[r];
    const auto& a = first.arguments();
    const auto& b = other.arguments();
    constexpr const char* kHint =
        "; a step on TPUs does the same on every replica: let replicas differ by data (select), not "
        "by C++ branches, and by equally many rows";
    require(std::equal(a.begin(), a.end(), b.begin(), b.end(), same_kind) &&
                first.body() == other.body(),
            SourceLocation{}, "Strategy::run", "replicas 0 and ", r,
            " traced different programs: ", first_difference(first.body(), other.body()), kHint);
    bool same = outputs[0].size() == outputs[r].size();
    for (std::size_t i = 0; i < outputs[0].size() && same; ++i)
      same = outputs[0][i].value->node.name() == outputs[r][i].value->node.name();
    require(same, SourceLocation{}, "Strategy::run", "replicas 0 and ", r,
            " keep different results of the step", kHint);
  }
}

// Per output the argument whose memory it takes over, or -1.
std::vector<int> Programs::aliases(Traces traces, const Outputs& outputs) const {
  const auto& arguments = traces[0]->arguments();
  std::vector<bool> free(arguments.size());
  for (std::size_t k = 0; k < arguments.size(); ++k)
    free[k] = std::all_of(traces.begin(), traces.end(),
                          [&](const auto& trace) { return trace->disposable(k); });
  std::vector<int> aliases(outputs.size(), -1);
  const auto take = [&](std::size_t output, std::size_t argument) {
    if (aliases[output] >= 0 || !free[argument] ||
        arguments[argument].type != outputs[output].value->node.type)
      return;
    free[argument] = false;
    aliases[output] = static_cast<int>(argument);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].replaces >= 0) take(i, static_cast<std::size_t>(outputs[i].replaces));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (std::size_t k = 0; k < arguments.size() && aliases[i] < 0; ++k) take(i, k);
  return aliases;
}

std::string Programs::module_text(const Trace& trace, const Outputs& outputs,
                                  const std::vector<int>& aliases,
                                  const std::vector<bool>& varies) const {
  std::string text =
      "module @step attributes {mhlo.num_replicas = " + std::to_string(num_replicas_) +
      " : i32, mhlo.num_partitions = 1 : i32} {\nfunc.func public @main(";
  std::string constants;
  const char* separator = "";
  for (std::size_t k = 0; k < trace.arguments().size(); ++k) {
    const Trace::Argument& argument = trace.arguments()[k];
    if (argument.literal && !varies[k]) {
      constants += "  " + argument_name(k) + " = \"stablehlo.constant\"() <{value = " +
                   constant_text(argument.type, argument.literal->bits) + "}> : () -> " +
                   argument.type.text() + '\n';
      continue;
    }
    text += separator + argument_name(k) + ": " + argument.type.text();
    const auto alias = std::find(aliases.begin(), aliases.end(), static_cast<int>(k));
    if (alias != aliases.end())
      text += " {tf.aliasing_output = " + std::to_string(alias - aliases.begin()) + " : i32}";
    separator = ", ";
  }
  std::string types, names;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Node& node = outputs[i].value->node;
    types += (i ? ", " : "") + node.type.text();
    names += (i ? ", " : "") + node.name();
  }
  text += ") -> (" + types + ") {\n" + constants + trace.body() + "  return";
  if (!outputs.empty()) text += ' ' + names + " : " + types;
  return text + "\n}\n}\n";
}

Programs::Program& Programs::compiled(Traces traces, const Outputs& outputs,
                                      const std::vector<int>& aliases) {
  const Trace& trace = *traces[0];
  const auto& arguments = trace.arguments();
  std::string key = trace.body();
  for (const Trace::Argument& argument : arguments)
    key += (argument.literal ? "n " : "a ") + argument.type.text();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    key += outputs[i].value->node.name() + '<' + std::to_string(aliases[i]);

  Program& program = programs_[std::move(key)];
  program.varies.resize(arguments.size(), false);
  bool stale = !program.executable;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (!arguments[k].literal || program.varies[k]) continue;
    bool varies = arguments[k].literal->varies;
    for (const auto& other : traces)
      varies |= other->arguments()[k].literal->bits != arguments[k].literal->bits;
    if (program.executable)
      varies |= program.literals_of[k].literal->bits != arguments[k].literal->bits;
    if (!varies) continue;
    program.varies[k] = true;
    stale = true;
  }
  if (!stale) return program;
  program.executable.reset();
  text_ = module_text(trace, outputs, aliases, program.varies);
  logging::debug(text_);
  const auto start = std::chrono::steady_clock::now();
  program.executable = client_.compile(text_, num_replicas_);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  logging::info(message("TPUStrategy", "compiled a step of ",
                        std::count(text_.begin(), text_.end(), '\n'), " instructions in ",
                        took.count(), " s"));
  static telemetry::Counter& total = telemetry::counter("lockstep_xla_compilations_total");
  total.add();
  program.literals_of.clear();
  program.literals_of.reserve(arguments.size());
  for (const Trace::Argument& argument : arguments)
    program.literals_of.push_back(
        {.type = argument.type, .value = {}, .host = {}, .literal = argument.literal});
  alias_bytes_ = program.executable->alias_bytes();
  ++compilations_;
  return program;
}

void Programs::execute(Traces traces) {
  std::vector<Outputs> outputs;
  outputs.reserve(traces.size());
  for (const auto& trace : traces) outputs.push_back(trace->outputs());
  check_alike(traces, outputs);
  if (outputs[0].empty()) {  // nothing that anybody could see
    for (const auto& trace : traces) trace->complete({}, {});
    return;
  }
  const Program& program = compiled(traces, outputs[0], aliases(traces, outputs[0]));

  std::vector<DeviceArrayPtr> uploads;  // alive until the launch is over
  std::vector<std::vector<abi::Buffer*>> arguments(traces.size());
  for (std::size_t r = 0; r < traces.size(); ++r) {
    const auto upload = [&](const Type& type, const void* data) {
      uploads.push_back(
          client_.upload(pjrt_type(type.element), type.shape, data, static_cast<int>(r)));
      arguments[r].push_back(uploads.back()->get());
    };
    const auto& own = traces[r]->arguments();
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (own[k].value)
        arguments[r].push_back(own[k].value->array->get());
      else if (own[k].host)
        upload(own[k].type, own[k].host.data());
      else if (program.varies[k])
        upload(own[k].type, &own[k].literal->bits);
    }
  }
  std::vector<std::vector<DeviceArrayPtr>> results;
  try {
    results = program.executable->run(arguments);
  } catch (const Error& error) {
    for (const auto& trace : traces)
      for (const Trace::Argument& argument : trace->arguments())
        if (argument.value && argument.value->array->donated()) {
          argument.value->array.reset();
          argument.value->lost = std::string("the step that updated it failed: ") + error.message();
        }
    throw;
  }
  for (std::size_t r = 0; r < traces.size(); ++r) traces[r]->complete(outputs[r], results[r]);
}

}  // namespace lockstep::xla
