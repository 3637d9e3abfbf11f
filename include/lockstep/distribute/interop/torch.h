// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/check.h>
#include <lockstep/device/device.h>
#include <lockstep/distribute/strategy.h>
#include <lockstep/replica/context.h>
#include <torch/torch.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// LibTorch models on lockstep's strategies. Not part of lockstep/lockstep.h: whoever includes it links
// LibTorch (1.13 or newer), the library does not.
namespace lockstep::interop {

// The same memory as a tensor of the other library, which it keeps alive; of hosts, row-major (others
// are copied first). The dtypes are those that both have: f32, f64, f16, bf16, i32, i64, u8, bool;
// InvalidArgument for others, and for other devices.
inline DType dtype_of(::torch::ScalarType type, SourceLocation at) {
  switch (type) {
    case ::torch::kFloat:
      return DType::f32;
    case ::torch::kDouble:
      return DType::f64;
    case ::torch::kHalf:
      return DType::f16;
    case ::torch::kBFloat16:
      return DType::bf16;
    case ::torch::kInt:
      return DType::i32;
    case ::torch::kLong:
      return DType::i64;
    case ::torch::kByte:
      return DType::u8;
    case ::torch::kBool:
      return DType::boolean;
    default:
      throw InvalidArgument(message("from_torch", "lockstep has no dtype ", c10::toString(type)),
                            at);
  }
}
inline ::torch::ScalarType scalar_type_of(DType dtype) {
  constexpr ::torch::ScalarType types[] = {::torch::kFloat,    ::torch::kDouble, ::torch::kHalf,
                                           ::torch::kBFloat16, ::torch::kInt,    ::torch::kLong,
                                           ::torch::kByte,     ::torch::kBool};
  return types[static_cast<int>(dtype)];
}
inline Tensor from_torch(const ::torch::Tensor& x, SourceLocation at = SourceLocation::current()) {
  require(x.defined() && x.device().is_cpu(), at, "from_torch",
          "expected a tensor of the CPU, got ",
          x.defined() ? x.device().str() : "an undefined one");
  const ::torch::Tensor rows = x.detach().contiguous();
  const DType dtype = dtype_of(rows.scalar_type(), at);
  const Shape shape(std::vector<std::int64_t>(rows.sizes().begin(), rows.sizes().end()));
  return Tensor(Buffer::wrap(current_host_device(), rows.data_ptr(), rows.nbytes(), [rows] {}),
                dtype, shape);
}
inline ::torch::Tensor to_torch(const Tensor& x, SourceLocation at = SourceLocation::current()) {
  require(x.defined(), at, "to_torch", "expected a tensor, got an undefined one");
  const Tensor host = x.to_host();
  const auto dims = host.shape().dims();
  return ::torch::from_blob(
      const_cast<void*>(host.raw_data()), {dims.data(), dims.size()}, [host](void*) {},
      scalar_type_of(host.dtype()));
}

// A LibTorch module for each replica, equal at the start: with the chief's parameters and buffers.
// `Module` is a module holder, torch::nn::Sequential for example, or a std::shared_ptr of a module.
//
//   interop::DistributedDataParallel<Net> model(strategy, [] { return Net(); });
//   strategy.run([&](const Example& batch) {
//     auto loss = ...(model.local()->forward(...)) / global_batch_size;
//     model.backward(loss);       // gradients are summed over the replicas while it runs
//     optimizers.get().step();    // one torch::optim::Optimizer for each replica: ReplicaLocal
//   }, batch);
//
// Parameters are f32 or f64 and on the CPU. Buffers, such as a batch norm's averages, stay the
// replica's own after the start. A replica uses its module from its step function only.
template <class Module>
class DistributedDataParallel {
 public:
  // Calls make() once for each local replica. Collective across workers. Throws InvalidArgument where
  // the modules differ, and as the Strategy's other verbs.
  DistributedDataParallel(const Strategy& strategy, const std::function<Module()>& make,
                          SourceLocation at = SourceLocation::current())
      : group_(strategy.implementation()) {
    const auto scope = strategy.scope(at);
    for (std::size_t r = 0; r < strategy.num_local_replicas(); ++r) {
      replicas_.push_back(std::make_unique<Replica>(make()));
      check_alike(*replicas_[r], at);
    }
    const std::size_t parameters = replicas_[0]->parameters.size();
    for (std::size_t i = 0; i < parameters; ++i) {
      require(replicas_[0]->parameters[i].is_floating_point(), at, kName, "expected parameter '",
              replicas_[0]->names[i], "' to be of a floating dtype");
      variables_.push_back(shared(i, /*buffer=*/false, at));
    }
    for (std::size_t i = 0; i < replicas_[0]->buffers.size(); ++i) shared(i, /*buffer=*/true, at);
    for (const auto& replica : replicas_) replica->watch();
  }

  // The calling replica's module. FailedPrecondition outside a step function.
  Module& local(SourceLocation at = SourceLocation::current()) { return own(at).module; }
  // Any local replica's; between runs.
  Module& of(std::size_t local_replica) { return replicas_.at(local_replica)->module; }

  // Computes the gradients of `loss` and sums them over the replicas: grad() of every parameter that
  // some replica used is then the sum, the same bits on all of them, and undefined of the others, and
  // of all when a replica voted to skip the step; optimizers pass over those. What was in grad() is
  // dropped. To be called by every replica: the losses are to be divided by the global batch. Waits no
  // longer than CommunicationOptions::timeout. Throws what stopped another replica.
  void backward(const ::torch::Tensor& loss, SourceLocation at = SourceLocation::current()) {
    Replica& replica = own(at);
    const auto reduction = get_replica_context()->begin_gradient_reduction(variables_, at);
    replica.begin(*reduction);
    loss.backward();
    replica.end();
    const ReducedGradients reduced = reduction->finish();
    const bool skip = reduced.skip.template item<bool>();
    for (std::size_t i = 0; i < variables_.size(); ++i)
      replica.parameters[i].mutable_grad() = skip || !reduced.gradients[i].defined()
                                                 ? ::torch::Tensor()
                                                 : to_torch(reduced.gradients[i], at).clone();
  }

 private:
  static constexpr const char* kName = "DistributedDataParallel";

  struct Replica {
    explicit Replica(Module made) : module(std::move(made)) {
      for (const auto& item : module->named_parameters()) add(item, parameters);
      for (const auto& item : module->named_buffers()) add(item, buffers);
    }
    template <class Item>
    void add(const Item& item, std::vector<::torch::Tensor>& to) {
      names.push_back(item.key());
      to.push_back(item.value());
    }
    // What the hooks do while a reduction is under way; otherwise backward() is LibTorch's own.
    void watch() {
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].requires_grad())
          parameters[i].register_hook([this, i](const ::torch::Tensor& gradient) {
            if (!reduction || arrived[i]) return;
            arrived[i] = true;
            reduction->ready(i, from_torch(gradient, SourceLocation{}));
          });
    }
    void begin(GradientReduction& started) {
      for (::torch::Tensor& parameter : parameters) parameter.mutable_grad() = ::torch::Tensor();
      arrived.assign(parameters.size(), false);
      reduction = &started;
    }
    void end() {
      GradientReduction& begun = *std::exchange(reduction, nullptr);
      for (std::size_t i = 0; i < parameters.size(); ++i)
        if (!arrived[i]) begun.ready(i, Tensor());
    }

    Module module;
    std::vector<std::string> names;  // of the parameters, then of the buffers
    std::vector<::torch::Tensor> parameters, buffers;
    std::vector<bool> arrived;
    GradientReduction* reduction = nullptr;
  };

  Replica& own(SourceLocation at) {
    const ReplicaContext* const replica = get_replica_context();
    if (!replica || current_replica_group() != group_)
      throw FailedPrecondition(
          message(kName,
                  "expected a call from a step function of the strategy that it was made "
                  "for, got one from outside; call it in the function given to run, or use "
                  "of()"),
          at);
    return *replicas_[static_cast<std::size_t>(replica->local_index())];
  }

  void check_alike(const Replica& other, SourceLocation at) const {
    const Replica& first = *replicas_[0];
    bool alike = first.names == other.names && first.parameters.size() == other.parameters.size();
    for (std::size_t i = 0; alike && i < first.parameters.size(); ++i)
      alike = first.parameters[i].sizes() == other.parameters[i].sizes() &&
              first.parameters[i].scalar_type() == other.parameters[i].scalar_type();
    require(
        alike, at, kName,
        "expected modules of one structure, got ones whose parameters differ in names, shapes or "
        "dtypes; let make() build the same module each time");
  }

  // A variable with the chief's value, which is copied to every replica's module.
  Variable shared(std::size_t i, bool buffer, SourceLocation at) {
    const auto of = [&](Replica& replica) -> ::torch::Tensor& {
      return (buffer ? replica.buffers : replica.parameters)[i];
    };
    Replica& first = *replicas_[0];
    const std::size_t number = i + (buffer ? first.parameters.size() : 0);
    const Variable variable(from_torch(of(first), at).to_host(), {.name = first.names[number]}, at);
    const ::torch::NoGradGuard untracked;
    const std::vector<Tensor> values = variable.local_values(at);
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      ::torch::Tensor& target = of(*replicas_[r]);
      target.copy_(to_torch(values[r], at));
    }
    return variable;
  }

  std::shared_ptr<ReplicaGroup> group_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Variable> variables_;
};

}  // namespace lockstep::interop
