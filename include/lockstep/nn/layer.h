// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/nn/initializers.h>
#include <lockstep/nn/precision.h>
#include <lockstep/replica/variable.h>
#include <lockstep/tensor/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::nn {

// How a layer is called. As in a Keras loop of one's own a call is inference unless it says
// model(x, {.training = true}); only layers that differ in training (Dropout) look at it.
struct CallOptions {
  bool training = false;
};

// The size of a last axis that a layer does not fix.
inline constexpr std::int64_t kAnySize = -1;

// What our layers share: a name and variables. A layer is a value, a cheap handle, and copies share
// its variables. It knows its sizes when it is made and makes its variables at once, in the scope
// that is open then. Calling it is const and may happen in several replicas at the same time.
//
// A layer can be called as layer(x, CallOptions, SourceLocation), and says which size of the last
// axis it takes and gives, so that a model that does not fit together fails when it is made. A
// layer of your own needs neither this base nor the sizes: Sequential takes whatever can be called
// with a tensor.
//
// Precision (nn/precision.h): a layer with variables has an option
//   std::optional<PrecisionPolicy> dtype = {};  // unset: global_policy()
// which it hands to this base, makes its variables by add_variable, and computes with
//   const Tensor input = computed(x, {.min_rank = 2, .size = input_size()}, at);
//   return dense(input, weight(kernel_, at), weight(bias_, at), activation_, at);
// What stays in f32 (scale and offset of a norm) is read by Variable::read instead. A layer without
// variables passes no policy, follows its input and calls check_input only.
class LOCKSTEP_EXPORT Layer {
 public:
  const std::string& name() const { return name_; }
  // The line that made the layer.
  SourceLocation location() const { return at_; }
  // In the order in which they were made.
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Variable>& trainable_variables() const { return trainable_; }
  void visit_state(StateVisitor& visitor);
  // That of the layer's variables and computation.
  PrecisionPolicy policy() const { return policy_; }

  // Gives the layer and its variables another name, before it is called: what a model does that
  // numbers its layers.
  void rename(std::string name);

  std::int64_t input_size() const { return kAnySize; }
  std::int64_t output_size(std::int64_t input_size) const { return input_size; }

 protected:
  Layer(std::string name, SourceLocation at)
      : name_(std::move(name)), at_(at), policy_(global_policy()) {}
  // Throws InvalidArgument "[<name>] ..." for a policy of dtypes that are not floating.
  Layer(std::string name, const std::optional<PrecisionPolicy>& policy, SourceLocation at);
  ~Layer() = default;
  Layer(const Layer&) = default;  // a move is a copy: no handle is ever without its variables
  Layer& operator=(const Layer&) = default;

  // Makes the variable "<name>/<role>" of the policy's variable dtype. Throws InvalidArgument when
  // the initializer's value does not fit.
  Variable add_variable(const char* role, const Shape& shape, const Initializer& initializer);
  // The same for what a norm computes with: in f64 where the layer computes in it, else in f32.
  Variable add_norm_variable(const char* role, const Shape& shape, const Initializer& initializer,
                             bool trainable = true);
  // Lists a variable that was made elsewhere as the layer's.
  void adopt(const Variable& variable);
  void set_name(std::string name) { name_ = std::move(name); }
  struct Input {
    int min_rank = 1;
    int max_rank = Shape::kMaxRank;
    std::int64_t size = kAnySize;  // of the last axis
  };
  // Throws InvalidArgument "[<name>] ..." with both sides unless x is as expected.
  void check_input(const Tensor& x, const Input& expected, SourceLocation at) const;
  // x, which is as expected, in the compute dtype. Throws InvalidArgument for a dtype that is not
  // floating, and for f64 where the layer computes in less: cast() says that this is meant.
  Tensor computed(const Tensor& x, const Input& expected, SourceLocation at) const;
  // The variable's value in the compute dtype; undefined without one. A step that uses it several
  // times (one per position of a sequence) had better read it once.
  Tensor weight(const Variable& variable, SourceLocation at) const;
  Tensor weight(const std::optional<Variable>& variable, SourceLocation at) const;

 private:
  Variable make_variable(const char* role, const Shape& shape, PrecisionPolicy policy,
                         const Initializer& initializer, bool trainable);

  std::string name_;
  SourceLocation at_;
  PrecisionPolicy policy_;
  std::vector<Variable> variables_, trainable_;
};

}  // namespace lockstep::nn
