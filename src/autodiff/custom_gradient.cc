// SPDX-License-Identifier: Apache-2.0
#include <lockstep/autodiff/custom_gradient.h>

#include <lockstep/base/check.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <memory>

#include "autodiff/capture.h"

namespace lockstep {
namespace {

constexpr const char* kOp = "custom_gradient";

// A recorded call: what its gradient rule needs.
struct Call {
  std::vector<Tensor> arguments;
  std::vector<std::pair<Shape, DType>> results;
  std::function<std::vector<Tensor>(std::span<const Tensor> dy)> gradient;
  SourceLocation at;

  std::vector<Tensor> gradients(std::span<const Tensor> dy) const {
    std::vector<Tensor> full(dy.begin(), dy.end());
    for (std::size_t i = 0; i < full.size(); ++i)
      if (!full[i].defined()) full[i] = zeros(results[i].first, results[i].second);
    return gradient(full);
  }
};

void put_gradients(const Call& call, std::span<const Tensor> dy, GradientSink& sink) {
  const std::vector<Tensor> gradients = call.gradients(dy);
  require(gradients.size() == call.arguments.size(), call.at, kOp, "the gradient function gave ",
          gradients.size(), " gradients for ", call.arguments.size(),
          " tensors; return one for each, an undefined one where there is none");
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined() || !sink.wants(static_cast<int>(i))) continue;
    const Tensor& argument = call.arguments[i];
    require(gradients[i].shape() == argument.shape() && gradients[i].dtype() == argument.dtype(),
            call.at, kOp, "the gradient of argument ", i, " is to be ", name_of(argument.dtype()),
            argument.shape(), ", got ", gradients[i]);
    sink.put(static_cast<int>(i), [&] { return gradients[i]; });
  }
}

// Who may differentiate the gradient function: the recorders around the tape that runs it. For them
// the function's own ops are on record, too.
OpRecorder* further_recorder(OpRecorder& outer) {
  const auto* tape = dynamic_cast<const TapeRecorder*>(&outer);
  return tape ? tape->outer() : &outer;
}

void require_declared(const Capture& capture, std::span<const Tensor> arguments,
                      SourceLocation at) {
  for (const auto& [value, op] : capture.inputs()) {
    const bool declared = std::any_of(
        arguments.begin(), arguments.end(),
        [&, key = value.key()](const Tensor& one) { return one.defined() && one.key() == key; });
    require(declared, at, kOp, "the function uses ",
            value.trainable() ? "the trainable variable " : "the watched value ", value, " (in '",
            op,
            "') that is not among its arguments, so that its gradient would be lost; pass it as an "
            "argument, or read it through stop_gradient");
  }
}

}  // namespace

std::vector<Tensor> detail::run_custom_gradient(std::span<const Tensor> arguments,
                                                const std::function<CustomResult()>& run,
                                                SourceLocation at) {
  OpRecorder* const outer = current_recorder();
  if (!outer) {
    std::vector<Tensor> results = run().results;
    require_results(kOp, results, at);
    return results;
  }
  Capture capture(*outer, further_recorder(*outer));
  CustomResult result = [&] {
    const RecorderScope listening(&capture);
    return run();
  }();
  require_results(kOp, result.results, at);
  for (const Tensor& value : result.results) capture.use(value, "return");
  require_declared(capture, arguments, at);

  std::vector<const Tensor*> inputs;
  for (const Tensor& argument : arguments) inputs.push_back(&argument);
  if (!wants_one(*outer, inputs)) return std::move(result.results);

  const auto call = std::make_shared<Call>();
  call->arguments.assign(arguments.begin(), arguments.end());
  call->gradient = std::move(result.gradient);
  call->at = at;
  std::vector<Tensor> results;  // not what the function's ops gave: that has other gradients
  for (const Tensor& value : result.results) {
    call->results.emplace_back(value.shape(), value.dtype());
    results.push_back(value.with_identity(new_tensor_key(), false));
  }
  outer->record(kOp, inputs, results, [call](std::span<const Tensor> dy, GradientSink& sink) {
    put_gradients(*call, dy, sink);
  });
  return results;
}

}  // namespace lockstep
