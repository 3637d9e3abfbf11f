// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/base/shape.h>
#include <lockstep/base/source_location.h>
#include <lockstep/device/buffer.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "device/xla/client.h"

namespace lockstep::xla {

// Elements of values in a program: those of tensors, in DType's order, and unsigned ones between.
enum class Element : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, boolean, u32, u64 };
constexpr Element element_of(DType dtype) { return static_cast<Element>(dtype); }

struct Type {
  Element element;
  Shape shape;

  std::string text() const;  // "tensor<2x3xf32>"
  friend bool operator==(const Type&, const Type&) = default;
};

// A value of a program: an argument or the result of an instruction.
struct Node {
  int id = 0;       // arguments: negative
  int result = -1;  // which result of an instruction of several
  Type type;

  std::string name() const;  // "%3", "%3#1", "%a0"
};

class Trace;

// What Buffer::data() points to on a TPU: no memory, but a value that a device holds or a trace is
// to compute.
struct Value : std::enable_shared_from_this<Value> {
  DType dtype;
  Shape shape;
  int device = 0;          // Device::index
  DeviceArrayPtr array;    // null while traced, and when lost
  Trace* trace = nullptr;  // while traced
  Node node;               // while traced
  std::string lost;        // why there is neither
  bool held = true;        // some tensor refers to it
};
using ValuePtr = std::shared_ptr<Value>;

// A buffer on TPU `value->device` that stands for the value.
Buffer buffer_of(ValuePtr value);
// The value behind a buffer on a TPU.
Value& value_of(const Buffer& buffer);

// A value in a device's memory, copied from row-major elements.
Buffer upload(int device, DType dtype, const Shape& shape, const void* data);
// Throws FailedPrecondition "[what] ..." for a value that is being traced, or lost.
void require_value(const Buffer& buffer, const char* what, SourceLocation at);
// Its elements; likewise.
void download(const Buffer& buffer, void* to, std::size_t bytes, const char* what,
              SourceLocation at);

// A value that a step overwrote. It comes back when the step cannot be executed.
class Overwritten {
 public:
  virtual ~Overwritten();
  virtual const Buffer& old_value() const = 0;
  // Nobody else refers to it: its memory may be reused.
  virtual bool sole_holder() const = 0;
  virtual void restore() noexcept = 0;
};

// The program that a step's ops amount to on one replica, as StableHLO text, while they are called.
// What ops compute is a Value of the trace; what they use of elsewhere becomes an argument: values
// on the device, host tensors, and numbers, which stay constants as long as they do not change. Used
// by one thread.
class Trace {
 public:
  // A number or one-element tensor of the host.
  struct Literal {
    std::uint64_t bits = 0;
    bool varies = false;  // known to change from step to step
  };
  struct Argument {
    Type type;
    ValuePtr value;  // on the device; or
    Buffer host;     // elements on the host; or
    std::optional<Literal> literal;
  };
  struct Output {
    ValuePtr value;
    int replaces;  // argument whose memory it had best take over; -1: none
  };

  explicit Trace(int device) : device_(device) {}
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  int device() const { return device_; }

  // The operand that a buffer stands for. Throws FailedPrecondition for a value of another trace or
  // one that is lost.
  Node operand(const Buffer& buffer, DType dtype, const Shape& shape, const char* op,
               SourceLocation at);
  Node literal(Element element, std::uint64_t bits, bool varies = false);
  // One instruction in MLIR's generic form: `attributes` without the braces, `region` with.
  Node emit(std::string_view op, std::span<const Node> operands, std::string_view attributes,
            const Type& type, std::string_view region = {});
  std::vector<Node> emit(std::string_view op, std::span<const Node> operands,
                         std::string_view attributes, std::span<const Type> types,
                         std::string_view region = {});
  // A tensor's worth of a node. `replaces`: see Output.
  Buffer result(const Node& node, DType dtype, int replaces = -1);

  void overwritten(std::unique_ptr<Overwritten> value) { overwritten_.push_back(std::move(value)); }

  const std::string& body() const { return body_; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  // Results that tensors still refer to, in order.
  std::vector<Output> outputs() const;
  // Nobody will look at the argument's value again.
  bool disposable(std::size_t argument) const;

  // The result of the last collective, which the next one is to come after.
  std::optional<Node> last_collective;

  // The end: outputs() have these values; or there are none, overwritten values come back, and
  // those that are gone say why.
  void complete(std::span<const Output> outputs, std::span<const DeviceArrayPtr> arrays);
  void abandon(const std::string& why) noexcept;

 private:
  int argument_for(const void* identity, DType dtype, std::size_t bytes);

  const int device_;
  std::string body_;
  int next_ = 0;
  std::vector<Argument> arguments_;
  // Values and host memory that are arguments already.
  std::map<std::tuple<const void*, DType, std::size_t>, int> known_;
  struct Result {
    std::weak_ptr<Value> value;
    int replaces;
  };
  std::vector<Result> results_;
  std::vector<std::unique_ptr<Overwritten>> overwritten_;
  bool ended_ = false;
};

// What the calling thread's ops on TPUs are added to; null outside traced steps.
Trace* current_trace() noexcept;

// Sets it while it lives; null suspends tracing.
class [[nodiscard]] TraceScope {
 public:
  explicit TraceScope(Trace* trace) noexcept;
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Trace* previous_;
};

abi::ElementType pjrt_type(Element element);
// "dense<...> : tensor<f32>", every element of a type having these bits.
std::string constant_text(const Type& type, std::uint64_t bits);

// TPU:i is the i-th device of the clients in the order in which they were made.
Device device_at(const Client& client, int ordinal);
struct Place {
  const Client& client;
  int ordinal;
};
Place place_of(int device);
int num_known_devices();

}  // namespace lockstep::xla
