// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/nn/activation.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/layer.h>

#include <optional>
#include <string>

namespace lockstep::nn {

struct LSTMOptions {
  bool return_sequences = false;  // the output of every step instead of the last one's
  bool go_backwards = false;      // from the last step to the first, outputs in this order
  Activation activation = tanh;
  Activation recurrent_activation = sigmoid;
  bool use_bias = true;
  bool unit_forget_bias = true;  // the forget gate's bias begins as 1
  Initializer kernel_initializer = glorot_uniform;
  Initializer recurrent_initializer = orthogonal();
  Initializer bias_initializer = zeros;
  std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
  std::string name = "lstm";
};

// [batch, units] each. A nest.
struct LSTMState {
  Tensor hidden, cell;
};

struct LSTMCall {
  LSTMState initial_state = {};  // undefined: zeros
  Tensor mask = {};              // boolean [batch, steps]: where false, state and output stay
};

// Long short-term memory (Hochreiter and Schmidhuber, 1997) as Keras has it: of x [batch, steps, in],
// with [i f g o] = x kernel + h recurrent_kernel + bias at each step,
//
//   c = r(f) c + r(i) a(g);  h = r(o) a(c)
//
// a and r being the two activations. The output is h: of the last step [batch, units], or of all
// [batch, steps, units]. Variables: "<name>/kernel" [in, 4 units], "<name>/recurrent_kernel"
// [units, 4 units], "<name>/bias" [4 units].
class LOCKSTEP_EXPORT LSTM : public Layer {
 public:
  // Throws InvalidArgument for a size below 1 or a dtype that is not floating.
  LSTM(std::int64_t in, std::int64_t units, const LSTMOptions& options = {},
       SourceLocation at = SourceLocation::current());

  // Throws InvalidArgument "[<name>] ..." when x is not of rank 3, of another size, not floating, or has
  // no steps.
  Tensor operator()(const Tensor& x, CallOptions = {},
                    SourceLocation at = SourceLocation::current()) const;

  struct Result {
    Tensor output;
    LSTMState state;  // after the last step
  };
  // The same from a state, and with the state it ends in. Throws InvalidArgument also for a mask or
  // states that do not fit.
  Result with_state(const Tensor& x, const LSTMCall& call = {},
                    SourceLocation at = SourceLocation::current()) const;

  std::int64_t input_size() const { return kernel_.shape()[0]; }
  std::int64_t output_size(std::int64_t) const { return recurrent_kernel_.shape()[0]; }

 private:
  LSTMOptions options_;
  Variable kernel_, recurrent_kernel_;
  std::optional<Variable> bias_;
};

}  // namespace lockstep::nn
