// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct GRUOptions {
  bool return_sequences = false;  // the output of every step instead of the last one's
  bool go_backwards = false;      // from the last step to the first, outputs in this order
  bool reset_after = true;        // the reset gate applies after the product with the state
  Activation activation = tanh;
  Activation recurrent_activation = sigmoid;
  bool use_bias = true;
  Initializer kernel_initializer = glorot_uniform;
  Initializer recurrent_initializer = orthogonal();
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "gru";
};

struct GRUCall {
  Tensor initial_state = {};  // [batch, units]; undefined: zeros
  Tensor mask = {};           // boolean [batch, steps]: where false, state and output stay
};

// A gated recurrent unit (Cho et al., arXiv:1406.1078) as Keras has it: of x [batch, steps, in], with
// kernels K, U and biases b, b' of the gates at each step,
//
//   z = r(x Kz + bz + h Uz + b'z);  r = r(x Kr + br + h Ur + b'r)
//   g = a(x Kg + bg + r (h Ug + b'g));  h = z h + (1 - z) g
//
// a and r() being the two activations; without reset_after g = a(x Kg + bg + (r h) Ug), and there is no
// b'. The output is h: of the last step [batch, units], or of all [batch, steps, units]. Variables:
// "<name>/kernel" [in, 3 units] (z, r, g), "<name>/recurrent_kernel" [units, 3 units], "<name>/bias"
// [2, 3 units] (b, b'), without reset_after [3 units].
class LOCKSTEP_EXPORT GRU : public Layer {
 public:
  // Throws InvalidArgument for a size below 1 or a dtype that is not floating.
  GRU(std::int64_t in, std::int64_t units, const GRUOptions& options = {},
      SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[<name>] ..." when x is not of rank 3, of another size, not floating, or has
  // no steps.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  struct Result {
    Tensor output;
    Tensor state;  // after the last step
  };
  // The same from a state, and with the state it ends in. Throws InvalidArgument also for a mask or a
  // state that does not fit.
  Result with_state(const Tensor& x, const GRUCall& call = {},
                    SourceLocation at = SourceLocation::current()) const;

  std::int64_t input_size() const { return kernel_.shape()[0]; }
  std::int64_t output_size(std::int64_t) const { return recurrent_kernel_.shape()[0]; }

 private:
  GRUOptions options_;
  Variable kernel_, recurrent_kernel_;
  std::optional<Variable> bias_;
};

}  // namespace lockstep::nn
