// SPDX-License-Identifier: Apache-2.0
// Softmax regression whose gradients are worked out by hand, in Eigen: lockstep deals the rows, sums
// the gradients over all replicas, and no tape is involved.
#include <lockstep/lockstep.h>

#include <Eigen/Core>

#include "program.h"
namespace ls = lockstep;

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Example {
  ls::Tensor image, label;
};

Eigen::Map<const Matrix> as_eigen(const ls::Tensor& x) {
  return {x.data<float>().data(), x.dim(0), x.rank() > 1 ? x.dim(1) : 1};
}
ls::Tensor as_tensor(const Matrix& x, const ls::Shape& shape) {
  return ls::Tensor(shape, std::span(x.data(), static_cast<std::size_t>(x.size())));
}

int main(int argc, char** argv) try {
  const examples::Flags flags(argc, argv, {{"epochs", "20", "passes over the training data"}});
  const ls::Strategy strategy = flags.strategy();
  const auto train = strategy.distribute_dataset(
      ls::data::digits<Example>("train").shuffle({.seed = 7}).batch(128).prefetch(2));
  const auto scope = strategy.scope();
  ls::Variable weights(ls::zeros({64, 10}), {.name = "weights"}),
      bias(ls::zeros({10}), {.name = "bias"});
  const std::vector<ls::Variable> variables{weights, bias};

  const auto step = [&](const Example& batch) {
    ls::ReplicaContext& replica = *ls::get_replica_context();
    const ls::Tensor w = weights, b = bias;
    const auto x = as_eigen(batch.image);
    Matrix error = x * as_eigen(w);
    error.rowwise() += as_eigen(b).col(0).transpose();
    const Eigen::VectorXf largest = error.rowwise().maxCoeff();
    error = (error.colwise() - largest).array().exp();
    const Eigen::VectorXf sum = error.rowwise().sum();
    error.array().colwise() /= sum.array();  // probabilities
    float loss = 0;
    for (Eigen::Index row = 0; row < error.rows(); ++row) {
      float& likelihood =
          error(row, batch.label.data<std::int64_t>()[static_cast<std::size_t>(row)]);
      loss -= std::log(likelihood);
      likelihood -= 1;
    }
    error /= static_cast<float>(replica.batch_rows()->global);  // of all replicas
    const auto sums = replica.begin_gradient_reduction(variables, ls::SourceLocation::current());
    sums->ready(1, as_tensor(error.colwise().sum(), bias.shape()));  // the last layer's first
    sums->ready(0, as_tensor(x.transpose() * error, weights.shape()));
    const ls::ReducedGradients reduced = sums->finish();  // the same on every replica
    for (std::size_t i = 0; i < variables.size(); ++i)
      ls::Variable(variables[i]).assign_sub(reduced.gradients[i] * 0.5);
    return ls::Tensor(loss);
  };

  for (int epoch = 1; epoch <= flags.number<int>("epochs", 0); ++epoch) {
    double loss = 0, rows = 0;
    for (const auto& batch : train) {
      loss += strategy.reduce(ls::ReduceOp::sum, strategy.run(step, batch)).item<double>();
      rows += static_cast<double>(batch.rows()->global);
    }
    examples::print(strategy, "step %d: loss %.6f\n", epoch, loss / rows);
  }
} catch (const std::exception& error) {
  return examples::failed(error);
}
