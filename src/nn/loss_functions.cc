// SPDX-License-Identifier: Apache-2.0
// Losses per example, by the formulas of Keras.
#include <lockstep/nn/losses.h>
#include <lockstep/ops/cast.h>
#include <lockstep/ops/compare.h>
#include <lockstep/ops/elementwise.h>
#include <lockstep/ops/reduce.h>
#include <lockstep/ops/softmax.h>

#include <cmath>

#include "nn/by_name.h"

namespace lockstep::nn {
namespace {

// Keeps probabilities away from 0 and 1, and divisors from 0.
constexpr double kEpsilon = 1e-7;

const ReduceOptions kLastAxis{.axes = {-1}};
const ReduceOptions kLastAxisKept{.axes = {-1}, .keep_dims = true};

struct Pair {
  Tensor targets, predictions;
};

Tensor wide(const Tensor& x, SourceLocation at) {
  return x.dtype() == DType::f64 ? x : cast(x, DType::f32, at);
}

void require_defined(const char* loss, const Tensor& targets, const Tensor& predictions,
                     SourceLocation at) {
  require(targets.defined() && predictions.defined(), at, loss,
          targets.defined() ? "predictions are" : "targets are",
          " undefined; pass a tensor that holds a value");
  require(is_floating(predictions.dtype()), at, loss, "expected predictions of a floating dtype, ",
          "got ", name_of(predictions.dtype()));
}

// Both of one shape, in the dtype computed in.
Pair checked(const char* loss, const Tensor& targets, const Tensor& predictions,
             SourceLocation at) {
  require_defined(loss, targets, predictions, at);
  require(targets.shape() == predictions.shape() && targets.rank() > 0, at, loss,
          "expected targets and predictions of one shape of rank 1 or more, got ", targets.shape(),
          " and ", predictions.shape());
  const Tensor to = wide(predictions, at);
  return {cast(targets, to.dtype(), at), to};
}

void check_smoothing(const char* loss, double smoothing, SourceLocation at) {
  require(smoothing >= 0 && smoothing <= 1, at, loss,
          "expected a label_smoothing from 0 to 1, got ", smoothing);
}

// Targets of 0 and 1 as -1 and 1; others as they are.
Tensor signs_of(const Tensor& targets) {
  const Tensor binary = all(logical_or(equal(targets, 0), equal(targets, 1)));
  return select(binary, targets * 2 - 1, targets);
}

Tensor unit(const Tensor& x, SourceLocation at) {
  return x * rsqrt(maximum(sum(square(x, at), kLastAxisKept, at), 1e-12), at);
}

const ByName<Loss>& known() {
  static const ByName<Loss> losses = [] {
    const auto of = [](auto function) -> Loss {
      return [function](const Tensor& targets, const Tensor& predictions) {
        return function(targets, predictions, SourceLocation{});
      };
    };
    const auto with_options = [](auto function) -> Loss {
      return [function](const Tensor& targets, const Tensor& predictions) {
        return function(targets, predictions, {}, SourceLocation{});
      };
    };
    const Loss mse = of(mean_squared_error), mae = of(mean_absolute_error),
               mape = of(mean_absolute_percentage_error), msle = of(mean_squared_logarithmic_error),
               bce = with_options(binary_crossentropy), kld = of(kl_divergence);
    return ByName<Loss>{
        {"mean_squared_error", mse},
        {"mse", mse},
        {"mean_absolute_error", mae},
        {"mae", mae},
        {"mean_absolute_percentage_error", mape},
        {"mape", mape},
        {"mean_squared_logarithmic_error", msle},
        {"msle", msle},
        {"huber", with_options(huber)},
        {"log_cosh", of(log_cosh)},
        {"binary_crossentropy", bce},
        {"bce", bce},
        {"categorical_crossentropy", with_options(categorical_crossentropy)},
        {"sparse_categorical_crossentropy", with_options(sparse_categorical_crossentropy)},
        {"hinge", of(hinge)},
        {"squared_hinge", of(squared_hinge)},
        {"categorical_hinge", of(categorical_hinge)},
        {"kl_divergence", kld},
        {"kld", kld},
        {"poisson", of(poisson)},
        {"cosine_similarity", of(cosine_similarity)},
    };
  }();
  return losses;
}

}  // namespace

Tensor mean_squared_error(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("mean_squared_error", targets, predictions, at);
  return mean(squared_difference(Operand(p, at), Operand(t, at)), kLastAxis, at);
}

Tensor mean_absolute_error(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("mean_absolute_error", targets, predictions, at);
  return mean(abs(p - t, at), kLastAxis, at);
}

Tensor mean_absolute_percentage_error(const Tensor& targets, const Tensor& predictions,
                                      SourceLocation at) {
  const auto [t, p] = checked("mean_absolute_percentage_error", targets, predictions, at);
  return mean(abs((t - p) / maximum(abs(t, at), kEpsilon), at), kLastAxis, at) * 100;
}

Tensor mean_squared_logarithmic_error(const Tensor& targets, const Tensor& predictions,
                                      SourceLocation at) {
  const auto [t, p] = checked("mean_squared_logarithmic_error", targets, predictions, at);
  return mean(squared_difference(log1p(maximum(p, kEpsilon), at), log1p(maximum(t, kEpsilon), at)),
              kLastAxis, at);
}

Tensor huber(const Tensor& targets, const Tensor& predictions, const HuberOptions& options,
             SourceLocation at) {
  const double delta = options.delta;
  require(delta > 0, at, "huber", "expected a delta above 0, got ", delta);
  const auto [t, p] = checked("huber", targets, predictions, at);
  const Tensor error = p - t;
  const Tensor size = abs(error, at);
  return mean(
      select(less_equal(size, delta), square(error, at) * 0.5, size * delta - 0.5 * delta * delta),
      kLastAxis, at);
}

// log(cosh(x)) = x + log(1 + exp(-2 x)) - log(2), which does not overflow.
Tensor log_cosh(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("log_cosh", targets, predictions, at);
  const Tensor error = p - t;
  return mean(error + softplus(error * -2, at) - std::log(2.0), kLastAxis, at);
}

Tensor binary_crossentropy(const Tensor& targets, const Tensor& predictions,
                           const CrossentropyOptions& options, SourceLocation at) {
  constexpr const char* kLoss = "binary_crossentropy";
  check_smoothing(kLoss, options.label_smoothing, at);
  const auto [hard, p] = checked(kLoss, targets, predictions, at);
  const double smoothing = options.label_smoothing;
  const Tensor t = smoothing > 0 ? hard * (1 - smoothing) + 0.5 * smoothing : hard;
  if (options.from_logits) return mean(sigmoid_cross_entropy(t, p, at), kLastAxis, at);
  const Tensor kept = clamp(p, kEpsilon, 1 - kEpsilon);
  return -mean(t * log(kept, at) + (1 - t) * log(1 - kept, at), kLastAxis, at);
}

Tensor categorical_crossentropy(const Tensor& targets, const Tensor& predictions,
                                const CrossentropyOptions& options, SourceLocation at) {
  constexpr const char* kLoss = "categorical_crossentropy";
  check_smoothing(kLoss, options.label_smoothing, at);
  const auto [hard, p] = checked(kLoss, targets, predictions, at);
  const double smoothing = options.label_smoothing;
  const auto classes = static_cast<double>(p.dim(-1));
  const Tensor t = smoothing > 0 ? hard * (1 - smoothing) + smoothing / classes : hard;
  if (options.from_logits) return softmax_cross_entropy(t, p, at);
  const Tensor shares = p / sum(p, kLastAxisKept, at);
  return -sum(t * log(clamp(shares, kEpsilon, 1 - kEpsilon), at), kLastAxis, at);
}

Tensor sparse_categorical_crossentropy(const Tensor& targets, const Tensor& predictions,
                                       const SparseCrossentropyOptions& options,
                                       SourceLocation at) {
  constexpr const char* kLoss = "sparse_categorical_crossentropy";
  require_defined(kLoss, targets, predictions, at);
  require(is_integer(targets.dtype()) && predictions.rank() == targets.rank() + 1, at, kLoss,
          "expected targets that are class numbers, of the shape of the predictions ",
          predictions.shape(), " without the last axis, got ", name_of(targets.dtype()),
          targets.shape());
  const bool narrow = targets.dtype() != DType::i64 && targets.dtype() != DType::i32;
  const Tensor labels = narrow ? cast(targets, DType::i32, at) : targets;
  const Tensor p = wide(predictions, at);
  return sparse_softmax_cross_entropy(
      labels, options.from_logits ? p : log(clamp(p, kEpsilon, 1 - kEpsilon), at), at);
}

Tensor hinge(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("hinge", targets, predictions, at);
  return mean(maximum(1 - signs_of(t) * p, 0), kLastAxis, at);
}

Tensor squared_hinge(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("squared_hinge", targets, predictions, at);
  return mean(square(maximum(1 - signs_of(t) * p, 0), at), kLastAxis, at);
}

Tensor categorical_hinge(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("categorical_hinge", targets, predictions, at);
  const Tensor right = sum(t * p, kLastAxis, at);
  const Tensor wrong = max((1 - t) * p, kLastAxis, at);
  return maximum(wrong - right + 1, 0);
}

Tensor kl_divergence(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("kl_divergence", targets, predictions, at);
  const Tensor from = clamp(t, kEpsilon, 1);
  return sum(from * log(from / clamp(p, kEpsilon, 1), at), kLastAxis, at);
}

Tensor poisson(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("poisson", targets, predictions, at);
  return mean(p - t * log(p + kEpsilon, at), kLastAxis, at);
}

Tensor cosine_similarity(const Tensor& targets, const Tensor& predictions, SourceLocation at) {
  const auto [t, p] = checked("cosine_similarity", targets, predictions, at);
  return -sum(unit(t, at) * unit(p, at), kLastAxis, at);
}

Loss losses::get(std::string_view name, SourceLocation at) {
  return by_name("losses::get", known(), name, at);
}

std::vector<std::string> losses::names() { return names_in(known()); }

}  // namespace lockstep::nn
