// SPDX-License-Identifier: Apache-2.0
#include "device/xla/trace.h"

#include <cstring>
#include <mutex>
#include <utility>

namespace lockstep::xla {
namespace {

thread_local Trace* innermost = nullptr;

std::size_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.num_elements()) * size_of(dtype);
}

void append_types(std::string& text, std::span<const Node> nodes) {
  text += '(';
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i) text += ", ";
    text += nodes[i].type.text();
  }
  text += ')';
}

}  // namespace

// ---- values

std::string Type::text() const {
  constexpr const char* names[] = {"f32", "f64", "f16", "bf16", "i32",
                                   "i64", "ui8", "i1",  "ui32", "ui64"};
  std::string text = "tensor<";
  for (const std::int64_t dim : shape.dims()) text += std::to_string(dim) + 'x';
  return text + names[static_cast<std::size_t>(element)] + '>';
}

std::string Node::name() const {
  if (id < 0) return "%a" + std::to_string(-1 - id);
  return '%' + std::to_string(id) + (result < 0 ? "" : '#' + std::to_string(result));
}

Buffer buffer_of(ValuePtr value) {
  Value* const raw = value.get();
  const Device device{DeviceKind::xla, raw->device};
  return Buffer::wrap(device, raw, bytes_of(raw->dtype, raw->shape),
                      [value = std::move(value)] { value->held = false; });
}

Value& value_of(const Buffer& buffer) { return *static_cast<Value*>(buffer.data()); }

Buffer upload(int device, DType dtype, const Shape& shape, const void* data) {
  const Place place = place_of(device);
  auto value = std::make_shared<Value>();
  value->dtype = dtype;
  value->shape = shape;
  value->device = device;
  value->array = place.client.upload(pjrt_type(element_of(dtype)), shape, data, place.ordinal);
  return buffer_of(std::move(value));
}

void require_value(const Buffer& buffer, const char* what, SourceLocation at) {
  const Value& value = value_of(buffer);
  const std::string device = buffer.device().to_string();
  if (value.trace)
    throw FailedPrecondition(
        message(what, "the tensor has no value yet: the step is being traced for ", device,
                " and runs once it has returned; return the tensor and read it after run, or "
                "decide by ops (select) instead of C++"),
        at);
  if (!value.array)
    throw FailedPrecondition(message(what, "the tensor on ", device, " has no value: ", value.lost),
                             at);
}

void download(const Buffer& buffer, void* to, std::size_t bytes, const char* what,
              SourceLocation at) {
  require_value(buffer, what, at);
  const Value& value = value_of(buffer);
  value.array->to_host(to, bytes, value.shape.rank());
}

Overwritten::~Overwritten() = default;

// ---- the trace

Trace* current_trace() noexcept { return innermost; }
TraceScope::TraceScope(Trace* trace) noexcept : previous_(std::exchange(innermost, trace)) {}
TraceScope::~TraceScope() { innermost = previous_; }

Trace::~Trace() { abandon("the step that was to compute it was not executed"); }

int Trace::argument_for(const void* identity, DType dtype, std::size_t bytes) {
  const auto [known, fresh] =
      known_.try_emplace({identity, dtype, bytes}, static_cast<int>(arguments_.size()));
  if (fresh) arguments_.emplace_back();
  return known->second;
}

Node Trace::operand(const Buffer& buffer, DType dtype, const Shape& shape, const char* op,
                    SourceLocation at) {
  const Type type{element_of(dtype), shape};
  if (buffer.device().is_host()) {
    if (shape.num_elements() == 1) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, buffer.data(), size_of(dtype));
      Node node = literal(type.element, bits);
      if (shape.rank() == 0) return node;
      return emit("stablehlo.reshape", {&node, 1}, "", type);
    }
    const int index = argument_for(buffer.data(), dtype, bytes_of(dtype, shape));
    Argument& argument = arguments_[static_cast<std::size_t>(index)];
    if (!argument.host) argument = {.type = type, .value = {}, .host = buffer, .literal = {}};
    Node node{.id = -1 - index, .result = -1, .type = argument.type};
    return node.type == type ? node : emit("stablehlo.reshape", {&node, 1}, "", type);
  }
  Value& value = value_of(buffer);
  const auto refuse = [&](const auto&... why) {
    throw FailedPrecondition(message(op, "a tensor on ", buffer.device().to_string(), " ", why...),
                             at);
  };
  Node node;
  if (value.trace == this) {
    node = value.node;
  } else {
    if (value.trace) refuse("belongs to the step of another replica; each replica keeps its own");
    if (!value.array) refuse("has no value: ", value.lost);
    if (value.device != device_)
      refuse("is used in the step of TPU:", device_, "; copy it to the host first");
    const int index = argument_for(&value, value.dtype, 0);
    Argument& argument = arguments_[static_cast<std::size_t>(index)];
    if (!argument.value)
      argument = {.type = {element_of(value.dtype), value.shape},
                  .value = value.shared_from_this(),
                  .host = {},
                  .literal = {}};
    node = {.id = -1 - index, .result = -1, .type = argument.type};
  }
  return node.type == type ? node : emit("stablehlo.reshape", {&node, 1}, "", type);
}

Node Trace::literal(Element element, std::uint64_t bits, bool varies) {
  const int index = static_cast<int>(arguments_.size());
  arguments_.push_back(
      {.type = {element, Shape{}}, .value = {}, .host = {}, .literal = Literal{bits, varies}});
  return {.id = -1 - index, .result = -1, .type = {element, Shape{}}};
}

std::vector<Node> Trace::emit(std::string_view op, std::span<const Node> operands,
                              std::string_view attributes, std::span<const Type> types,
                              std::string_view region) {
  const int id = next_++;
  const bool several = types.size() > 1;
  body_ += "  %" + std::to_string(id);
  if (several) body_ += ':' + std::to_string(types.size());
  body_ += " = \"";
  body_ += op;
  body_ += "\"(";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i) body_ += ", ";
    body_ += operands[i].name();
  }
  body_ += ')';
  if (!attributes.empty()) {
    body_ += " <{";
    body_ += attributes;
    body_ += "}>";
  }
  if (!region.empty()) {
    body_ += " (";
    body_ += region;
    body_ += ')';
  }
  body_ += " : ";
  append_types(body_, operands);
  body_ += " -> ";
  std::vector<Node> results;
  results.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i)
    results.push_back({.id = id, .result = several ? static_cast<int>(i) : -1, .type = types[i]});
  append_types(body_, results);
  body_ += '\n';
  return results;
}

Node Trace::emit(std::string_view op, std::span<const Node> operands, std::string_view attributes,
                 const Type& type, std::string_view region) {
  return emit(op, operands, attributes, {&type, 1}, region)[0];
}

Buffer Trace::result(const Node& node, DType dtype, int replaces) {
  auto value = std::make_shared<Value>();
  value->dtype = dtype;
  value->shape = node.type.shape;
  value->device = device_;
  value->trace = this;
  value->node = node;
  results_.push_back({value, replaces});
  return buffer_of(std::move(value));
}

std::vector<Trace::Output> Trace::outputs() const {
  std::vector<Output> outputs;
  for (const Result& result : results_)
    if (ValuePtr value = result.value.lock(); value && value->held)
      outputs.push_back({std::move(value), result.replaces});
  return outputs;
}

bool Trace::disposable(std::size_t argument) const {
  const ValuePtr& value = arguments_[argument].value;
  if (!value) return false;
  if (!value->held) return true;
  for (const auto& old : overwritten_)
    if (&value_of(old->old_value()) == value.get()) return old->sole_holder();
  return false;
}

void Trace::complete(std::span<const Output> outputs, std::span<const DeviceArrayPtr> arrays) {
  ended_ = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Value& value = *outputs[i].value;
    value.trace = nullptr;
    value.array = arrays[i];
  }
  overwritten_.clear();
}

void Trace::abandon(const std::string& why) noexcept {
  if (std::exchange(ended_, true)) return;
  for (const auto& old : overwritten_) old->restore();
  overwritten_.clear();
  for (const Output& output : outputs()) {
    output.value->trace = nullptr;
    output.value->lost = why;
  }
}

// ---- text

abi::ElementType pjrt_type(Element element) {
  using Pjrt = abi::ElementType;
  constexpr Pjrt types[] = {Pjrt::f32, Pjrt::f64, Pjrt::f16,  Pjrt::bf16, Pjrt::s32,
                            Pjrt::s64, Pjrt::u8,  Pjrt::pred, Pjrt::u32,  Pjrt::u64};
  return types[static_cast<std::size_t>(element)];
}

std::string constant_text(const Type& type, std::uint64_t bits) {
  constexpr int digits[] = {8, 16, 4, 4};
  std::string text;
  switch (type.element) {
    case Element::boolean:
      text = bits ? "true" : "false";
      break;
    case Element::i32:
      text = std::to_string(static_cast<std::int32_t>(bits));
      break;
    case Element::i64:
      text = std::to_string(static_cast<std::int64_t>(bits));
      break;
    case Element::u8:
    case Element::u32:
    case Element::u64:
      text = std::to_string(bits);
      break;
    default:  // floating: bit patterns, which are exact
      text = "0x";
      for (int i = digits[static_cast<int>(type.element)]; i-- > 0;)
        text += "0123456789ABCDEF"[bits >> (4 * i) & 15];
  }
  return "dense<" + text + "> : " + type.text();
}

// ---- devices

namespace {

std::mutex places_mutex;
std::vector<Place>& places() {
  static auto& all = *new std::vector<Place>;
  return all;
}

}  // namespace

Device device_at(const Client& client, int ordinal) {
  const std::lock_guard lock(places_mutex);
  std::vector<Place>& all = places();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (&all[i].client == &client) return {DeviceKind::xla, static_cast<int>(i) + ordinal};
  const int first = static_cast<int>(all.size());
  for (int i = 0; i < client.num_devices(); ++i) all.push_back({client, i});
  return {DeviceKind::xla, first + ordinal};
}

Place place_of(int device) {
  const std::lock_guard lock(places_mutex);
  ensure(device >= 0 && static_cast<std::size_t>(device) < places().size(), "xla::place_of",
         "no device TPU:", device);
  return places()[static_cast<std::size_t>(device)];
}

int num_known_devices() {
  const std::lock_guard lock(places_mutex);
  return static_cast<int>(places().size());
}

}  // namespace lockstep::xla
