// SPDX-License-Identifier: Apache-2.0
// Layers give what Keras's give, and have their gradients (tests/golden/layers.py).
#include <lockstep/nn.h>

#include <map>

#include "nn/golden.h"

namespace lockstep::nn {
namespace {

// One number for all axes, or one for each.
template <class Size>
Size size_of(const Json& value) {
  if (value.is_number()) return value.get<std::int64_t>();
  const auto all = value.get<std::vector<std::int64_t>>();
  if constexpr (std::is_same_v<Size, Size3d>)
    return {all.at(0), all.at(1), all.at(2)};
  else if constexpr (std::is_same_v<Size, Size2d>)
    return {all.at(0), all.at(1)};
  else
    return all.at(0);
}

template <class Size>
void take(const Json& o, const char* name, Size& size) {
  if (o.contains(name)) size = size_of<Size>(o.at(name));
}
template <class Size>
void take(const Json& o, const char* name, std::optional<Size>& size) {
  if (o.contains(name)) size = size_of<Size>(o.at(name));
}

Activation activation(const Json& o) {
  const std::map<std::string, Activation> known{
      {"linear", linear}, {"relu", relu}, {"tanh", tanh}, {"sigmoid", sigmoid},
      {"gelu", gelu},     {"silu", silu}, {"elu", elu},   {"softplus", softplus}};
  return known.at(o.value("activation", "linear"));
}

std::int64_t channels(const Json& one) { return one.at("inputs").at(0).at("shape").back(); }

// What options of layers have in common, by the names that Keras gives them.
template <class Options>
Options options_of(const Json& one) {
  const Json& o = one.at("options");
  Options options;
  if constexpr (requires { options.kernel_size; }) take(o, "kernel_size", options.kernel_size);
  if constexpr (requires { options.pool_size; }) take(o, "pool_size", options.pool_size);
  if constexpr (requires { options.strides; }) take(o, "strides", options.strides);
  if constexpr (requires { options.dilations; }) take(o, "dilation_rate", options.dilations);
  if constexpr (requires { options.output_padding; })
    take(o, "output_padding", options.output_padding);
  if constexpr (requires { options.groups; }) options.groups = o.value("groups", options.groups);
  if constexpr (requires { options.depth_multiplier; })
    options.depth_multiplier = o.value("depth_multiplier", options.depth_multiplier);
  if constexpr (requires { options.padding; })
    options.padding =
        o.value("padding", "valid") == std::string("same") ? Padding::same : Padding::valid;
  if constexpr (requires { options.activation; }) options.activation = activation(o);
  if constexpr (requires { options.use_bias; })
    options.use_bias = o.value("use_bias", options.use_bias);
  if constexpr (requires { options.keep_dims; })
    options.keep_dims = o.value("keepdims", options.keep_dims);
  if constexpr (requires { options.momentum; })
    options.momentum = o.value("momentum", options.momentum);
  if constexpr (requires { options.epsilon; })
    options.epsilon = o.value("epsilon", options.epsilon);
  if constexpr (requires { options.center; }) options.center = o.value("center", options.center);
  if constexpr (requires { options.scale; }) options.scale = o.value("scale", options.scale);
  if constexpr (requires { options.dtype; }) options.dtype = golden_dtype(one);
  return options;
}

GoldenLayer dense(const Json& one) {
  return golden_layer(
      Dense(channels(one), one.at("options").at("units"), options_of<DenseOptions>(one)));
}

template <class L, class Options>
GoldenLayer conv(const Json& one) {
  return golden_layer(L(channels(one), one.at("options").at("filters"), options_of<Options>(one)));
}

// Of layers that know their channels, and of those that need not.
template <class L, class Options>
GoldenLayer of_channels(const Json& one) {
  return golden_layer(L(channels(one), options_of<Options>(one)));
}
template <class L, class Options>
GoldenLayer of_options(const Json& one) {
  return golden_layer(L(options_of<Options>(one)));
}

GoldenLayer synchronized_batch_norm(const Json& one) {
  auto options = options_of<BatchNormOptions>(one);
  options.synchronized = true;
  return golden_layer(BatchNorm(channels(one), options));
}

GoldenLayer layer_norm(const Json& one) {
  const std::size_t axes = one.at("options").value("axis", std::vector<int>{-1}).size();
  const auto shape = one.at("inputs").at(0).at("shape").get<std::vector<std::int64_t>>();
  return golden_layer(
      LayerNorm(Shape(std::span(shape).last(axes)), options_of<LayerNormOptions>(one)));
}

GoldenLayer embedding(const Json& one) {
  const Json& o = one.at("options");
  return golden_layer(
      Embedding(o.at("input_dim"), o.at("output_dim"), options_of<EmbeddingOptions>(one)));
}

GoldenLayer reshape_layer(const Json& one) {
  return golden_layer(
      Reshape(one.at("options").at("target_shape").get<std::vector<std::int64_t>>()));
}

// Keras's padding is [before, after] or a list of such pairs.
GoldenLayer zero_padding(const Json& one) {
  const Json flat = one.at("options").at("padding").flatten();
  const auto n = [&](std::size_t i) {
    return std::next(flat.begin(), static_cast<long>(i))->get<std::int64_t>();
  };
  if (flat.size() == 2) return golden_layer(ZeroPadding({n(0), n(1)}));
  if (flat.size() == 4) return golden_layer(ZeroPadding({n(0), n(1), n(2), n(3)}));
  return golden_layer(ZeroPadding({n(0), n(1), n(2), n(3), n(4), n(5)}));
}

template <class L, class Size>
GoldenLayer up_sampling(const Json& one) {
  return golden_layer(L(size_of<Size>(one.at("options").at("size"))));
}

const std::map<std::string, GoldenLayer (*)(const Json&)> kLayers{
    {"dense", dense},
    {"conv1d", conv<Conv1D, Conv1DOptions>},
    {"conv2d", conv<Conv2D, Conv2DOptions>},
    {"conv3d", conv<Conv3D, Conv3DOptions>},
    {"conv1dtranspose", conv<Conv1DTranspose, Conv1DTransposeOptions>},
    {"conv2dtranspose", conv<Conv2DTranspose, Conv2DTransposeOptions>},
    {"conv3dtranspose", conv<Conv3DTranspose, Conv3DTransposeOptions>},
    {"depthwiseconv1d", of_channels<DepthwiseConv1D, DepthwiseConv1DOptions>},
    {"depthwiseconv2d", of_channels<DepthwiseConv2D, DepthwiseConv2DOptions>},
    {"maxpooling1d", of_options<MaxPool1D, Pool1DOptions>},
    {"maxpooling2d", of_options<MaxPool2D, Pool2DOptions>},
    {"maxpooling3d", of_options<MaxPool3D, Pool3DOptions>},
    {"averagepooling1d", of_options<AveragePool1D, Pool1DOptions>},
    {"averagepooling2d", of_options<AveragePool2D, Pool2DOptions>},
    {"averagepooling3d", of_options<AveragePool3D, Pool3DOptions>},
    {"globalmaxpooling1d", of_options<GlobalMaxPool, GlobalPoolOptions>},
    {"globalmaxpooling2d", of_options<GlobalMaxPool, GlobalPoolOptions>},
    {"globalmaxpooling3d", of_options<GlobalMaxPool, GlobalPoolOptions>},
    {"globalaveragepooling1d", of_options<GlobalAveragePool, GlobalPoolOptions>},
    {"globalaveragepooling2d", of_options<GlobalAveragePool, GlobalPoolOptions>},
    {"globalaveragepooling3d", of_options<GlobalAveragePool, GlobalPoolOptions>},
    {"batchnormalization", of_channels<BatchNorm, BatchNormOptions>},
    {"layernormalization", layer_norm},
    {"rmsnormalization", of_channels<RMSNorm, RMSNormOptions>},
    {"groupnormalization", of_channels<GroupNorm, GroupNormOptions>},
    {"embedding", embedding},
    {"activation",
     [](const Json& one) {
       const Activation function = activation(one.at("options"));
       return GoldenLayer{
           [function](const auto& inputs, CallOptions) { return function(inputs[0]); }, {}};
     }},
    {"flatten", [](const Json&) { return golden_layer(Flatten()); }},
    {"reshape", reshape_layer},
    {"zeropadding1d", zero_padding},
    {"zeropadding2d", zero_padding},
    {"zeropadding3d", zero_padding},
    {"upsampling1d", up_sampling<UpSampling1D, std::int64_t>},
    {"upsampling2d", up_sampling<UpSampling2D, Size2d>},
    {"upsampling3d", up_sampling<UpSampling3D, Size3d>},
    {"dropout",
     [](const Json& one) { return golden_layer(Dropout(one.at("options").at("rate"))); }},
};

class GoldenLayers : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenLayers, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, make] : kLayers) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST_P(GoldenLayers, GiveWhatKerasGives) {
  expect_golden_fixture(GetParam(), kLayers.at(GetParam()));
}

TEST(GoldenBatchNorm, Synchronized) {
  expect_golden_fixture("batchnormalization", synchronized_batch_norm);
}

}  // namespace
}  // namespace lockstep::nn
