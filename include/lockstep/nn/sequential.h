// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/layer.h>

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::nn {

namespace detail {

template <class L>
concept TakesAll =
    std::is_invocable_r_v<Tensor, const L&, const Tensor&, CallOptions, SourceLocation>;
template <class L>
concept TakesOptions = std::is_invocable_r_v<Tensor, const L&, const Tensor&, CallOptions>;
template <class L>
concept TakesTensor = std::is_invocable_r_v<Tensor, const L&, const Tensor&>;

// Any layer behind one interface.
class LOCKSTEP_EXPORT AnyLayer {
 public:
  virtual ~AnyLayer();
  virtual Tensor call(const Tensor& x, CallOptions options, SourceLocation at) const = 0;
  virtual std::string name() const = 0;
  virtual SourceLocation location() const = 0;
  virtual void rename(std::string name) = 0;
  virtual std::vector<Variable> variables() const = 0;
  virtual std::int64_t input_size() const = 0;
  virtual std::int64_t output_size(std::int64_t input_size) const = 0;
};

template <class L>
class HeldLayer final : public AnyLayer {
 public:
  explicit HeldLayer(L layer) : layer_(std::move(layer)) {}

  Tensor call(const Tensor& x, CallOptions options, SourceLocation at) const override {
    if constexpr (TakesAll<L>)
      return layer_(x, options, at);
    else if constexpr (TakesOptions<L>)
      return layer_(x, options);
    else
      return layer_(x);
  }
  std::string name() const override {
    if constexpr (requires { layer_.name(); })
      return layer_.name();
    else
      return "layer";
  }
  SourceLocation location() const override {
    if constexpr (requires { layer_.location(); })
      return layer_.location();
    else
      return {};
  }
  void rename(std::string name) override {
    if constexpr (requires { layer_.rename(name); }) layer_.rename(std::move(name));
  }
  std::vector<Variable> variables() const override {
    if constexpr (requires { layer_.variables(); })
      return layer_.variables();
    else if constexpr (requires { layer_.trainable_variables(); })
      return layer_.trainable_variables();
    else
      return {};
  }
  std::int64_t input_size() const override {
    if constexpr (requires { layer_.input_size(); })
      return layer_.input_size();
    else
      return kAnySize;
  }
  std::int64_t output_size(std::int64_t input_size) const override {
    if constexpr (requires { layer_.output_size(input_size); })
      return layer_.output_size(input_size);
    else
      return kAnySize;
  }

 private:
  L layer_;
};

}  // namespace detail

// What Sequential takes: something that can be called with a tensor, and with CallOptions if it
// likes, and gives a tensor. It may offer what Layer offers (name, variables, sizes); a lambda does
// not.
template <class L>
concept LayerLike = detail::TakesAll<L> || detail::TakesOptions<L> || detail::TakesTensor<L>;

struct SummaryOptions {
  // Of one example, without the batch. Unset: only the last axis of what layers give is shown, where
  // it is known.
  std::optional<Shape> input_shape = {};
  DType input_dtype = DType::f32;
};

// Layers in a row, each called with the result of the one before.
//
//   ls::nn::Sequential model(ls::nn::Dense(64, 128, {.activation = ls::nn::relu}),
//                            ls::nn::Dropout(0.1), ls::nn::Dense(128, 10));
//   ls::Tensor logits = model(x, {.training = true});
//
// Layers of one name are numbered from front to back ("dense", "dense_1"), their variables with
// them ("dense_1/kernel"); those of a Sequential within another get its name before theirs. Throws
// InvalidArgument when the size that a layer gives is not the one that the next takes.
//
// C++ leaves open in which order the arguments, and so the layers' random first values, are made;
// Sequential{...} in braces makes them from front to back under every compiler.
class LOCKSTEP_EXPORT Sequential : public Layer {
 public:
  template <LayerLike... Layers>
    requires(sizeof...(Layers) > 1 || !(std::same_as<Layers, Sequential> && ...))
  Sequential(Layers... layers)
      : Sequential(hold(std::move(layers)...)) {}  // NOLINT: reads as a list
  Sequential(const Sequential&) = default;         // a move is a copy
  Sequential& operator=(const Sequential&) = default;

  // The layers' results one after the other; what they throw names the layer. Thread-safe.
  Tensor operator()(const Tensor& x, CallOptions options = {},
                    SourceLocation at = SourceLocation::current()) const;

  // A table for people: each layer's name, the shape of its result, where ? stands for the batch, and
  // how many parameters it has; then all parameters, trainable or not, shared ones once. Shapes are
  // found by calling the layers with a batch of no rows; what they throw then is passed on. Outside
  // replicas.
  std::string summary(const SummaryOptions& options = {},
                      SourceLocation at = SourceLocation::current()) const;

  std::size_t size() const { return layers_.size(); }
  std::int64_t input_size() const;
  std::int64_t output_size(std::int64_t input_size) const;
  void rename(const std::string& name);

 private:
  using Layers = std::vector<std::shared_ptr<detail::AnyLayer>>;
  template <class... L>
  static Layers hold(L... layers) {
    return {std::make_shared<detail::HeldLayer<L>>(std::move(layers))...};
  }
  explicit Sequential(Layers layers);
  void number_layers(const std::string& prefix);
  void check_sizes() const;

  Layers layers_;
};

}  // namespace lockstep::nn
